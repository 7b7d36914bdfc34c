package tenant

import "errors"

// What a human does to a page from outside. All of it may be called at any time.

// ErrAway is returned for a page that has no socket now.
var ErrAway = errors.New("this page is reconnecting: try again once it is back")

// Move asks the tab to join elsewhere. There it is another page; this one goes
// once the tab has left. The error is [ErrNoTenant] for a connect string that
// leads nowhere, or [ErrAway].
func (p *Page) Move(to Connect) error {
	if !p.tenant.reg.Knows(to) {
		return ErrNoTenant
	}
	l := p.socket()
	if l == nil {
		return ErrAway
	}
	l.transport.Move(to)
	return nil
}

// Disconnect takes the page out and closes its socket, so that its script does
// not come back by itself.
func (p *Page) Disconnect() {
	p.refuse(Disconnected, false)
	p.tenant.disposeEmpty()
}

// Rename gives the page another label, and the prefix made from it, as
// [Link.Rename] does, and tells the page.
func (p *Page) Rename(label string) error {
	t := p.tenant
	t.mu.Lock()
	if p.gone {
		t.mu.Unlock()
		return ErrReplaced
	}
	after, reg := p.renameLocked(label)
	l := p.link
	if !p.declared { // it hears once it has
		l = nil
	}
	t.mu.Unlock()
	after()
	if l != nil && !reg.Pending {
		l.transport.Registered(t.seen(p, reg))
	}
	return nil
}

func (p *Page) renameLocked(label string) (after func(), reg Registration) {
	p.wanted = label
	if !p.pending {
		p.tenant.reserveLocked(p, label)
	}
	return p.publishLocked()
}

func (p *Page) socket() *Link {
	p.tenant.mu.Lock()
	defer p.tenant.mu.Unlock()
	return p.link
}
