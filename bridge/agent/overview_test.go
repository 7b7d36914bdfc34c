package agent

import (
	"encoding/json"
	"strings"
	"testing"

	"jsbridge/tenant"
)

// runs calls a page's tool as the dashboard does.
func (s *side) runs(l *tenant.Link, tool, args string) (res struct {
	Content []struct{ Type, Text, URI string }
	IsError bool
}) {
	s.t.Helper()
	p, ok := s.registry.Page(l.ID())
	if !ok {
		s.t.Fatal("the page is not there")
	}
	for _, e := range p.Info().Tools {
		if e.Tool.Name == tool {
			raw, err := s.Run(s.t.Context(), p, e, json.RawMessage(args))
			if err != nil || json.Unmarshal(raw, &res) != nil || len(res.Content) != 1 {
				s.t.Fatalf("%s: %s, %v", tool, raw, err)
			}
			return res
		}
	}
	s.t.Fatalf("no tool %s", tool)
	return res
}

func TestRunForAHuman(t *testing.T) {
	s := newSide(t, Options{}, tenant.Options{})
	c := s.connect()
	asked := make(chan error, 1)
	l := s.join(s.tenantOf(c), `[{"name":"echo","params":{"n":{"type":"number"}}},{"name":"throw"},{"name":"ask"},{"name":"returns"},{"name":"link"},{"name":"shape","outputSchema":{"type":"object","required":["x"]}}]`, func(l *tenant.Link, f tenant.CallFrame) {
		a := tenant.Answer{Result: f.Args}
		switch f.Tool {
		case "throw":
			a = tenant.Answer{Err: &tenant.PageError{Message: "no"}}
		case "ask":
			asked <- l.Ask(f.ID, "q1", tenant.Elicit, json.RawMessage(`{"message":"?"}`))
		case "returns":
			a.Result = json.RawMessage(`{"inputRequests":{"k":{"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}}}}`)
		case "link":
			a.Result = json.RawMessage(`{"content":[{"type":"resource_link","uri":"cart","name":"x"}]}`)
		}
		_ = l.Answer(f.ID, a)
	})
	for _, tt := range []struct {
		tool, args, want string
		failed           bool
	}{
		{"echo", `{"n":"5"}`, `{"n":5}`, false},
		{"echo", `{"n":"many"}`, `"n"`, true},
		{"throw", ``, "no", true},
		{"ask", `{}`, "{}", false},
		{"returns", `{}`, "can't be done from here", true},
		{"link", `{}`, "page://p/cart", false},
		{"shape", `{}`, "outputSchema", true},
	} {
		r := s.runs(l, tt.tool, tt.args)
		if got := r.Content[0].Text + r.Content[0].URI; r.IsError != tt.failed || !strings.Contains(got, tt.want) {
			t.Errorf("%s %s: %+v", tt.tool, tt.args, r)
		}
	}
	if err := <-asked; err == nil {
		t.Error("the page's question was taken, and nobody answers it")
	}
}

func TestListOfSessions(t *testing.T) {
	s := newSide(t, Options{}, tenant.Options{})
	s.connect()
	s.connectAs("2025-06-18", "/work", nil)
	if _, err := s.connectAs("2026-07-28", "", nil).ListTools(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	all := s.List()
	if len(all) != 3 {
		t.Fatalf("%d sessions: %+v", len(all), all)
	}
	for i, want := range []Session{{Protocol: "2025-11-25"}, {Protocol: "2025-06-18", Workspace: "work"}, {Protocol: "2026-07-28", Stateless: true, Workspace: "default"}} {
		got := all[i]
		if got.Protocol != want.Protocol || got.Workspace != want.Workspace || got.Stateless != want.Stateless || got.Client.Name != "test" || got.Since.IsZero() || got.View == nil {
			t.Errorf("session %d: %+v, want %+v", i, got, want)
		}
		if got.ID == "" || got.ID == got.View.Own().ID() || i > 0 && got.ID == all[i-1].ID {
			t.Errorf("session %d has the id %q", i, got.ID)
		}
	}
}
