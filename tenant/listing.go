package tenant

import (
	"slices"

	"jsbridge/manifest"
)

// listing is what several pages publish, in the order of the pages.
type listing struct {
	tools     []Entry
	prompts   []PromptEntry
	resources []ResourceEntry
	pages     []placed // that have declared something, in order of joining
}

// placed is a page in a listing.
type placed struct {
	page     *Page
	base     string // its prefix in its tenant
	prefix   string // its prefix here
	label    string
	declared *manifest.Manifest
	names    names
}

// names are what one page's declarations are published as, in their order.
type names struct{ tools, prompts, resources []string }

// name gives the page's declarations their names under its prefix here.
func (p *placed) name() {
	m, opts := p.declared, &p.page.tenant.reg.opts
	if p.bare() {
		p.names.tools = manifest.BareToolNames(p.prefix, m.Tools, opts.MaxName, opts.Reserved)
		p.names.prompts = manifest.BarePromptNames(p.prefix, m.Prompts, opts.MaxName, func(string) bool { return false })
	} else {
		p.names.tools = manifest.PublishedNames(p.prefix, m.Tools, opts.MaxName)
		p.names.prompts = manifest.PublishedPromptNames(p.prefix, m.Prompts, opts.MaxName)
	}
	p.names.resources = nil
	for _, r := range m.Resources {
		p.names.resources = append(p.names.resources, r.Published(p.prefix))
	}
}

// bare tells that the page's names go without its prefix. A second page of that
// name has another prefix, so that there is one in a view at most.
func (p *placed) bare() bool {
	bare := p.page.tenant.reg.opts.Bare
	return bare != "" && p.prefix == manifest.Slug(bare)
}

// add appends a page.
func (l *listing) add(p placed) {
	l.pages = append(l.pages, p)
	l.publish(&p)
}

// publish appends what a page declares, under its names.
func (l *listing) publish(p *placed) {
	from := func() source { return source{Page: p.page, Label: p.label, Origin: p.page.origin, memo: new(memo)} }
	for i, t := range p.declared.Tools {
		l.tools = append(l.tools, Entry{p.names.tools[i], t, from()})
	}
	for i, prompt := range p.declared.Prompts {
		l.prompts = append(l.prompts, PromptEntry{p.names.prompts[i], prompt, from()})
	}
	for i, r := range p.declared.Resources {
		l.resources = append(l.resources, ResourceEntry{p.names.resources[i], r, from()})
	}
}

// keep appends what another listing has of some pages.
func (l *listing) keep(from *listing, some func(*Page) bool) {
	for _, e := range from.tools {
		if some(e.Page) {
			l.tools = append(l.tools, e)
		}
	}
	for _, e := range from.prompts {
		if some(e.Page) {
			l.prompts = append(l.prompts, e)
		}
	}
	for _, e := range from.resources {
		if some(e.Page) {
			l.resources = append(l.resources, e)
		}
	}
}

// settle puts the resources in the order of their pages, and gives each a URI of
// its own: a page may choose an absolute one that an earlier page has.
func (l *listing) settle() {
	if len(l.resources) == 0 {
		return
	}
	rank := make(map[*Page]int, len(l.pages))
	for i, p := range l.pages {
		rank[p.page] = i
	}
	for i := range l.resources {
		l.resources[i].rank = rank[l.resources[i].Page]
	}
	slices.SortStableFunc(l.resources, func(a, b ResourceEntry) int { return a.rank - b.rank })
	taken := make(map[string]bool, len(l.resources))
	for i := range l.resources {
		e := &l.resources[i]
		if taken[e.URI] {
			e.URI, e.memo = e.Resource.Fallback(l.pages[e.rank].prefix), new(memo)
		}
		taken[e.URI] = true
	}
}

// Of gives what is published of one page.
func (l *listing) Of(p *Page) (tools []Entry, prompts []PromptEntry, resources []ResourceEntry) {
	var own listing
	own.keep(l, func(q *Page) bool { return q == p })
	return own.tools, own.prompts, own.resources
}
