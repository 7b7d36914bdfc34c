package tenant

import (
	"slices"
	"strings"
	"sync"
	"time"
	"weak"

	"jsbridge/manifest"
)

// Entry is one published tool.
type Entry struct {
	Name string // as published: prefix__tool
	Tool *manifest.Tool
	source
}

// PromptEntry is one published prompt.
type PromptEntry struct {
	Name   string // as published: prefix__prompt
	Prompt *manifest.Prompt
	source
}

// ResourceEntry is one published resource, or template of resources.
type ResourceEntry struct {
	URI      string // as published; an RFC 6570 template if Resource.Template
	Resource *manifest.Resource
	source
}

// source is where an entry comes from.
type source struct {
	Page *Page
	// Label and Origin attribute the entry to its page.
	Label, Origin string

	memo *memo
	rank int // of the page in the listing; of resources only
}

// A memo keeps what somebody made of what it belongs to.
type memo struct {
	once  sync.Once
	value any
}

func (m *memo) get(build func() any) any {
	m.once.Do(func() { m.value = build() })
	return m.value
}

// Derive returns what build made of the entry the first time it was asked. Every
// snapshot that has the tool under this name shares it. Always pass the same
// function.
func (e Entry) Derive(build func(Entry) any) any { return e.memo.get(func() any { return build(e) }) }

// Derive is [Entry.Derive] for a prompt.
func (e PromptEntry) Derive(build func(PromptEntry) any) any {
	return e.memo.get(func() any { return build(e) })
}

// Derive is [Entry.Derive] for a resource.
func (e ResourceEntry) Derive(build func(ResourceEntry) any) any {
	return e.memo.get(func() any { return build(e) })
}

// Snapshot is an immutable, sorted list of what is published. Sessions that see
// the same share one.
type Snapshot struct {
	listing
	templates []ResourceEntry // those of resources, in the order of their pages
	memo      memo

	mu    sync.Mutex
	since weak.Pointer[Snapshot] // what left was compared with; it must not keep a chain of them
	left  []Departed             // since then
}

var nothing = newSnapshot(listing{})

// newSnapshot sorts the listing and takes it over.
func newSnapshot(l listing) *Snapshot {
	l.settle()
	var templates []ResourceEntry
	for _, e := range l.resources {
		if e.Resource.Template {
			templates = append(templates, e)
		}
	}
	slices.SortFunc(l.tools, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(l.prompts, func(a, b PromptEntry) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(l.resources, func(a, b ResourceEntry) int { return strings.Compare(a.URI, b.URI) })
	return &Snapshot{listing: l, templates: templates}
}

// leftSince gives the pages that an earlier snapshot had and this one has not.
// Views that share both share the answer.
func (s *Snapshot) leftSince(earlier *Snapshot) []Departed {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since == weak.Make(earlier) {
		return s.left
	}
	here := make(map[*Page]bool, len(s.pages))
	for _, p := range s.pages {
		here[p.page] = true
	}
	s.since, s.left = weak.Make(earlier), nil
	for _, p := range earlier.pages {
		if !here[p.page] {
			d := Departed{Prefix: p.prefix, Label: p.label, Origin: p.page.origin, At: time.Now()}
			if p.bare() {
				d.bare = slices.Concat(p.names.tools, p.names.prompts)
			}
			s.left = append(s.left, d)
		}
	}
	return s.left
}

// Entries are the tools, sorted by name, and must not be changed.
func (s *Snapshot) Entries() []Entry { return s.tools }

// Prompts are sorted by name, and must not be changed.
func (s *Snapshot) Prompts() []PromptEntry { return s.prompts }

// Resources are sorted by URI, templates among them, and must not be changed.
func (s *Snapshot) Resources() []ResourceEntry { return s.resources }

// Find looks a tool's published name up.
func (s *Snapshot) Find(name string) (Entry, bool) {
	i, ok := slices.BinarySearchFunc(s.tools, name, func(e Entry, n string) int { return strings.Compare(e.Name, n) })
	if !ok {
		return Entry{}, false
	}
	return s.tools[i], true
}

// FindPrompt looks a prompt's published name up.
func (s *Snapshot) FindPrompt(name string) (PromptEntry, bool) {
	i, ok := slices.BinarySearchFunc(s.prompts, name, func(e PromptEntry, n string) int { return strings.Compare(e.Name, n) })
	if !ok {
		return PromptEntry{}, false
	}
	return s.prompts[i], true
}

// FindTemplate looks a published template up, as it is written.
func (s *Snapshot) FindTemplate(template string) (ResourceEntry, bool) {
	i, ok := slices.BinarySearchFunc(s.resources, template, func(e ResourceEntry, n string) int { return strings.Compare(e.URI, n) })
	if !ok || !s.resources[i].Resource.Template {
		return ResourceEntry{}, false
	}
	return s.resources[i], true
}

// Located is a resource that a URI leads to.
type Located struct {
	ResourceEntry
	// Own is the URI in the page's own form.
	Own string
	// Variables are those of the template; nil for a static resource.
	Variables map[string]string
}

// FindResource finds what a URI leads to: of the earliest page that has it the
// static resource, else the first template that it matches. A later page takes
// nothing over.
func (s *Snapshot) FindResource(uri string) (Located, bool) {
	i, ok := slices.BinarySearchFunc(s.resources, uri, func(e ResourceEntry, n string) int { return strings.Compare(e.URI, n) })
	ok = ok && !s.resources[i].Resource.Template
	for _, e := range s.templates {
		if ok && s.resources[i].rank <= e.rank {
			break
		}
		if own, variables, ok := e.Resource.Match(e.URI, uri); ok {
			return Located{e, own, variables}, true
		}
	}
	if !ok {
		return Located{}, false
	}
	e := s.resources[i]
	return Located{ResourceEntry: e, Own: e.Resource.URI}, true
}

// List is one of the lists that a client reads.
type List int

// The lists of a [Snapshot].
const (
	Tools List = iota
	Prompts
	Resources
	lists
)

// Lists is how many there are.
const Lists = int(lists)

// Same tells whether a client that read a list of o has nothing new to learn
// from s.
func (s *Snapshot) Same(o *Snapshot, l List) bool {
	if s == o {
		return true
	}
	switch l {
	case Prompts:
		return slices.EqualFunc(s.prompts, o.prompts, func(a, b PromptEntry) bool {
			return a.Name == b.Name && a.Prompt.Digest == b.Prompt.Digest && a.says(b.source)
		})
	case Resources:
		return slices.EqualFunc(s.resources, o.resources, func(a, b ResourceEntry) bool {
			return a.URI == b.URI && a.Resource.Digest == b.Resource.Digest && a.says(b.source)
		})
	}
	return slices.EqualFunc(s.tools, o.tools, func(a, b Entry) bool {
		return a.Name == b.Name && a.Tool.Digest == b.Tool.Digest && a.says(b.source)
	})
}

func (s source) says(o source) bool { return s.Label == o.Label && s.Origin == o.Origin }

// Derive returns what build made of the snapshot the first time it was asked, so
// that every session of it shares that. Always pass the same function.
func (s *Snapshot) Derive(build func(*Snapshot) any) any {
	return s.memo.get(func() any { return build(s) })
}
