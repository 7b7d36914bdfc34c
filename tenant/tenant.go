package tenant

import (
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"jsbridge/manifest"
)

// Kind tells tenants apart.
type Kind int

const (
	// Session tenants belong to one MCP session and are reached by their id.
	Session Kind = iota + 1
	// Channel tenants are reached by their name.
	Channel
	// Roots is the one tenant of all root connections, which every view has.
	Roots
	// Workspace tenants are like session tenants, but outlive their sessions,
	// of which they may have several.
	Workspace
)

// Tenant is where sessions and pages meet. A session tenant is made by
// [Registry.Open], a channel by the first page that joins it.
type Tenant struct {
	kind     Kind
	id       string // of a session tenant the capability, of a channel its name
	reg      *Registry
	audience *audience
	used     atomic.Int64 // last message of a page, or call; see Registry.now
	shown    atomic.Bool  // it has had a page that did not wait for approval

	mu       sync.Mutex
	pages    []*Page          // in order of joining, from join to removal
	prefixes map[string]*Page // taken prefixes, from first registration to removal
	snapshot *Snapshot
	empty    *time.Timer // of a channel without pages
	unused   *time.Timer // of a channel that nobody has used
	closed   bool
}

func newTenant(r *Registry, kind Kind, id string, a *audience) *Tenant {
	t := &Tenant{
		kind:     kind,
		id:       id,
		reg:      r,
		audience: a,
		prefixes: make(map[string]*Page),
		snapshot: nothing,
	}
	t.touch()
	return t
}

// ID is a session tenant's capability, which lets its holder join, or a
// channel's name.
func (t *Tenant) ID() string { return t.id }

// isNamed tells that a name is enough to join, so that the origin counts, and
// that pages are known by their names.
func (t *Tenant) isNamed() bool { return t.kind == Channel || t.kind == Roots }

// touch notes that the tenant is in use.
func (t *Tenant) touch() { t.used.Store(int64(t.reg.now())) }

// Snapshot is the list of tools published right now.
func (t *Tenant) Snapshot() *Snapshot {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.snapshot
}

// Pages are the tenant's pages in order of joining, without those that wait for
// approval.
func (t *Tenant) Pages() []*Page {
	t.mu.Lock()
	defer t.mu.Unlock()
	var pages []*Page
	for _, p := range t.pages {
		if !p.pending {
			pages = append(pages, p)
		}
	}
	return pages
}

// Ended tells whether the tenant has ended.
func (t *Tenant) Ended() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.closed
}

// Close ends the tenant: its pages are told so and its calls fail.
func (t *Tenant) Close() { t.close(TenantEnded) }

func (t *Tenant) close(why Reason) {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return
	}
	t.closed = true
	t.stopTimersLocked()
	pages := t.pages
	t.pages = nil
	var links []*Link
	var after []func()
	for _, p := range pages {
		if l := p.link; l != nil {
			links = append(links, l)
		}
		after = append(after, p.goneLocked())
	}
	clear(t.prefixes)
	after = append(after, t.rebuildLocked())
	t.mu.Unlock()

	t.reg.remove(t)
	t.reg.removePages(len(pages))
	for _, f := range after {
		f()
	}
	for _, l := range links {
		l.finish(outcome{err: &CallError{Kind: PageGone, MayHaveRun: true, page: l.name()}}, Departure{})
		l.transport.Close(why)
	}
}

// Joining is what a socket says of its page.
type Joining struct {
	// Instance is the tab's own random id, "" when the page has none.
	Instance string
	// Origin is the socket's Origin header, "" for a peer that is no browser.
	Origin string
	// Probes tells that the page's script answers probes.
	Probes bool
	// Remote tells that the peer is on another machine.
	Remote    bool
	Transport Transport

	name string // from the connect string, "" for the page's own label
}

