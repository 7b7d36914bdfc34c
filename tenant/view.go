package tenant

import (
	"errors"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"jsbridge/manifest"
)

const (
	// departedKept bounds how many gone pages a view remembers for its error
	// messages.
	departedKept = 32
	// maxJoined bounds the channels of one view.
	maxJoined = 64
)

// ErrNotJoined is returned for a channel that the view does not have.
var ErrNotJoined = errors.New("this session has not joined that channel")

// View is what one MCP session sees: its own tenant's pages, then those of the
// channels it joined, then all root connections.
//
// While only one of these has pages, its snapshot is the view's, shared with
// every view alike. Otherwise they are merged, and of two pages with one prefix
// the one that came later into the view has an ordinal, which it keeps there as
// long as it has its prefix.
type View struct {
	reg    *Registry
	own    *Tenant
	notify func()

	mu       sync.Mutex
	channels []string    // in order of joining
	parts    []*Snapshot // that last was made of
	last     *Snapshot
	clash    bool                     // last has a prefix that differs from the page's own
	departed []Departed               // oldest first, at most departedKept
	watches  map[string]*subscription // by published URI
	updated  func(uris []string)
	rebound  *Snapshot // that the watches were bound by
	closed   bool
}

// Departed is a page that left.
type Departed struct {
	Prefix, Label, Origin string
	At                    time.Time

	bare []string // its names without a prefix
}

// NewView makes a view with t as its own tenant. notify is called whenever the
// view may have changed, from whichever goroutine changed it, and must return at
// once. End it with [View.Close].
func (t *Tenant) NewView(notify func()) *View {
	v := &View{reg: t.reg, own: t, notify: notify, watches: make(map[string]*subscription), last: nothing}
	t.audience.add(v)
	t.reg.roots.audience.add(v)
	t.reg.Note()
	return v
}

// Close ends the view, and with it a session's own tenant.
func (v *View) Close() {
	v.mu.Lock()
	v.closed = true // from now on it joins nothing
	v.mu.Unlock()
	v.Rebind() // it watches nothing any more
	v.LeaveAll()
	v.own.audience.remove(v)
	v.reg.roots.audience.remove(v)
	v.reg.Note()
	if v.own.kind == Session {
		v.own.Close()
	} else {
		v.own.watchEmptiness()
	}
}

// Own is the view's own tenant.
func (v *View) Own() *Tenant { return v.own }

// Join adds a channel, which need not exist yet, unless the view has it. The
// error is a [*LimitError].
func (v *View) Join(channel string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case v.closed || slices.Contains(v.channels, channel):
		return nil
	case len(v.channels) >= maxJoined:
		return &LimitError{What: "joined channels", Max: maxJoined, Flag: "leave_channel leaves one"}
	}
	v.channels = append(v.channels, channel)
	v.reg.Note()
	v.reg.mu.Lock()
	v.reg.audienceLocked(channel).add(v)
	v.reg.mu.Unlock()
	return nil
}

// Leave takes a channel out. The error is [ErrNotJoined].
func (v *View) Leave(channel string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	i := slices.Index(v.channels, channel)
	if i < 0 {
		return ErrNotJoined
	}
	v.channels = slices.Delete(v.channels, i, i+1)
	v.reg.Note()
	v.reg.mu.Lock()
	defer v.reg.mu.Unlock()
	v.reg.audienceLocked(channel).remove(v)
	v.reg.dropAudienceLocked(channel)
	return nil
}

// LeaveAll takes all channels out and returns which they were.
func (v *View) LeaveAll() []string {
	left := v.Joined()
	for _, c := range left {
		_ = v.Leave(c) // another goroutine may have left it meanwhile
	}
	return left
}

// Joined are the channels, in order of joining.
func (v *View) Joined() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.channels)
}

// tenants are those that the view has now. v.mu must be held.
func (v *View) tenantsLocked() iter.Seq[*Tenant] {
	return func(yield func(*Tenant) bool) {
		if !yield(v.own) {
			return
		}
		for _, c := range v.channels {
			if t, ok := v.reg.Channel(c); ok && !yield(t) {
				return
			}
		}
		yield(v.reg.roots)
	}
}

