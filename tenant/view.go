package tenant

import (
	"errors"
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
	clash    bool       // last has a prefix that differs from the page's own
	departed []Departed // oldest first, at most departedKept
	closed   bool
}

// Departed is a page that left.
type Departed struct {
	Prefix, Label, Origin string
	At                    time.Time
}

// NewView makes a view with t as its own tenant. notify is called whenever the
// view may have changed, from whichever goroutine changed it, and must return at
// once. End it with [View.Close].
func (t *Tenant) NewView(notify func()) *View {
	v := &View{reg: t.reg, own: t, notify: notify, last: noTools}
	t.audience.add(v)
	t.reg.roots.audience.add(v)
	return v
}

// Close ends the view, and with it a session's own tenant.
func (v *View) Close() {
	v.mu.Lock()
	v.closed = true // from now on it joins nothing
	v.mu.Unlock()
	v.LeaveAll()
	v.own.audience.remove(v)
	v.reg.roots.audience.remove(v)
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
func (v *View) tenantsLocked() []*Tenant {
	all := []*Tenant{v.own}
	for _, c := range v.channels {
		if t, ok := v.reg.Channel(c); ok {
			all = append(all, t)
		}
	}
	return append(all, v.reg.roots)
}

// Pages are all pages of the view, in its order.
func (v *View) Pages() []*Page {
	v.mu.Lock()
	all := v.tenantsLocked()
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
		info.Tools = nil
		for _, e := range snap.entries {
			if e.Page == p {
				info.Tools = append(info.Tools, e)
			}
		}
	}
	return info
}

// seen gives a page's registration the names that it has in this view.
func (v *View) seen(p *Page, reg Registration) Registration {
	info := v.Info(p)
	if info.Prefix == reg.Prefix {
		return reg
	}
	names := make(map[*manifest.Tool]string, len(info.Tools))
	for _, e := range info.Tools {
		names[e.Tool] = e.Name
	}
	reg.Prefix = info.Prefix
	reg.Names = slices.Clone(reg.Names)
	for i, t := range reg.Tools {
		if n := names[t]; n != "" {
			reg.Names[i] = n
		}
	}
	return reg
}

// Snapshot is the list of tools published in this view right now.
func (v *View) Snapshot() *Snapshot {
	v.mu.Lock()
	defer v.mu.Unlock()
	var parts []*Snapshot
	for _, t := range v.tenantsLocked() {
		if s := t.Snapshot(); len(s.pages) > 0 {
			parts = append(parts, s)
		}
	}
	if !slices.Equal(parts, v.parts) {
		next := v.mergeLocked(parts)
		v.noteDeparted(next)
		v.parts, v.last = parts, next
	}
	return v.last
}

// Departed finds a page that left and had the prefix of this published name.
func (v *View) Departed(published string) (Departed, bool) {
	prefix, _, ok := strings.Cut(published, "__")
	if !ok {
		return Departed{}, false
	}
	v.Snapshot() // notes who left since
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, d := range slices.Backward(v.departed) {
		if d.Prefix == prefix {
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
		return noTools
	case len(parts) == 1 && !clash:
		return parts[0]
	}
	own := make(map[*Page]string, len(pages)) // prefixes that differ from the page's in its tenant
	for _, p := range pages {
		if p.prefix != p.base {
			own[p.page] = p.prefix
		}
	}
	var entries []Entry
	for _, s := range parts {
		for _, e := range s.entries {
			if own[e.Page] == "" {
				entries = append(entries, e)
			}
		}
		for _, p := range s.pages {
			if prefix := own[p.page]; prefix != "" {
				entries = append(entries, s.renamed(p.page, prefix, v.reg.opts.MaxName)...)
			}
		}
	}
	return newSnapshot(entries, pages)
}

// renamed gives the entries of one page under another prefix.
func (s *Snapshot) renamed(p *Page, prefix string, maxName int) []Entry {
	var entries []Entry
	var tools []*manifest.Tool
	for _, e := range s.entries {
		if e.Page == p {
			entries = append(entries, e)
			tools = append(tools, e.Tool)
		}
	}
	for i, name := range manifest.PublishedNames(prefix, tools, maxName) {
		entries[i].Name, entries[i].memo = name, new(memo)
	}
	return entries
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
