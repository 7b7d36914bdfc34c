package tenant

import (
	"fmt"
	"maps"
	"time"
)

const (
	// maxWatches bounds the resources that one view watches.
	maxWatches = 1000
	// updateQuiet gathers a page's updates: it may send any number of them.
	updateQuiet = 20 * time.Millisecond
)

// subscription is one watched URI of a view. The page that has it may come and go.
type subscription struct {
	count int // of those who watch
	page  *Page
	own   string // in the page's own form
	bound bool   // it has had a page
}

// Watch has the function of [View.Updates] called when a resource changes, also one
// that is not there yet. It counts: each call is undone by one of [View.Unwatch]. The
// error is a [*LimitError] or [ErrNoTenant].
func (v *View) Watch(uri string) error {
	v.mu.Lock()
	w := v.watches[uri]
	switch {
	case v.closed:
		v.mu.Unlock()
		return ErrNoTenant
	case w == nil && len(v.watches) >= maxWatches:
		v.mu.Unlock()
		return &LimitError{What: "watched resources", Max: maxWatches, Flag: "resources/unsubscribe ends one"}
	case w == nil:
		w = new(subscription)
		v.watches[uri] = w
	}
	w.count++
	touched := v.bindLocked(uri, w, v.snapshotLocked())
	v.mu.Unlock()
	touched.sync()
	return nil
}

// Unwatch undoes one [View.Watch].
func (v *View) Unwatch(uri string) {
	v.mu.Lock()
	var touched pages
	if w := v.watches[uri]; w != nil {
		w.count--
		touched = v.bindLocked(uri, w, v.snapshotLocked())
	}
	v.mu.Unlock()
	touched.sync()
}

// Rebind finds the pages that have the watched resources now. Call it after the
// view has changed.
func (v *View) Rebind() {
	v.mu.Lock()
	snap := v.snapshotLocked()
	if !v.closed && v.rebound == snap {
		v.mu.Unlock()
		return
	}
	v.rebound = snap
	var touched pages
	var moved []string
	for uri, w := range v.watches {
		again := w.bound
		more := v.bindLocked(uri, w, snap)
		if again && len(more) > 0 && w.page != nil { // nobody knows whether it says the same
			moved = append(moved, uri)
		}
		touched = append(touched, more...)
	}
	updated := v.updated
	v.mu.Unlock()
	touched.sync()
	if len(moved) > 0 && updated != nil {
		updated(moved)
	}
}

// bindLocked gives a watched URI the page that has it now.
func (v *View) bindLocked(uri string, w *subscription, snap *Snapshot) (touched pages) {
	var page *Page
	var own string
	if w.count <= 0 || v.closed {
		delete(v.watches, uri)
	} else if r, ok := snap.FindResource(uri); ok {
		page, own = r.Page, r.Own
	}
	if page == w.page && own == w.own {
		return nil
	}
	if w.page != nil {
		w.page.watch(w.own, -1)
		touched = append(touched, w.page)
	}
	if page != nil {
		page.watch(own, 1)
		touched = append(touched, page)
		w.bound = true
	}
	w.page, w.own = page, own
	return touched
}

// pages are those whose watched resources may have changed.
type pages []*Page

func (all pages) sync() {
	for _, p := range all {
		p.syncWatches()
	}
}

// Updates sets the function that hears which watched resources, by their
// published URIs, have changed. It must return at once. Call it before
// [View.Watch].
func (v *View) Updates(updated func(uris []string)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.updated = updated
}

// tellUpdated passes on which of a page's resources changed.
func (v *View) tellUpdated(p *Page, own map[string]bool) {
	var uris []string
	v.mu.Lock()
	for uri, w := range v.watches {
		if w.page == p && own[w.own] {
			uris = append(uris, uri)
		}
	}
	updated := v.updated
	v.mu.Unlock()
	if len(uris) > 0 && updated != nil {
		updated(uris)
	}
}

// watch counts the views that watch a resource. View.mu may be held.
func (p *Page) watch(own string, by int) {
	p.tenant.mu.Lock()
	defer p.tenant.mu.Unlock()
	if p.watched == nil {
		p.watched = make(map[string]int)
	}
	if p.watched[own] += by; p.watched[own] == 0 {
		delete(p.watched, own)
	}
}

func (p *Page) syncWatches() {
	p.tenant.mu.Lock()
	l := p.link
	p.tenant.mu.Unlock()
	if l != nil {
		l.syncWatches()
	}
}

// syncWatches tells the page which resources are watched, once it has declared
// some. No lock may be held.
func (l *Link) syncWatches() {
	l.watching.Lock()
	defer l.watching.Unlock()
	l.tenant.mu.Lock()
	var want map[string]int
	if p := l.page; p.link == l && p.declared {
		want = maps.Clone(p.watched)
	}
	l.tenant.mu.Unlock()
	for own := range l.told {
		if want[own] <= 0 {
			delete(l.told, own)
			l.transport.Watch(own, false)
		}
	}
	for own, n := range want {
		if n > 0 && !l.told[own] {
			if l.told == nil {
				l.told = make(map[string]bool)
			}
			l.told[own] = true
			l.transport.Watch(own, true)
		}
	}
}

// Updated tells that a resource has changed, by its own URI. One that nobody
// watches is ignored.
func (l *Link) Updated(own string) {
	l.tenant.mu.Lock()
	defer l.tenant.mu.Unlock()
	if p := l.page; p.link == l && p.watched[own] > 0 {
		p.updatedLocked(own)
	}
}

// Watched tells the page which of its resources are watched. Call it once a
// registration was acknowledged. After a reload all of them count as changed:
// nobody knows what happened meanwhile.
func (l *Link) Watched() {
	l.syncWatches()
	l.tenant.mu.Lock()
	defer l.tenant.mu.Unlock()
	if !l.back.Swap(false) {
		return
	}
	for own := range l.page.watched {
		l.page.updatedLocked(own)
	}
}

func (p *Page) updatedLocked(own string) {
	if p.updated == nil {
		p.updated = make(map[string]bool)
		time.AfterFunc(updateQuiet, p.tellUpdated)
	}
	p.updated[own] = true
}

func (p *Page) tellUpdated() {
	p.tenant.mu.Lock()
	own := p.updated
	p.updated = nil
	p.tenant.mu.Unlock()
	for _, v := range p.tenant.audience.all() {
		v.tellUpdated(p, own)
	}
}

// Complain tells the page's developer, in its console, what is wrong with what the
// page gave. Without a page it does nothing.
func (s source) Complain(format string, args ...any) {
	p := s.Page
	if p == nil {
		return
	}
	p.tenant.mu.Lock()
	l := p.link
	p.tenant.mu.Unlock()
	if l != nil {
		l.transport.Complain(fmt.Sprintf(format, args...))
	}
}
