package tenant

import (
	"time"

	"jsbridge/manifest"
)

// State is a page's condition.
type State string

const (
	// Joined pages have a socket and have declared nothing yet.
	Joined State = "joined"
	// Ready pages answer calls.
	Ready State = "ready"
	// Reconnecting pages lost their socket less than a grace ago.
	Reconnecting State = "reconnecting"
	// Suspended pages keep their socket, but their JavaScript does not run.
	Suspended State = "suspended"
	// Pending pages wait for a human to approve their origin.
	Pending State = "pending"
	// Gone pages do not come back.
	Gone State = "gone"
)

// Page is one browser tab. All its methods may be called at any time.
type Page struct {
	tenant   *Tenant
	id       string
	instance string
	origin   string
	remote   bool   // on another machine
	asked    string // its name in the connect string, "" for its own label

	// Guarded by tenant.mu.
	wanted   string // asked, or what a human renamed it to
	label    string
	prefix   string
	manifest *manifest.Manifest // nil until the first registration
	names    names              // that it was published as
	link     *Link              // nil while reconnecting
	declared bool               // the present link has registered
	gone     bool
	pending  bool          // waits for approval
	expiry   *time.Timer   // running while pending
	since    time.Time     // when pending began
	grace    *time.Timer   // running while reconnecting
	changed  chan struct{} // closed and replaced at each change of state
	joined   time.Time
	rev      uint64          // see Outline.Rev
	watched  map[string]int  // views that watch a resource, by its own URI
	updated  map[string]bool // watched resources that changed, until they are told of
}

// ID is the connection's id, the same over reloads.
func (p *Page) ID() string { return p.id }

// Info is a copy of what is known of a page.
type Info struct {
	Outline
	Tools     []Entry // by published name
	Prompts   []PromptEntry
	Resources []ResourceEntry
	Problems  []manifest.Problem
}

// Info describes the page as it is now, with the names of its own tenant; see
// [View.Info].
func (p *Page) Info() Info {
	p.tenant.mu.Lock()
	defer p.tenant.mu.Unlock()
	info := Info{Outline: p.outlineLocked()}
	if m := p.manifest; m != nil {
		info.Problems = m.Problems
		info.Tools, info.Prompts, info.Resources = p.tenant.snapshot.Of(p)
	}
	return info
}

// Identify lets the tab show who it is.
func (p *Page) Identify() error {
	p.tenant.mu.Lock()
	l, label, info := p.link, p.label, p.nameLocked()
	p.tenant.mu.Unlock()
	if l == nil {
		return &CallError{Kind: PageGone, page: info}
	}
	l.transport.Identify(label)
	return nil
}

func (p *Page) stateLocked() State {
	switch {
	case p.gone:
		return Gone
	case p.pending:
		return Pending
	case p.link == nil:
		return Reconnecting
	case p.link.suspended.Load():
		return Suspended
	case p.manifest == nil:
		return Joined
	}
	return Ready
}

func (p *Page) nameLocked() pageName { return pageName{p.label, p.prefix} }

// The following need tenant.mu.

func (p *Page) changeLocked() {
	p.tenant.reg.Note()
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *Page) attachLocked(l *Link) {
	p.link = l
	p.declared = false
	p.changeLocked()
}

func (p *Page) stopGraceLocked() {
	if p.grace != nil {
		p.grace.Stop()
		p.grace = nil
	}
}

// detachLocked begins the grace.
func (p *Page) detachLocked() {
	p.link = nil
	var grace *time.Timer
	due := time.Now().Add(p.tenant.reg.opts.ReconnectGrace)
	grace = time.AfterFunc(p.tenant.reg.opts.ReconnectGrace, func() {
		t := p.tenant
		t.mu.Lock()
		if p.grace != grace || p.gone { // it came back, or left otherwise
			t.mu.Unlock()
			return
		}
		if isLate(due) { // it may be at the door
			due = time.Now().Add(catchUp)
			grace.Reset(catchUp)
			t.mu.Unlock()
			return
		}
		after := t.removeLocked(p)
		t.mu.Unlock()
		after()
	})
	p.grace = grace
	p.changeLocked()
}

func (p *Page) isGone() bool {
	p.tenant.mu.Lock()
	defer p.tenant.mu.Unlock()
	return p.gone
}

// goneLocked ends the page. What comes back is to be called without the lock.
func (p *Page) goneLocked() (after func()) {
	p.link = nil
	p.gone = true
	p.stopGraceLocked()
	ended := p.endWaitLocked()
	p.changeLocked()
	return func() {
		ended()
		p.tenant.reg.release(p)
	}
}

// placedLocked is the page as its own tenant publishes it.
func (p *Page) placedLocked() placed {
	return placed{page: p, base: p.prefix, prefix: p.prefix, label: p.label, declared: p.manifest, names: p.names}
}
