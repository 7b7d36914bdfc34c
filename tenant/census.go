package tenant

import "maps"

// Census counts what a registry holds. A kind or state that nothing is of or in
// has no entry.
type Census struct {
	Pages   map[State]int // never Gone
	Tenants map[Kind]int
	// Calls are those that have not ended.
	Calls int
	// Reconnects counts, since the start, how often a page got a new socket in
	// place of one that was lost or given up, as after a reload.
	Reconnects uint64
}

// Census counts. It looks at every page, one tenant after the other, so that its
// figures need not be of the same instant.
func (r *Registry) Census() Census {
	r.mu.Lock()
	all := make([]*Tenant, 0, 1+len(r.channels)+len(r.sessions))
	all = append(all, r.roots)
	for t := range maps.Values(r.channels) {
		all = append(all, t)
	}
	for t := range maps.Values(r.sessions) {
		all = append(all, t)
	}
	r.mu.Unlock()
	c := Census{Pages: make(map[State]int), Tenants: make(map[Kind]int), Calls: r.Running(), Reconnects: r.reconnects.Load()}
	for _, t := range all {
		c.Tenants[t.kind]++
		t.count(c.Pages)
	}
	return c
}

func (t *Tenant) count(pages map[State]int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range t.pages {
		pages[p.stateLocked()]++
	}
}
