package dashboard

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"jsbridge/manifest"
	"jsbridge/tenant"
)

// answering is a page that answers each call at once.
type answering struct{ link *tenant.Link }

func (a *answering) Call(c tenant.CallFrame) error {
	go func() { _ = a.link.Answer(c.ID, tenant.Answer{Result: json.RawMessage(`{"ok":true}`)}) }()
	return nil
}
func (*answering) Cancel(string, string)         {}
func (*answering) Probe()                        {}
func (*answering) Answer(string, tenant.Answer)  {}
func (*answering) Watch(string, bool)            {}
func (*answering) Complain(string)               {}
func (*answering) Identify(string)               {}
func (*answering) Approved(*tenant.Registration) {}
func (*answering) Registered(tenant.Registration) {
}
func (*answering) Move(tenant.Connect) {}
func (*answering) Close(tenant.Reason) {}

// join brings a page into a registry.
func join(t testing.TB, r *tenant.Registry, connect string, tools int) *tenant.Page {
	t.Helper()
	a := new(answering)
	l, err := r.Join(tenant.ParseConnect(connect), tenant.Joining{Origin: "http://localhost", Transport: a})
	if err != nil {
		t.Fatal(err)
	}
	a.link = l
	list := []map[string]string{}
	for i := range tools {
		list = append(list, map[string]string{"name": fmt.Sprint("t", i)})
	}
	frame, _ := json.Marshal(map[string]any{"tools": list})
	m, err := manifest.Parse(frame, manifest.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Register(m); err != nil {
		t.Fatal(err)
	}
	p, _ := r.Page(l.ID())
	return p
}

// BenchmarkCall is what the journal costs a call, beside all that a call costs
// anyway but for its sockets.
func BenchmarkCall(b *testing.B) {
	for name, o := range map[string]tenant.Observer{"unobserved": nil, "observed": NewJournal(false)} {
		b.Run(name, func(b *testing.B) {
			r := tenant.NewRegistry(tenant.Options{Observer: o})
			defer r.Close()
			p := join(b, r, "app", 1)
			tool := p.Info().Tools[0].Tool
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.Call(b.Context(), tool, tenant.Call{Args: json.RawMessage(`{"n":1}`), Shown: "app__t0"}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkLook is one look at 200 pages of 50 tools, with 125 calls since the last.
func BenchmarkLook(b *testing.B) {
	h, r, j := newTestHub(b)
	for i := range 200 {
		join(b, r, fmt.Sprint("app", i), 50)
	}
	for b.Loop() {
		var calls sync.WaitGroup
		for range 125 {
			calls.Go(func() { begin(j, "s1", `{}`).End(result("1"), nil) })
		}
		calls.Wait()
		h.mu.Lock()
		h.lookLocked()
		h.mu.Unlock()
	}
}
