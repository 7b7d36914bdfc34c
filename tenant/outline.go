package tenant

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// Outline is what is known of a page, without what it declares. Two of them may
// be compared with ==.
type Outline struct {
	ID, Label, Prefix, Origin string
	URL, Title, Summary       string
	Kind                      Kind
	Channel                   string // the channel's name, "" elsewhere
	State                     State
	Current                   bool // its script speaks version 1 of the page protocol
	Bare                      bool // its names are published without its prefix
	Since                     time.Time
	// How much it declares, and how much of that was refused.
	ToolCount, PromptCount, ResourceCount, ProblemCount int
	// Rev grows whenever what it declares, or is published as, may have changed.
	Rev uint64
}

// Outline describes the page as it is now, with the prefix that it has in its own
// tenant.
func (p *Page) Outline() Outline {
	p.tenant.mu.Lock()
	defer p.tenant.mu.Unlock()
	return p.outlineLocked()
}

func (p *Page) outlineLocked() Outline {
	o := Outline{ID: p.id, Label: p.labelLocked(), Prefix: p.prefix, Origin: p.origin, Kind: p.tenant.kind, State: p.stateLocked(),
		Current: p.link != nil && p.link.probes, Since: p.joined, Rev: p.rev}
	if o.Kind == Channel {
		o.Channel = p.tenant.id
	}
	if m := p.manifest; m != nil {
		here := p.placedLocked()
		o.URL, o.Title, o.Summary = m.URL, m.Title, m.Summary
		o.Bare = here.bare()
		o.ToolCount, o.PromptCount, o.ResourceCount, o.ProblemCount = len(m.Tools), len(m.Prompts), len(m.Resources), len(m.Problems)
	}
	return o
}

func (p *Page) labelLocked() string { return cmp.Or(p.label, p.wanted) }

// Kind tells what kind of tenant this is.
func (t *Tenant) Kind() Kind { return t.kind }

// Outlines describes all pages in order of joining, those that wait for approval
// among them: they are for a human's eyes.
func (t *Tenant) Outlines() []Outline {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]Outline, 0, len(t.pages))
	for _, p := range t.pages {
		all = append(all, p.outlineLocked())
	}
	return all
}

// Tenants are all that live: the roots, the channels by name, then those of
// workspaces and sessions.
func (r *Registry) Tenants() []*Tenant {
	r.mu.Lock()
	defer r.mu.Unlock()
	byID := func(a, b *Tenant) int { return cmp.Or(cmp.Compare(b.kind, a.kind), strings.Compare(a.id, b.id)) }
	return slices.Concat([]*Tenant{r.roots}, slices.SortedFunc(maps.Values(r.channels), byID), slices.SortedFunc(maps.Values(r.sessions), byID))
}

// Page finds a page by its id, in whichever tenant, also one that waits for
// approval.
func (r *Registry) Page(id string) (*Page, bool) {
	for _, t := range r.Tenants() {
		if p := t.pageByID(id); p != nil {
			return p, true
		}
	}
	return nil, false
}

func (t *Tenant) pageByID(id string) *Page {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range t.pages {
		if p.id == id {
			return p
		}
	}
	return nil
}

// Tenant is where the page is.
func (p *Page) Tenant() *Tenant { return p.tenant }
