package tenant

import (
	"encoding/json"
	"testing"
)

// echoPage is a socket whose page answers each call at once, from another goroutine.
type echoPage struct {
	fakePage
	calls chan CallFrame
}

func (p *echoPage) Call(c CallFrame) error {
	p.calls <- c
	return nil
}

// BenchmarkPageCall is a call from the look-up of its page to the page's answer,
// without any encoding.
func BenchmarkPageCall(b *testing.B) {
	r := NewRegistry(Options{})
	defer r.Close()
	page := &echoPage{calls: make(chan CallFrame, 1)}
	link, err := r.Join(ParseConnect("app"), Joining{Origin: local, Transport: page})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := link.Register(declare(b, "", "a")); err != nil {
		b.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for c := range page.calls {
			_ = link.Answer(c.ID, Answer{Result: c.Args})
		}
	}()
	defer func() { // of the page before the registry
		close(page.calls)
		<-ended
	}()
	p, ok := r.Page(link.ID())
	if !ok {
		b.Fatal("the page is not there")
	}
	tool := p.Info().Tools[0].Tool
	args := json.RawMessage(`{"text":"x"}`)
	b.ReportAllocs()
	for b.Loop() {
		if a, err := p.Call(b.Context(), tool, Call{Args: args}); err != nil || len(a.Result) != len(args) {
			b.Fatalf("%s, error %v", a.Result, err)
		}
	}
}
