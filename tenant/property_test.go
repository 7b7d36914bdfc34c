package tenant

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestPrefixesStayWhateverHappens: in a view a page's prefix changes by its own
// rename only, no name is there twice, and each leads to its own page.
func TestPrefixesStayWhateverHappens(t *testing.T) {
	for seed := range int64(100) {
		synctest.Test(t, func(t *testing.T) {
			rnd := rand.New(rand.NewSource(seed))
			r := NewRegistry(Options{})
			defer r.Close()
			views := []*watched{watch(t, r), watch(t, r), watch(t, r)}
			names := []string{"app", "app2", "app3", "b", "a-very-long-name-that-is-cut-off"}
			dests := []string{"", "c1:", "c2:"}
			for i := range views {
				dests = append(dests, views[i].Own().ID())
			}
			type live struct {
				f       *fakePage
				connect string
				inst    string
			}
			var pages []*live
			type key struct {
				v int
				p *Page
			}
			last := map[key]string{}
			check := func(renamed *Page) {
				for vi, v := range views {
					s := v.Snapshot()
					seenP := map[string]bool{}
					now := map[key]string{}
					for _, p := range s.pages {
						k := key{vi, p.page}
						if seenP[p.prefix] {
							t.Fatalf("seed %d: prefix %s twice", seed, p.prefix)
						}
						seenP[p.prefix] = true
						now[k] = p.prefix
						if was, ok := last[k]; ok && was != p.prefix && p.page != renamed {
							t.Fatalf("seed %d: a prefix went from %s to %s", seed, was, p.prefix)
						}
					}
					for k := range last {
						if k.v == vi {
							delete(last, k)
						}
					}
					for k, p := range now {
						last[k] = p
					}
					seenN := map[string]bool{}
					for _, e := range s.Entries() {
						if seenN[e.Name] {
							t.Fatalf("seed %d: name %s twice", seed, e.Name)
						}
						seenN[e.Name] = true
						pre, _, _ := strings.Cut(e.Name, "__")
						if now[key{vi, e.Page}] != pre {
							t.Fatalf("seed %d: %s routed to page of %s", seed, e.Name, now[key{vi, e.Page}])
						}
					}
				}
			}
			join := func(p *live) {
				f := &fakePage{alive: true}
				l, err := r.Join(ParseConnect(p.connect), Joining{Instance: p.inst, Origin: local, Probes: true, Transport: f})
				if err != nil {
					t.Fatal(err)
				}
				f.link = l
				p.f = f
				if _, err := l.Register(declare(t, names[rnd.Intn(len(names))], "x", "y")); err != nil {
					t.Fatal(err)
				}
			}
			for step := range 120 {
				var renamed *Page
				switch rnd.Intn(9) {
				case 0, 1, 2:
					d := dests[rnd.Intn(len(dests))]
					if !strings.Contains(d, "-") {
						d += names[rnd.Intn(len(names))]
					}
					p := &live{connect: d, inst: fmt.Sprintf("instance-%d-%d", seed, step)}
					join(p)
					pages = append(pages, p)
				case 3:
					if len(pages) > 0 {
						i := rnd.Intn(len(pages))
						pages[i].f.link.Leave()
						pages = append(pages[:i], pages[i+1:]...)
					}
				case 4:
					if len(pages) > 0 {
						p := pages[rnd.Intn(len(pages))]
						p.f.link.Closed(Departure{MayReturn: true})
						time.Sleep(time.Duration(rnd.Intn(4)) * time.Second)
						join(p)
					}
				case 5:
					if len(pages) > 0 {
						p := pages[rnd.Intn(len(pages))]
						renamed = p.f.link.page
						_, _ = p.f.link.Rename(names[rnd.Intn(len(names))])
					}
				case 6:
					_ = views[rnd.Intn(3)].Join([]string{"c1", "c2"}[rnd.Intn(2)])
				case 7:
					_ = views[rnd.Intn(3)].Leave([]string{"c1", "c2"}[rnd.Intn(2)])
				case 8:
					time.Sleep(time.Duration(rnd.Intn(20)) * time.Second)
				}
				if rnd.Intn(3) > 0 || renamed != nil {
					check(renamed)
				}
			}
		})
		if t.Failed() {
			return
		}
	}
}
