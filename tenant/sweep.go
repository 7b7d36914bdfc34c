package tenant

import "time"

// Channels end by themselves: at once when the last page leaves, after
// EmptyTimeout when it went in another way, and after IdleTimeout when nobody
// uses the pages it has. So do workspaces that no session is in; they are made
// anew when they are asked for. A timer of each does it, so that there is nothing
// to sweep. Session tenants end with their session, and root connections are made
// to stay.

func (t *Tenant) isSwept() bool { return t.kind == Channel || t.kind == Workspace }

// inUse tells a workspace that a session is in. Channels end also while sessions
// have joined them: they come back with their pages.
func (t *Tenant) inUse() bool { return t.kind == Workspace && !t.audience.empty() }

// watchEmptiness starts the clock of a tenant that has no page.
func (t *Tenant) watchEmptiness() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.watchEmptinessLocked()
}

func (t *Tenant) watchEmptinessLocked() {
	if !t.isSwept() || len(t.pages) > 0 || t.closed {
		return
	}
	t.stopTimersLocked()
	t.empty = time.AfterFunc(t.reg.opts.EmptyTimeout, t.disposeEmpty)
}

// watchUseLocked starts the clock of a tenant that has pages.
func (t *Tenant) watchUseLocked() {
	if !t.isSwept() || t.unused != nil {
		return
	}
	t.unused = time.AfterFunc(t.reg.opts.IdleTimeout, t.disposeUnused)
}

func (t *Tenant) stopTimersLocked() {
	for _, timer := range []*time.Timer{t.empty, t.unused} {
		if timer != nil {
			timer.Stop()
		}
	}
	t.empty, t.unused = nil, nil
}

// disposeEmpty ends a tenant that has no page.
func (t *Tenant) disposeEmpty() {
	if !t.isSwept() {
		return
	}
	r := t.reg
	r.mu.Lock()
	defer r.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.pages) > 0 || t.closed || t.inUse() {
		return
	}
	t.closed = true
	t.stopTimersLocked()
	r.removeLocked(t)
}

// disposeUnused ends a tenant that nobody has used, or waits for the rest.
func (t *Tenant) disposeUnused() {
	t.mu.Lock()
	left := t.reg.opts.IdleTimeout - (t.reg.now() - time.Duration(t.used.Load()))
	if t.inUse() {
		left = t.reg.opts.IdleTimeout
	}
	if left > 0 && t.unused != nil {
		t.unused.Reset(left)
		t.mu.Unlock()
		return
	}
	t.mu.Unlock()
	if left <= 0 {
		t.close(Unused)
	}
}
