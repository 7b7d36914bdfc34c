package tenant

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"jsbridge/manifest"
)

// Link is one socket of a page. Its owner reads the socket and calls these
// methods with what the page said; it ends with [Link.Closed].
type Link struct {
	reg       *Registry
	tenant    *Tenant
	serial    uint64
	transport Transport
	probes    bool

	heard     atomic.Int64 // when the page's JavaScript last spoke, see Registry.now
	suspended atomic.Bool  // it has not spoken for too long; cleared by Heard
	back      atomic.Bool  // it has registered for the first time, see Watched

	page *Page // guarded by tenant.mu; changes only when an older script's page is adopted

	watching sync.Mutex      // held through syncWatches, before all others
	told     map[string]bool // resources that the page was told are watched; guarded by watching

	mu      sync.Mutex
	pending map[string]*pending // by call id, from sending to the call's end
	sent    uint64              // number of the last call
	closed  bool
}

var (
	// ErrForeignCall is an answer to a call that this socket was never sent.
	ErrForeignCall = errors.New("this call was not sent to this connection")
	// ErrLateAnswer is a second answer, or one to a call that has ended.
	ErrLateAnswer = errors.New("this call has already ended")
	// ErrReplaced is returned to a socket that is not its page's any more.
	ErrReplaced = errors.New("this socket has been replaced by a newer one of the same tab")
)

// ID is the connection's id.
func (l *Link) ID() string {
	l.tenant.mu.Lock()
	defer l.tenant.mu.Unlock()
	return l.page.id
}

// Pending tells whether the page waits for approval.
func (l *Link) Pending() bool {
	l.tenant.mu.Lock()
	defer l.tenant.mu.Unlock()
	return l.page.pending
}

func (l *Link) name() pageName {
	l.tenant.mu.Lock()
	defer l.tenant.mu.Unlock()
	return l.page.nameLocked()
}

// Registration is what a page's declarations were published as.
type Registration struct {
	// Pending: nothing was published, the page waits for approval.
	Pending  bool
	Prefix   string
	Declared *manifest.Manifest // never nil
	// ToolNames, PromptNames and ResourceURIs are in the order of Declared; nil
	// while pending.
	ToolNames, PromptNames, ResourceURIs []string
}

// Register replaces all that the page declares. The first registration decides
// the label and with it the prefix; later ones keep both.
func (l *Link) Register(m *manifest.Manifest) (Registration, error) {
	t := l.tenant
	t.mu.Lock()
	if l.page.link != l {
		t.mu.Unlock()
		return Registration{}, ErrReplaced
	}
	adopted := l.adoptLocked(m.Label)
	p := l.page
	back := !p.declared
	p.manifest = m
	p.declared = true
	after, reg := p.publishLocked()
	t.mu.Unlock()
	adopted()
	after()
	l.back.Store(back)
	return t.seen(p, reg), nil
}

// adoptLocked gives the socket of an older script, which has no instance id,
// the place of such a page of the same origin and label that is reconnecting.
// What comes back is to be called without the lock.
func (l *Link) adoptLocked(label string) (after func()) {
	p := l.page
	if p.instance != "" || p.prefix != "" {
		return func() {}
	}
	t := l.tenant
	for _, q := range t.pages {
		if q != p && q.link == nil && q.instance == "" && q.origin == p.origin && q.asked == p.asked && q.manifest != nil && q.manifest.Label == label {
			for i := range t.pages {
				if t.pages[i] == p {
					t.pages = append(t.pages[:i:i], t.pages[i+1:]...)
					break
				}
			}
			ended := p.goneLocked()
			q.stopGraceLocked()
			t.reg.reconnects.Add(1)
			l.page = q
			q.attachLocked(l)
			return func() {
				ended()
				t.reg.removePages(1)
			}
		}
	}
	return func() {}
}

// publishLocked publishes what the page has declared, unless it is pending.
func (p *Page) publishLocked() (after func(), reg Registration) {
	p.rev++
	p.tenant.reg.Note()
	m := p.manifest
	if m == nil || p.pending {
		return func() {}, Registration{Pending: p.pending, Prefix: p.prefix, Declared: cmp.Or(m, new(manifest.Manifest))}
	}
	if p.prefix == "" {
		p.tenant.reserveLocked(p, cmp.Or(p.wanted, m.Label, "tab"))
	}
	here := p.placedLocked()
	here.name()
	p.names = here.names
	after = p.tenant.rebuildLocked()
	p.changeLocked()
	reg = Registration{Declared: m}
	p.tenant.snapshot.names(p, &reg)
	return after, reg
}

