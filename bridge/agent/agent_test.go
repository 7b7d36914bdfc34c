package agent

//lint:file-ignore SA1019 MCP logging works in all versions before 2026-07-28, which clients will speak for long.

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"jsbridge/tenant"
)

func TestListChangedUnderAStreamOfChanges(t *testing.T) {
	s := newSide(t, Options{}, tenant.Options{})
	c := s.connect()
	other := s.connect()
	tn := s.tenantOf(c)
	l := s.join(tn, `[]`, answer("1"))
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-tick.C:
				s.register(l, fmt.Sprintf(`[{"name":"t%d","description":""}]`, i))
			}
		}
	})
	c.wait() // while the changes go on: they don't hold it back
	c.wait()
	close(stop)
	wg.Wait()
	if len(other.changed) != 0 {
		t.Error("another session was told")
	}
}

func TestNoListChangedForWhatIsTheSame(t *testing.T) {
	s := newSide(t, Options{}, tenant.Options{})
	c := s.connect()
	tn := s.tenantOf(c)
	l := s.join(tn, `[{"name":"a","description":""}]`, answer("1"))
	c.wait()
	c.names()
	s.register(l, `[{"name":"a","description":""}]`)
	s.register(l, `[{"name":"b","description":""}]`)
	s.register(l, `[{"name":"a","description":""}]`)
	s.register(l, `[{"name":"a","description":"new"}]`) // the one to be told
	c.wait()
	if n := len(c.changed); n != 0 {
		t.Errorf("%d notifications too many", n)
	}
}

func TestListIsStableAndPaged(t *testing.T) {
	s := newSide(t, Options{}, tenant.Options{})
	c := s.connect()
	tn := s.tenantOf(c)
	for range 5 {
		var tools []string
		for i := range 500 {
			tools = append(tools, fmt.Sprintf(`{"name":"tool%d","description":""}`, i))
		}
		s.join(tn, `[`+strings.Join(tools, ",")+`]`, answer("1"))
	}
	first := c.names()
	seen := make(map[string]bool)
	for _, n := range first {
		if seen[strings.ToLower(n)] {
			t.Fatalf("%s is listed twice", n)
		}
		seen[strings.ToLower(n)] = true
	}
	if len(first) != 2500+len(s.builtinTools) || first[0] != "call_page_tool" {
		t.Fatalf("%d tools, first %s", len(first), first[0])
	}
	if second := c.names(); strings.Join(first, " ") != strings.Join(second, " ") {
		t.Error("the list's order changes")
	}
	if _, err := c.ListTools(t.Context(), &mcp.ListToolsParams{Cursor: "nonsense"}); err == nil || !strings.Contains(err.Error(), "cursor") {
		t.Errorf("a bad cursor: %v", err)
	}
}

func TestUnknownTools(t *testing.T) {
	s := newSide(t, Options{}, tenant.Options{})
	c := s.connect()
	tn := s.tenantOf(c)
	if _, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "never__was"}); err == nil || !strings.Contains(err.Error(), "unknown tool") {
		t.Errorf("never was: %v", err)
	}
	l := s.join(tn, `[{"name":"a","description":""}]`, answer("1"))
	if _, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "P__a"}); err == nil {
		t.Error("another letter case was routed")
	}
	l.Leave()
	r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "p__a"})
	if err != nil || !r.IsError || !strings.Contains(r.Content[0].(*mcp.TextContent).Text, "left") {
		t.Errorf("left: %v %v", r, err)
	}
	if _, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "_"}); err == nil {
		t.Error("the internal tool can be called")
	}
}

func TestArgumentsAreChecked(t *testing.T) {
	s := newSide(t, Options{}, tenant.Options{})
	c := s.connect()
	tn := s.tenantOf(c)
	s.join(tn, `[{"name":"a","description":"","params":{"n":{"type":"number"},"o":{"type":"object","optional":true}}}]`, func(l *tenant.Link, f tenant.CallFrame) {
		_ = l.Answer(f.ID, tenant.Answer{Result: f.Args})
	})
	for args, want := range map[string]string{
		`{"n":"5"}`: `{"n":5}`, `{"n":1,"o":null}`: `{"n":1}`, `{"n":2,"o":"{\"x\":1}"}`: `{"n":2,"o":{"x":1}}`, `{"n":1.10}`: `{"n":1.10}`,
		`{}`: `!"n"`, `{"n":"12px"}`: `!"n"`, `{"n":null}`: `!"n"`, `[]`: `!`, `5`: `!`,
	} {
		r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "p__a", Arguments: json.RawMessage(args)})
		if err != nil {
			t.Errorf("%s: %v", args, err)
			continue
		}
		got := r.Content[0].(*mcp.TextContent).Text
		if part, fails := strings.CutPrefix(want, "!"); fails != r.IsError || fails && !strings.Contains(got, part) || !fails && got != want {
			t.Errorf("%s: error %v, %s; want %s", args, r.IsError, got, want)
		}
	}
}

