package tenant

import (
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"jsbridge/manifest"
)

// departedKept bounds how many gone pages a tenant remembers for its error
// messages.
const departedKept = 32

// Tenant is where sessions and pages meet. Make one with [Registry.Open].
type Tenant struct {
	id  string
	reg *Registry

	mu       sync.Mutex
	pages    []*Page          // in order of joining, from join to removal
	prefixes map[string]*Page // taken prefixes, from first registration to removal
	snapshot *Snapshot
	subs     map[*subscription]struct{}
	departed []Departed // oldest first, at most departedKept
	closed   bool
}

type subscription struct{ notify func() }

// Departed is a page that left.
type Departed struct {
	Prefix, Label, Origin string
	At                    time.Time
}

func newTenant(r *Registry, id string) *Tenant {
	return &Tenant{
		id:       id,
		reg:      r,
		prefixes: make(map[string]*Page),
		snapshot: newSnapshot(nil),
		subs:     make(map[*subscription]struct{}),
	}
}

// ID is the tenant's capability: whoever holds it may join.
func (t *Tenant) ID() string { return t.id }

// Snapshot is the list of tools published right now.
func (t *Tenant) Snapshot() *Snapshot {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.snapshot
}

// Subscribe calls notify after each change of the snapshot, from whichever
// goroutine made it; notify must return at once. The returned function ends it.
func (t *Tenant) Subscribe(notify func()) (cancel func()) {
	s := &subscription{notify}
	t.mu.Lock()
	t.subs[s] = struct{}{}
	t.mu.Unlock()
	return func() {
		t.mu.Lock()
		delete(t.subs, s)
		t.mu.Unlock()
	}
}

// Pages are the tenant's pages in order of joining.
func (t *Tenant) Pages() []*Page {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]*Page(nil), t.pages...)
}

// Departed finds a page that left and had the prefix of this published name.
func (t *Tenant) Departed(published string) (Departed, bool) {
	prefix, _, ok := strings.Cut(published, "__")
	if !ok {
		return Departed{}, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := len(t.departed) - 1; i >= 0; i-- {
		if t.departed[i].Prefix == prefix {
			return t.departed[i], true
		}
	}
	return Departed{}, false
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
	pages := t.pages
	t.pages = nil
	var links []*Link
	for _, p := range pages {
		if l := p.goneLocked(); l != nil {
			links = append(links, l)
		}
	}
	clear(t.prefixes)
	t.mu.Unlock()

	t.reg.removeTenant(t.id)
	t.reg.removePages(len(pages))
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
	Probes    bool
	Transport Transport
}

// Join brings a socket in. With the instance and origin of a page that is here
// it becomes that page's socket, and an older one is closed as [Replaced].
// The error is [ErrNoTenant], [ErrStopping] or a [*LimitError].
func (t *Tenant) Join(j Joining) (*Link, error) {
	if err := t.reg.addPage(); err != nil {
		return nil, err
	}
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
		t.reg.removePages(1)
		return nil, ErrNoTenant
	}
	p := t.byInstanceLocked(j.Instance, j.Origin)
	var old *Link
	known := p != nil
	if known {
		old = p.link
		p.stopGraceLocked()
	} else {
		p = &Page{tenant: t, id: uuid.NewString(), instance: j.Instance, origin: j.Origin, changed: make(chan struct{})}
		t.pages = append(t.pages, p)
	}
	l.page = p
	p.attachLocked(l)
	t.mu.Unlock()

	if known {
		t.reg.removePages(1) // it was counted when it first joined
	}
	if old != nil {
		old.finish(outcome{err: &CallError{Kind: PageGone, MayHaveRun: true, page: old.name()}}, Departure{})
		old.transport.Close(Replaced)
	}
	return l, nil
}

func (t *Tenant) byInstanceLocked(instance, origin string) *Page {
	if instance == "" {
		return nil
	}
	for _, p := range t.pages {
		if p.instance == instance && p.origin == origin {
			return p
		}
	}
	return nil
}

// reserveLocked gives p the first free prefix made from slug. t.mu must be held.
func (t *Tenant) reserveLocked(p *Page, slug string) {
	prefix := slug
	for n := 2; ; n++ {
		holder := t.prefixes[prefix]
		if holder == nil || holder == p {
			break
		}
		prefix = manifest.SlugOrdinal(slug, n)
	}
	delete(t.prefixes, p.prefix)
	t.prefixes[prefix] = p
	p.prefix = prefix
}

// rebuildLocked makes the snapshot anew and returns what to call once t.mu is
// released. t.mu must be held.
func (t *Tenant) rebuildLocked() (notify func()) {
	var entries []Entry
	for _, p := range t.pages {
		if p.manifest == nil {
			continue
		}
		for i, tool := range p.manifest.Tools {
			entries = append(entries, Entry{Name: p.names[i], Tool: tool, Page: p, Label: p.label, Origin: p.origin})
		}
	}
	t.snapshot = newSnapshot(entries)
	subs := make([]func(), 0, len(t.subs))
	for s := range t.subs {
		subs = append(subs, s.notify)
	}
	return func() {
		for _, f := range subs {
			f()
		}
	}
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
	p.goneLocked()
	if p.prefix != "" {
		t.departed = append(t.departed, Departed{p.prefix, p.label, p.origin, time.Now()})
		if len(t.departed) > departedKept {
			t.departed = t.departed[1:]
		}
	}
	notify := t.rebuildLocked()
	return func() {
		t.reg.removePages(1)
		notify()
	}
}
