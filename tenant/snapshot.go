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
	Page *Page
	// Label and Origin attribute the tool to its page.
	Label, Origin string

	memo *memo
}

// A memo keeps what somebody made of what it belongs to.
type memo struct {
	once  sync.Once
	value any
}

// Derive returns what build made of the entry the first time it was asked. Every
// snapshot that has the tool under this name shares it. Always pass the same
// function.
func (e Entry) Derive(build func(Entry) any) any {
	e.memo.once.Do(func() { e.memo.value = build(e) })
	return e.memo.value
}

// placed is a page in a snapshot.
type placed struct {
	page   *Page
	base   string // its prefix in its tenant
	prefix string // its prefix here
	label  string
}

// Snapshot is an immutable, sorted list of published tools. Sessions that see
// the same tools share one.
type Snapshot struct {
	entries []Entry
	pages   []placed // that have declared something, in order of joining
	memo    memo

	mu    sync.Mutex
	since weak.Pointer[Snapshot] // what left was compared with; it must not keep a chain of them
	left  []Departed             // since then
}

var noTools = newSnapshot(nil, nil)

func newSnapshot(entries []Entry, pages []placed) *Snapshot {
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return &Snapshot{entries: entries, pages: pages}
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
			s.left = append(s.left, Departed{p.prefix, p.label, p.page.origin, time.Now()})
		}
	}
	return s.left
}

// Entries is sorted by name and must not be changed.
func (s *Snapshot) Entries() []Entry { return s.entries }

// Find looks a published name up.
func (s *Snapshot) Find(name string) (Entry, bool) {
	i, ok := slices.BinarySearchFunc(s.entries, name, func(e Entry, n string) int {
		return strings.Compare(e.Name, n)
	})
	if !ok {
		return Entry{}, false
	}
	return s.entries[i], true
}

// Same tells whether a client that listed o has nothing new to learn from s.
func (s *Snapshot) Same(o *Snapshot) bool {
	return s == o || slices.EqualFunc(s.entries, o.entries, func(a, b Entry) bool {
		return a.Name == b.Name && a.Tool.Digest == b.Tool.Digest && a.Label == b.Label && a.Origin == b.Origin
	})
}

// Derive returns what build made of the entries the first time it was asked, so
// that every session of this snapshot shares it. Always pass the same function.
func (s *Snapshot) Derive(build func([]Entry) any) any {
	s.memo.once.Do(func() { s.memo.value = build(s.entries) })
	return s.memo.value
}