func TestProgressAndLogs(t *testing.T) {
	s := newSide(t, Options{}, tenant.Options{})
	c := s.connect()
	if err := c.SetLoggingLevel(t.Context(), &mcp.SetLoggingLevelParams{Level: "info"}); err != nil {
		t.Fatal(err)
	}
	tn := s.tenantOf(c)
	s.join(tn, `[{"name":"a","description":""}]`, func(l *tenant.Link, f tenant.CallFrame) {
		if f.Progress {
			_ = l.Say(f.ID, tenant.Event{Progress: &tenant.Progress{Progress: 0, Total: 2, Message: "zero"}})
			_ = l.Say(f.ID, tenant.Event{Progress: &tenant.Progress{Progress: 0, Total: 2, Message: "not more"}})
			_ = l.Say(f.ID, tenant.Event{Progress: &tenant.Progress{Progress: 2, Total: 2, Message: "two"}})
			_ = l.Say(f.ID, tenant.Event{Log: &tenant.Log{Level: "debug", Data: json.RawMessage(`"quiet"`)}})
			_ = l.Say(f.ID, tenant.Event{Log: &tenant.Log{Level: "warning", Data: json.RawMessage(`{"loud":1}`)}})
		}
		_ = l.Answer(f.ID, tenant.Answer{})
	})
	p := &mcp.CallToolParams{Name: "p__a"}
	p.SetProgressToken("tok")
	if _, err := c.CallTool(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if _, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "p__a"}); err != nil {
		t.Fatal(err)
	}
	// The client handles notifications beside the answers.
	waitUntil(t, "the notifications", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.notes) >= 3 && len(c.logs) >= 1
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	last := -1.0
	for _, n := range c.notes {
		if n.Progress <= last || n.ProgressToken != "tok" || n.Total != 2 {
			t.Errorf("progress %+v after %g", n, last)
		}
		last = n.Progress
	}
	if len(c.notes) != 3 || last != 2 {
		t.Errorf("%d notifications, last %g", len(c.notes), last)
	}
	if len(c.logs) != 1 || c.logs[0].Level != "warning" || fmt.Sprint(c.logs[0].Data) != "map[loud:1]" {
		t.Errorf("logs %+v", c.logs)
	}
}

// A client that asked for progress hears that a silent page's call goes on; one
// that did not gets comments, so that nothing cuts its connection.
func TestSilentCallIsKeptAlive(t *testing.T) {
	s := newSide(t, Options{KeepAlive: 10 * time.Millisecond}, tenant.Options{})
	s.progressEvery = 10 * time.Millisecond
	c := s.connect()
	tn := s.tenantOf(c)
	release := make(chan struct{})
	s.join(tn, `[{"name":"a","description":""}]`, func(l *tenant.Link, f tenant.CallFrame) {
		<-release
		_ = l.Answer(f.ID, tenant.Answer{})
	})
	done := make(chan error, 1)
	go func() {
		p := &mcp.CallToolParams{Name: "p__a"}
		p.SetProgressToken("tok")
		_, err := c.CallTool(context.Background(), p)
		done <- err
	}()
	waitUntil(t, "three reports", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.notes) >= 3
	})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url, strings.NewReader(`{"jsonrpc":"2.0","id":99,"method":"tools/call","params":{"name":"p__a"}}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(sessionHeader, c.ID())
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewReader(res.Body)
	for seen := 0; seen < 3; {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(line, ": keep-alive") {
			seen++
		}
	}
	close(release)
	rest, err := io.ReadAll(lines)
	if err != nil || !strings.Contains(string(rest), "done (no value)") {
		t.Errorf("after the comments: %s, %v", rest, err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := 1; i < len(c.notes); i++ {
		if c.notes[i].Progress <= c.notes[i-1].Progress {
			t.Errorf("progress does not increase: %g, %g", c.notes[i-1].Progress, c.notes[i].Progress)
		}
	}
}

func TestSessionLimit(t *testing.T) {
	s := newSide(t, Options{MaxSessions: 1}, tenant.Options{})
	c := s.connect()
	client := mcp.NewClient(&mcp.Implementation{Name: "second", Version: "1"}, nil)
	_, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: s.url}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err == nil || !strings.Contains(err.Error(), "--max-sessions") {
		t.Errorf("second session: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "the session's end", func() bool { return s.Sessions() == 0 })
	s.connect()
}

func TestDeleteEndsRunningCalls(t *testing.T) {
	s := newSide(t, Options{}, tenant.Options{})
	c := s.connect()
	tn := s.tenantOf(c)
	called := make(chan struct{})
	s.join(tn, `[{"name":"a","description":""}]`, func(*tenant.Link, tenant.CallFrame) { close(called) })
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = c.CallTool(context.Background(), &mcp.CallToolParams{Name: "p__a"})
	}()
	<-called
	// Not c.Close: the SDK's client waits for its calls before it says DELETE.
	req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, s.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set(sessionHeader, c.ID())
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusNoContent {
		t.Errorf("DELETE: %d", res.StatusCode)
	}
	<-done
	waitUntil(t, "the tenant's end", func() bool { return !s.registry.Knows(tn) && s.registry.Running() == 0 })
}

func waitUntil(t *testing.T, what string, ok func() bool) {
	t.Helper()
	limit := time.After(patience)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

func TestIdleSessionsAreReaped(t *testing.T) {
	s := newSide(t, Options{SessionIdle: 50 * time.Millisecond}, tenant.Options{})
	c := s.connect() // keeps its stream open
	for range 20 {
		res, err := http.Post(s.url, "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"gone","version":"1"}}}`))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
	}
	waitUntil(t, "the sessions without a stream to end", func() bool { return s.Sessions() == 1 })
	if err := c.Ping(t.Context(), nil); err != nil {
		t.Errorf("the one with a stream: %v", err)
	}
}

func TestSilentStreamsAreKeptAlive(t *testing.T) {
	s := newSide(t, Options{KeepAlive: 20 * time.Millisecond}, tenant.Options{})
	res, err := http.Post(s.url, "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, res.Body)
	res.Body.Close()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set(sessionHeader, res.Header.Get(sessionHeader))
	stream, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	lines := bufio.NewReader(stream.Body)
	for seen := 0; seen < 3; {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(line, ": keep-alive") {
			seen++
		}
	}
}