// names fills in what a page was published as.
func (s *Snapshot) names(p *Page, reg *Registration) {
	i := slices.IndexFunc(s.pages, func(here placed) bool { return here.page == p && here.declared == reg.Declared })
	if i < 0 { // it has declared something else meanwhile
		return
	}
	here := s.pages[i]
	reg.Prefix, reg.ToolNames, reg.PromptNames = here.prefix, here.names.tools, here.names.prompts
	uris := make(map[*manifest.Resource]string) // they may differ, see listing.settle
	for _, e := range s.resources {
		if e.Page == p {
			uris[e.Resource] = e.URI
		}
	}
	reg.ResourceURIs = make([]string, 0, len(uris))
	for _, r := range reg.Declared.Resources {
		reg.ResourceURIs = append(reg.ResourceURIs, uris[r])
	}
}

// seen gives the registration the names that the only view of its own has.
func (t *Tenant) seen(p *Page, reg Registration) Registration {
	if t.isNamed() || reg.Pending {
		return reg
	}
	if v := t.audience.only(); v != nil {
		v.Snapshot().names(p, &reg)
	}
	return reg
}

// Rename gives the page a label chosen by a human, and the prefix made from it.
func (l *Link) Rename(label string) (Registration, error) {
	t := l.tenant
	t.mu.Lock()
	p := l.page
	if p.link != l {
		t.mu.Unlock()
		return Registration{}, ErrReplaced
	}
	after, reg := p.renameLocked(label)
	t.mu.Unlock()
	after()
	return t.seen(p, reg), nil
}

// Leave takes the page out at once, and the channel whose last page it was; its
// socket's owner then closes it.
func (l *Link) Leave() {
	l.end(Departure{})
	l.tenant.disposeEmpty()
}

// Closed tells that the socket has ended. Calling it again does nothing.
func (l *Link) Closed(d Departure) { l.end(d) }

func (l *Link) end(d Departure) {
	t := l.tenant
	t.mu.Lock()
	p := l.page
	after := func() {}
	if p.link == l {
		if d.MayReturn {
			p.detachLocked()
		} else {
			after = t.removeLocked(p)
		}
	}
	name := p.nameLocked()
	t.mu.Unlock()
	l.finish(outcome{err: &CallError{Kind: PageGone, MayHaveRun: true, page: name}}, d)
	after()
}

// Heard notes that the page's JavaScript spoke. Call it for each message.
func (l *Link) Heard() {
	now := int64(l.reg.now())
	l.heard.Store(now)
	l.tenant.used.Store(now)
	if l.suspended.CompareAndSwap(true, false) {
		l.change()
	}
}

// suspend marks the link until the page speaks again.
func (l *Link) suspend() {
	if l.suspended.CompareAndSwap(false, true) {
		l.change()
	}
}

func (l *Link) change() {
	l.tenant.mu.Lock()
	defer l.tenant.mu.Unlock()
	l.page.changeLocked()
}

// Answer ends a call. The error is [ErrForeignCall] or [ErrLateAnswer].
func (l *Link) Answer(id string, a Answer) error {
	p, err := l.take(id)
	if err != nil {
		return err
	}
	p.done <- outcome{answer: a}
	return nil
}

// Say passes on what the page says of a running call. What its caller is too
// slow for is dropped. Errors are those of [Link.Answer].
func (l *Link) Say(id string, e Event) error {
	l.mu.Lock()
	p := l.pending[id]
	l.mu.Unlock()
	if p == nil {
		_, err := l.take(id)
		return err
	}
	if len(p.said) >= eventsKept { // the rest is for questions
		return nil
	}
	select {
	case p.said <- said{event: e}:
	default:
	}
	return nil
}

func (l *Link) take(id string) (*pending, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.pending[id]; p != nil {
		delete(l.pending, id)
		return p, nil
	}
	if n, ok := l.number(id); ok && n <= l.sent {
		return nil, ErrLateAnswer
	}
	return nil, ErrForeignCall
}

// number reads the running number out of one of this link's call ids.
func (l *Link) number(id string) (uint64, bool) {
	serial, n, ok := strings.Cut(id, "-")
	if !ok || serial != strconv.FormatUint(l.serial, 10) {
		return 0, false
	}
	v, err := strconv.ParseUint(n, 10, 64)
	return v, err == nil && v > 0
}

// finish ends every pending call and refuses further ones. Calls that the
// page's script certainly did not take are sent again once the page is back.
func (l *Link) finish(o outcome, d Departure) {
	last, ok := l.number(d.Seen)
	again := d.SeenKnown && d.MayReturn && (ok || d.Seen == "")
	l.mu.Lock()
	all := l.pending
	l.pending = nil
	l.closed = true
	l.mu.Unlock()
	for id, p := range all {
		if n, _ := l.number(id); again && n > last {
			p.done <- outcome{again: true}
		} else {
			p.done <- o
		}
	}
}
