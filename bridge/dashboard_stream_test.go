package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"jsbridge/bridge/dashboard"
)

func TestResumption(t *testing.T) {
	b := newBoard(t, Options{})
	v := b.watch("")
	b.open("one", near, someTools, echo)
	v.connection("one")
	last, _, _ := v.told()
	v.close()
	// Nobody looks meanwhile, and what changes is told all the same.
	p := b.open("two", near, someTools, echo)
	p.hears("registered")
	again := b.watch(last)
	again.sees("just what is new", func(s *dashboard.State) bool {
		return slices.ContainsFunc(s.Connections, func(c dashboard.Connection) bool { return c.Label == "two" })
	})
	if _, kinds, _ := again.told(); slices.Contains(kinds, "snapshot") {
		t.Errorf("resumed with %v", kinds)
	}
	_, number, _ := strings.Cut(last, "-")
	epoch, _, _ := strings.Cut(last, "-")
	for _, unknown := range []string{"other-" + number, epoch + "-999999", epoch, epoch + "--1", "-", "\u00e4", epoch + "-18446744073709551615"} {
		if fresh := b.watch(unknown); true {
			fresh.sees("a snapshot", func(s *dashboard.State) bool { return s.Server.Epoch != "" })
			fresh.close()
		}
	}
	// After a restart, too: another epoch.
	port := b.s.Port()
	b.stop()
	select {
	case <-again.ended:
	case <-time.After(patience):
		t.Fatal("the stream outlives its server")
	}
	c := newBoard(t, Options{Port: port})
	fresh := c.watch(last)
	if s := fresh.sees("a snapshot", func(s *dashboard.State) bool { return s.Server.Epoch != "" }); s.Server.Epoch == epoch {
		t.Error("two starts have one epoch")
	}
	if status, _, body := c.ask("POST", "/api/snippets", "{}", b.headers()); status != 403 || !strings.Contains(body, dashboard.WrongToken) {
		t.Errorf("the old token: %d %s", status, body)
	}
}

func TestStreamsAreBounded(t *testing.T) {
	b := newBoard(t, Options{})
	var views []*view
	for range 32 {
		views = append(views, b.watch(""))
	}
	status, h, body := b.ask("GET", "/api/events", "", nil)
	if status != 503 || h.Get("Retry-After") == "" {
		t.Errorf("one more: %d %s", status, body)
	}
	isProblem(t, "one more", status, h, body)
	views[0].close()
	late := time.Now().Add(patience)
	for { // the server learns of it in its own time
		ctx, cancel := context.WithCancel(t.Context())
		req, _ := http.NewRequestWithContext(ctx, "GET", b.base+"/api/events", nil)
		res, err := http.DefaultTransport.RoundTrip(req)
		cancel()
		if err == nil && res.StatusCode == 200 {
			res.Body.Close()
			return
		}
		if time.Now().After(late) {
			t.Fatal("a closed stream keeps its place")
		}
	}
}

// A tab that does not read holds up neither calls nor other tabs.
func TestStalledTab(t *testing.T) {
	b := newBoard(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, _ := http.NewRequestWithContext(ctx, "GET", b.base+"/api/events", nil)
	stalled, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer stalled.Body.Close()
	v := b.watch("")
	b.open("one", near, someTools, echo)
	at := "/api/connections/" + v.connection("one").ID
	for i := range 300 {
		b.do("POST", at+"/call", map[string]any{"tool": "add", "arguments": map[string]int{"n": i}}, 200)
	}
	v.sees("all calls", func(s *dashboard.State) bool { return s.Counters.Calls == 300 && s.Counters.Running == 0 })
	if _, kinds, _ := v.told(); len(kinds) > 150 {
		t.Errorf("300 calls made %d events", len(kinds))
	}
}

// Everything at once, for the race detector.
func TestDashboardUnderLoad(t *testing.T) {
	b := newBoard(t, Options{})
	v := b.watch("")
	var pages []*tab
	for i := range 5 {
		pages = append(pages, b.scripted(fmt.Sprintf("room%d:p%d", i%2, i)))
	}
	s := v.sees("five pages", func(s *dashboard.State) bool { return len(s.Connections) == 5 })
	var all sync.WaitGroup
	send := func(method, path string, body any) { // whatever comes of it
		raw, _ := json.Marshal(body)
		req, _ := http.NewRequest(method, b.base+path, bytes.NewReader(raw))
		for k, v := range b.headers() {
			req.Header.Set(k, v)
		}
		if res, err := http.DefaultTransport.RoundTrip(req); err == nil {
			_, _ = io.Copy(io.Discard, res.Body)
			res.Body.Close()
		}
	}
	for i, c := range s.Connections {
		at := "/api/connections/" + c.ID
		all.Go(func() {
			for n := range 20 {
				send("POST", at+"/call", map[string]any{"tool": "add", "arguments": map[string]any{}})
				send("POST", at+"/tools", map[string]any{"name": fmt.Sprint("t", n), "description": "d", "code": "return 1"})
				send("GET", at, nil)
				send("POST", at+"/rename", map[string]string{"label": fmt.Sprint("n", n)})
				send("DELETE", at+"/tools/"+fmt.Sprint("t", n), nil)
			}
		})
		all.Go(func() {
			for n := range 10 {
				w := b.watch("")
				send("GET", "/api/calls.jsonl", nil)
				send("POST", fmt.Sprintf("/api/calls/c%d/cancel", n*5+i), struct{}{})
				w.close()
			}
		})
	}
	all.Go(func() {
		for range 10 {
			ss := b.agent("/mcp")
			_, _ = ss.CallTool(t.Context(), &mcp.CallToolParams{Name: "join_channel", Arguments: map[string]any{"channel": "room1"}})
			_, _ = ss.CallTool(t.Context(), &mcp.CallToolParams{Name: "describe_tools"})
			_ = ss.Close()
		}
	})
	all.Wait()
	for _, p := range pages {
		_ = p.ws.CloseNow()
	}
	v.sees("an end", func(s *dashboard.State) bool {
		return len(s.Connections) == 0 && len(s.Sessions) == 0 && s.Counters.Running == 0 && s.Counters.Calls >= 100
	})
}