// join brings a socket in. With the instance and origin of a page that is here
// it becomes that page's socket, and an older one is closed as [Replaced].
func (t *Tenant) join(j Joining) (*Link, error) {
	wait := t.isNamed() && !t.reg.opts.Allow(j.Origin, j.Remote)
	if t.reg.draining.Load() {
		return nil, ErrStopping
	}
	t.touch()
	l := &Link{
		reg:       t.reg,
		tenant:    t,
		serial:    t.reg.linkSerial.Add(1),
		transport: j.Transport,
		probes:    j.Probes,
		pending:   make(map[string]*pending),
	}
	l.Heard()

	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return nil, ErrNoTenant
	}
	p := t.samePageLocked(j)
	var old *Link
	if p != nil {
		old = p.link
		p.stopGraceLocked()
		t.reg.reconnects.Add(1)
	} else {
		if err := t.reg.addPage(); err != nil {
			t.mu.Unlock()
			return nil, err
		}
		p = &Page{tenant: t, remote: j.Remote, id: uuid.NewString(), instance: j.Instance, origin: j.Origin, asked: j.name, wanted: j.name, joined: time.Now(), changed: make(chan struct{})}
		if wait {
			if err := p.beginWaitLocked(); err != nil {
				t.mu.Unlock()
				t.reg.removePages(1)
				return nil, err
			}
		}
		t.pages = append(t.pages, p)
		if !wait {
			t.shown.Store(true)
		}
		t.stopTimersLocked()
		t.watchUseLocked()
	}
	l.page = p
	p.attachLocked(l)
	t.mu.Unlock()

	if before := t.reg.claim(p); before != nil {
		before.refuse(Replaced, false)
		before.tenant.disposeEmpty() // the tab has left it, whether or not it has got round to saying so
	}
	if p.isGone() { // by another goroutine, before the claim
		t.reg.release(p)
	}
	if t.isNamed() && t.reg.opts.Allow(j.Origin, j.Remote) == wait { // changed between the two looks
		t.reg.Recheck()
	}
	if old != nil {
		old.finish(outcome{err: &CallError{Kind: PageGone, MayHaveRun: true, page: old.name()}}, Departure{})
		old.transport.Close(Replaced)
	}
	return l, nil
}

// samePageLocked finds the page that has been reloaded. A tab that now asks for
// another name shows another app.
func (t *Tenant) samePageLocked(j Joining) *Page {
	if j.Instance == "" {
		return nil
	}
	for _, p := range t.pages {
		if p.instance == j.Instance && p.origin == j.Origin && p.remote == j.Remote && p.asked == j.name {
			return p
		}
	}
	return nil
}

// reserveLocked gives p the first free prefix made from label. Among root
// connections and in a channel, where pages are known by name, the name gets the
// same ordinal. t.mu must be held.
func (t *Tenant) reserveLocked(p *Page, label string) {
	slug := manifest.Slug(label)
	prefix, name := slug, label
	for n := 2; t.takenLocked(p, prefix, name); n++ {
		prefix = manifest.SlugOrdinal(slug, n)
		if t.isNamed() {
			name = label + strconv.Itoa(n)
		}
	}
	delete(t.prefixes, p.prefix)
	t.prefixes[prefix] = p
	p.prefix, p.label = prefix, name
}

func (t *Tenant) takenLocked(p *Page, prefix, name string) bool {
	if holder := t.prefixes[prefix]; holder != nil && holder != p {
		return true
	}
	return t.isNamed() && slices.ContainsFunc(t.pages, func(q *Page) bool { return q != p && q.label == name })
}

// rebuildLocked makes the snapshot anew and returns what to call once t.mu is
// released. t.mu must be held.
func (t *Tenant) rebuildLocked() (notify func()) {
	var l listing
	for _, p := range t.pages {
		if p.manifest != nil && !p.pending {
			l.add(p.placedLocked())
		}
	}
	t.snapshot = newSnapshot(l)
	return t.audience.tell
}

// removeLocked takes p out. t.mu must be held; the caller calls what comes back
// after releasing it.
func (t *Tenant) removeLocked(p *Page) (after func()) {
	for i, q := range t.pages {
		if q == p {
			t.pages = append(t.pages[:i:i], t.pages[i+1:]...)
			break
		}
	}
	if t.prefixes[p.prefix] == p {
		delete(t.prefixes, p.prefix)
	}
	published := p.manifest != nil && !p.pending
	ended := p.goneLocked()
	t.watchEmptinessLocked()
	notify := func() {}
	if published {
		notify = t.rebuildLocked()
	}
	return func() {
		ended()
		t.reg.removePages(1)
		notify()
	}
}
