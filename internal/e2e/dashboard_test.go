package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// does is a change through the dashboard's API, as its page makes it.
func (s *server) does(method, path string, body any, want int) string {
	s.t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		s.t.Fatal(err)
	}
	res, got := s.ask(method, path, string(raw), with(s.tokened(), "Origin", s.base, "Sec-Fetch-Site", "same-origin"))
	if res.StatusCode != want {
		s.t.Fatalf("%s %s %s: %d %s, want %d", method, path, raw, res.StatusCode, got, want)
	}
	return got
}

// What a human does in the dashboard, to a real tab.
func TestSteeringATab(t *testing.T) {
	site := newSite(t)
	s := serve(t)
	c := s.connect()
	if msg := c.ok("join_channel", map[string]any{"channel": "room"}); !strings.Contains(msg, "room") {
		t.Fatal(msg)
	}
	tb := newTab(t).open(site.page("/", autoPage(s.base, "app", "", `[{name: 'wait', fn: (_, { signal }) => new Promise((_, no) => { signal.onabort = () => { window.aborted = signal.reason?.message ?? 'yes'; no(signal.reason) } })}]`)))
	c.waitTools("app__wait")
	id := func() string {
		t.Helper()
		d := list[connections](c, "describe_tools", nil)
		if len(d.Connections) != 1 {
			t.Fatalf("connections: %+v", d.Connections)
		}
		return d.Connections[0].ID
	}
	at := func(action string) string { return "/api/connections/" + id() + "/" + action }

	s.does("POST", at("rename"), map[string]string{"label": "Other App"}, 204)
	c.waitTools("other_app__wait")

	s.does("POST", at("tools"), map[string]any{"name": "title", "description": "the title", "code": "return document.title + args.n", "params": map[string]any{"n": map[string]any{"type": "number"}}}, 200)
	c.waitTools("other_app__title", "other_app__wait")
	if got := s.does("POST", at("call"), map[string]any{"tool": "title", "arguments": map[string]any{"n": 7}}, 200); !strings.Contains(got, `7"`) {
		t.Errorf("called: %s", got)
	}
	if res, got := s.ask("POST", at("tools"), `{"name":"bad","description":"d","code":"oops("}`, s.tokened()); res.StatusCode != 422 || !strings.Contains(got, "SyntaxError") {
		t.Errorf("code that is none: %d %s", res.StatusCode, got)
	}
	s.does("DELETE", at("tools/title"), struct{}{}, 204)
	c.waitTools("other_app__wait")

	done := make(chan string, 1)
	go func() {
		defer close(done)
		if r := c.call("other_app__wait", nil); r.IsError {
			done <- text(t, r)
		}
	}()
	running := ""
	waitFor(t, "the running call", func() bool {
		_, log := s.ask("GET", "/api/calls.jsonl", "", nil)
		for line := range strings.Lines(log) {
			var call struct{ ID, Name, State string }
			if json.Unmarshal([]byte(line), &call) == nil && call.Name == "other_app__wait" && call.State == "running" {
				running = call.ID
			}
		}
		return running != ""
	})
	s.does("POST", fmt.Sprintf("/api/calls/%s/cancel", running), struct{}{}, 204)
	if msg := <-done; !strings.Contains(msg, "cancelled by the user") {
		t.Errorf("the agent was told %q", msg)
	}
	waitFor(t, "the page's signal", func() bool { return eval[bool](tb, `!!window.aborted`) })

	s.does("POST", at("move"), map[string]string{"to": "room:inside"}, 204)
	c.waitTools("inside__wait")
	if d := list[connections](c, "describe_channel", map[string]any{"channel": "room"}); len(d.Connections) != 1 {
		t.Errorf("in the channel: %+v", d.Connections)
	}
	s.does("POST", at("disconnect"), struct{}{}, 204)
	c.waitTools()
	tb.waitState("disconnected")
}
