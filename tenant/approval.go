package tenant

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"time"
)

// Pages that wait for approval at one time: in all, and of one origin, so that
// no site keeps another from being asked for. They wait for so long.
const (
	maxWaiting       = 32
	maxWaitingOrigin = 8
	waitFor          = 10 * time.Minute
)

var (
	errWaiting       = errors.New("too many pages wait for approval: approve or refuse some, then try again")
	errWaitingOrigin = errors.New("too many pages of this origin wait for approval")
)

// beginWaitLocked makes a new page pending. tenant.mu must be held; it takes no
// other lock while it does, hence the count's own.
func (p *Page) beginWaitLocked() error {
	if err := p.tenant.reg.addWaiting(p.origin); err != nil {
		return err
	}
	p.pending = true
	p.since = time.Now()
	p.expiry = time.AfterFunc(waitFor, func() { p.refuse(NotApproved, true) })
	return nil
}

// endWaitLocked ends the wait, if it was one. What comes back is to be called
// without the lock.
func (p *Page) endWaitLocked() (after func()) {
	if !p.pending {
		return func() {}
	}
	p.pending = false
	p.expiry.Stop()
	return func() { p.tenant.reg.removeWaiting(p.origin) }
}

func (r *Registry) addWaiting(origin string) error {
	r.waitMu.Lock()
	defer r.waitMu.Unlock()
	total := 0
	for _, n := range r.waiting {
		total += n
	}
	switch {
	case total >= maxWaiting:
		return errWaiting
	case r.waiting[origin] >= maxWaitingOrigin:
		return errWaitingOrigin
	}
	r.waiting[origin]++
	return nil
}

func (r *Registry) removeWaiting(origin string) {
	r.waitMu.Lock()
	defer r.waitMu.Unlock()
	if r.waiting[origin]--; r.waiting[origin] <= 0 {
		delete(r.waiting, origin)
	}
}

// approve publishes a page that waited.
func (p *Page) approve() {
	t := p.tenant
	t.mu.Lock()
	if !p.pending || p.gone {
		t.mu.Unlock()
		return
	}
	ended := p.endWaitLocked()
	t.shown.Store(true)
	after, reg := p.publishLocked()
	l, declared := p.link, p.manifest != nil
	t.mu.Unlock()
	ended()
	after()
	if l != nil {
		if declared {
			l.transport.Approved(&reg)
		} else {
			l.transport.Approved(nil)
		}
	}
}

// refuse takes a page out and says why; onlyPending leaves one alone that has
// just been approved. It tells whether it did.
func (p *Page) refuse(why Reason, onlyPending bool) bool {
	t := p.tenant
	t.mu.Lock()
	if p.gone || onlyPending && !p.pending {
		t.mu.Unlock()
		return false
	}
	l, name := p.link, p.nameLocked()
	after := t.removeLocked(p)
	t.mu.Unlock()
	after()
	if l != nil {
		l.finish(outcome{err: &CallError{Kind: PageGone, MayHaveRun: true, page: name}}, Departure{})
		l.transport.Close(why)
	}
	return true
}

// Recheck brings every root connection and channel in line with
// [Options.Allow], which now may say something else: pages that waited are
// published, others are refused.
func (r *Registry) Recheck() {
	r.recheck.Lock() // or an older answer of Allow could overtake a newer one
	defer r.recheck.Unlock()
	for _, t := range r.named() {
		t.recheck()
	}
	r.Note() // what is allowed may have changed also when no page is concerned
}

func (r *Registry) named() []*Tenant {
	return append(r.allChannels(), r.roots)
}

func (t *Tenant) recheck() {
	t.mu.Lock()
	pages := slices.Clone(t.pages)
	waits := make([]bool, len(pages))
	for i, p := range pages {
		waits[i] = p.pending
	}
	t.mu.Unlock()
	for i, p := range pages {
		switch allowed := t.reg.opts.Allow(p.origin, p.remote); {
		case allowed && waits[i]:
			p.approve()
		case !allowed && !waits[i]:
			p.refuse(Refused, false)
		}
	}
}

// Refuse sends the pages of an origin that wait for approval away. It returns
// how many there were.
func (r *Registry) Refuse(origin string) int {
	n := 0
	for _, t := range r.named() {
		for _, p := range t.waitingPages() {
			if p.origin == origin && p.refuse(Refused, true) {
				n++
			}
		}
	}
	return n
}

func (t *Tenant) waitingPages() []*Page {
	t.mu.Lock()
	defer t.mu.Unlock()
	var pages []*Page
	for _, p := range t.pages {
		if p.pending {
			pages = append(pages, p)
		}
	}
	return pages
}

// Waiting is an origin whose pages wait for approval.
type Waiting struct {
	Origin string
	Pages  int
	// Since is when the first of them came.
	Since time.Time
}

// Waiting lists the origins that wait for approval, by name.
func (r *Registry) Waiting() []Waiting {
	found := make(map[string]Waiting)
	for _, t := range r.named() {
		for _, p := range t.waitingPages() {
			w, ok := found[p.origin]
			if !ok || p.since.Before(w.Since) {
				w.Since = p.since
			}
			w.Origin = p.origin
			w.Pages++
			found[p.origin] = w
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b Waiting) int { return cmp.Compare(a.Origin, b.Origin) })
}
