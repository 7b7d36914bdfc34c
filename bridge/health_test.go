package bridge

import (
	"context"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestReadiness(t *testing.T) {
	b := newBoard(t, Options{Version: "v1", Drain: patience})
	asked := func(path string, status int, want string) {
		t.Helper()
		got, header, body := b.ask("GET", path, "", nil)
		if got != status || strings.TrimSpace(body) != want || header.Get("Content-Type") != "application/json" || header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d %v %s; want %d %s", path, got, header, body, status, want)
		}
	}
	asked("/healthz", 200, `{"name":"jsbridge","version":"v1"}`)
	asked("/readyz", 200, `{"ready":true,"calls":0}`)

	calls := make(chan string, 1)
	p := b.open("one", near, someTools, func(f map[string]any) any {
		calls <- f["id"].(string)
		return nil
	})
	p.hears("registered")
	a := b.agent("/mcp")
	done := make(chan error, 1)
	go func() {
		_, err := a.CallTool(context.Background(), &mcp.CallToolParams{Name: "one__add", Arguments: map[string]any{"n": 1}})
		done <- err
	}()
	id := receive(t, "the call", calls)
	asked("/readyz", 200, `{"ready":true,"calls":1}`)

	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		b.stop()
	}()
	for ctx := within(t); ctx.Err() == nil; {
		if status, _, _ := b.ask("GET", "/readyz", "", nil); status != 200 {
			break
		}
	}
	// It still takes connections, since the call runs.
	asked("/readyz", 503, `{"ready":false,"reason":"jsbridge is stopping","calls":1}`)
	asked("/healthz", 200, `{"name":"jsbridge","version":"v1"}`)
	p.say(`{"type":"call_result","id":"` + id + `","result":"done"}`)
	if err := receive(t, "the call's end", done); err != nil {
		t.Error(err)
	}
	receive(t, "the server's end", stopped)
}