// Pages are all pages of the view, in its order.
func (v *View) Pages() []*Page {
	v.mu.Lock()
	all := slices.Collect(v.tenantsLocked())
	v.mu.Unlock()
	var pages []*Page
	for _, t := range all {
		pages = append(pages, t.Pages()...)
	}
	return pages
}

// Info describes a page with the names that it has in this view.
func (v *View) Info(p *Page) Info {
	info := p.Info()
	snap := v.Snapshot()
	for _, here := range snap.pages {
		if here.page != p || here.prefix == info.Prefix {
			continue
		}
		info.Prefix = here.prefix
		info.Tools, info.Prompts, info.Resources = snap.Of(p)
	}
	return info
}

// Snapshot is what is published in this view right now.
func (v *View) Snapshot() *Snapshot {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.snapshotLocked()
}

func (v *View) snapshotLocked() *Snapshot {
	same := 0 // of the parts; all, usually
	for t := range v.tenantsLocked() {
		if s := t.Snapshot(); len(s.pages) > 0 {
			if same == len(v.parts) || v.parts[same] != s {
				return v.newSnapshotLocked()
			}
			same++
		}
	}
	if same < len(v.parts) {
		return v.newSnapshotLocked()
	}
	return v.last
}

func (v *View) newSnapshotLocked() *Snapshot {
	var parts []*Snapshot
	for t := range v.tenantsLocked() {
		if s := t.Snapshot(); len(s.pages) > 0 {
			parts = append(parts, s)
		}
	}
	next := v.mergeLocked(parts)
	v.noteDeparted(next)
	v.parts, v.last = parts, next
	return v.last
}

// Departed finds a page that left and had this published name, or at least its
// prefix.
func (v *View) Departed(published string) (Departed, bool) {
	v.Snapshot() // notes who left since
	prefix, _, prefixed := strings.Cut(published, "__")
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, d := range slices.Backward(v.departed) {
		if prefixed && d.Prefix == prefix || slices.Contains(d.bare, published) {
			return d, true
		}
	}
	return Departed{}, false
}

func (v *View) noteDeparted(next *Snapshot) {
	v.departed = append(v.departed, next.leftSince(v.last)...)
	if extra := len(v.departed) - departedKept; extra > 0 {
		v.departed = slices.Delete(v.departed, 0, extra)
	}
}

// mergeLocked makes the view's snapshot of those of its tenants.
func (v *View) mergeLocked(parts []*Snapshot) *Snapshot {
	if len(parts) == 1 && !v.clash { // no page has a prefix of this view's own to keep
		return parts[0]
	}
	pages, clash := v.placeLocked(parts)
	switch v.clash = clash; {
	case len(parts) == 0:
		return nothing
	case len(parts) == 1 && !clash:
		return parts[0]
	}
	here := make(map[*Page]bool, len(pages)) // with the prefix of its tenant
	for _, p := range pages {
		here[p.page] = p.prefix == p.base
	}
	l := listing{pages: pages}
	for _, s := range parts {
		l.keep(&s.listing, func(p *Page) bool { return here[p] })
		for i := range s.pages {
			if p := &pages[i]; !here[p.page] {
				p.name()
				l.publish(p)
			}
		}
		pages = pages[len(s.pages):]
	}
	return newSnapshot(l)
}

// placeLocked decides each page's prefix in this view, and tells whether any
// differs from the one in its tenant.
func (v *View) placeLocked(parts []*Snapshot) (pages []placed, clash bool) {
	before := make(map[*Page]placed, len(v.last.pages))
	for _, p := range v.last.pages {
		before[p.page] = p
	}
	taken := make(map[string]bool)
	for _, s := range parts {
		for _, p := range s.pages {
			// A renamed page is placed anew.
			if b, ok := before[p.page]; ok && b.base == p.base {
				p.prefix = b.prefix
				taken[p.prefix] = true
			} else {
				p.prefix = ""
			}
			pages = append(pages, p)
		}
	}
	for i := range pages {
		p := &pages[i]
		if p.prefix == "" {
			p.prefix = p.base
			for n := 2; taken[p.prefix]; n++ {
				p.prefix = manifest.SlugOrdinal(p.base, n)
			}
			taken[p.prefix] = true
		}
		clash = clash || p.prefix != p.base
	}
	return pages, clash
}
