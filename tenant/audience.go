package tenant

import "sync"

// audience is the views that see a tenant. A channel's outlives the channel
// while there are any, so that they learn when a page makes it anew.
type audience struct {
	mu    sync.Mutex
	views map[*View]struct{}
}

func newAudience() *audience { return &audience{views: make(map[*View]struct{})} }

func (a *audience) add(v *View) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.views[v] = struct{}{}
}

func (a *audience) remove(v *View) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.views, v)
}

func (a *audience) empty() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.views) == 0
}

// only is the view, if there is just one.
func (a *audience) only() *View {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.views) != 1 {
		return nil
	}
	for v := range a.views {
		return v
	}
	return nil
}

// tell tells every view that it may see something else now. No lock of this
// package may be held.
func (a *audience) tell() {
	for _, v := range a.all() {
		v.notify()
	}
}

func (a *audience) all() []*View {
	a.mu.Lock()
	defer a.mu.Unlock()
	views := make([]*View, 0, len(a.views))
	for v := range a.views {
		views = append(views, v)
	}
	return views
}
