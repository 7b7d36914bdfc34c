package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"jsbridge/manifest"
	"jsbridge/tenant"
)

// FuzzRoutes asks the whole route table what a hostile browser or program may ask:
// any path and body, with any Host and Origin. {id} in a path is the page's
// connection, {call} a call that runs. A foreign Host or Origin gets nowhere, the page
// hears of nothing that it asks, and every answer is one that its reader can read.
func FuzzRoutes(f *testing.F) {
	const home = "localhost:8766"
	for _, seed := range []struct {
		choices                  uint8
		path, host, origin, body string
	}{
		{1, "/api/connections/{id}", home, "", ""},
		{4, "/api/connections/{id}/identify", home, "", "{}"},
		{4, "/api/connections/{id}/rename", home, "", `{"label":"B\u0000\u202e"}`},
		{4, "/api/connections/{id}/move", home, "http://" + home, `{"to":"channel:x"}`},
		{4, "/api/connections/{id}/disconnect", home, "", `{}`},
		{4, "/api/connections/{id}/tools", home, "", `{"name":"x","description":"d","path":"a.b","params":{"a":{"type":"string"}}}`},
		{4, "/api/connections/{id}/tools", home, "", `{"name":"x","description":"d","code":"return 1","params":[]}`},
		{6, "/api/connections/{id}/tools/t", home, "", ``},
		{4, "/api/connections/{id}/call", home, "", `{"tool":"t","arguments":{"n":"5"}}`},
		{1, "/api/calls.jsonl", home, "", ""},
		{1, "/api/calls/{call}", home, "", ""},
		{4, "/api/calls/{call}/cancel", home, "", "{}"},
		{4, "/api/snippets", home, "", `{"workspace":"w","form":"script"}`},
		{4, "/api/origins", home, "", `{"origin":"https://app.example"}`},
		{6, "/api/origins", home, "", `{"origin":"null"}`},
		{1, "/api/origins", home, "https://evil.example", ""},
		{1, "/api/events", home, "", ""},
		{17, "/api/events", home, "", "epoch-18446744073709551615"},
		{0, "/mcp", "evil.example", "", `{}`},
		{0, "/mcp", "[::1]:8766", "http://localhost:3000", `{"jsonrpc":"2.0","id":1,"method":"ping"}`},
		{0, "/mcp/a%3Ab", "127.0.0.1.", "http://127.1", `{}`},
		{0, "/mcp/w", "localhost.evil.example", "null", `null`},
		{3, "/mcp", "app.localhost", "http://LOCALHOST", ``},
		{1, "/ws?tenant=x", "0x7f.1", "http://localhost@evil.example", ""},
		{1, "/../main.js", home, "", ""},
	} {
		f.Add(seed.choices, seed.path, seed.host, seed.origin, []byte(seed.body))
	}
	f.Fuzz(func(t *testing.T, choices uint8, path, host, origin string, body []byte) {
		if !strings.HasPrefix(path, "/") || strings.ContainsFunc(path+host+origin, isControl) {
			return // net/http takes no such request
		}
		synctest.Test(t, func(t *testing.T) {
			a := newFuzzedServer(t)
			defer a.end()
			if req := a.request(choices, path, host, origin, body); req != nil {
				a.judge(req, a.serve(req))
			}
		})
	})
}

func isControl(c rune) bool { return c < ' ' || c == 0x7f }

// fuzzedServer is one that listens but does not serve: it is asked directly.
type fuzzedServer struct {
	*Server
	t         *testing.T
	token     string
	id, call  string // of the page, and of a call that it does not answer
	link      *tenant.Link
	mu        sync.Mutex
	heard     []string
	complaint []string // errors that were logged
}

func newFuzzedServer(t *testing.T) *fuzzedServer {
	a := &fuzzedServer{t: t}
	files := fstest.MapFS{"index.html": {Data: []byte(tokenPlace)}}
	for _, name := range []string{"index.js", "index.css", "main.js", "extras.js", "connect.js", "tool-bus.js", "client.js", "inline.js"} {
		files[name] = &fstest.MapFile{Data: []byte("//")}
	}
	s, err := New(t.Context(), Options{Files: files, Logger: slog.New(slog.NewTextHandler(a, &slog.HandlerOptions{Level: slog.LevelError}))})
	if err != nil {
		t.Fatal(err)
	}
	a.Server = s
	w := httptest.NewRecorder()
	s.http.Handler.ServeHTTP(w, httptest.NewRequest("GET", "http://localhost/", nil))
	_, rest, _ := strings.Cut(w.Body.String(), `content="`)
	a.token, _, _ = strings.Cut(rest, `"`)
	if len(a.token) < 20 {
		t.Fatalf("no token in %s", w.Body)
	}
	a.join()
	return a
}

// join brings a page in, with a call that it takes and does not answer.
func (a *fuzzedServer) join() {
	a.t.Helper()
	l, err := a.registry.Join(tenant.ParseConnect("app"), tenant.Joining{Instance: "0123456789abcdef", Transport: a, Probes: true})
	if err != nil {
		a.t.Fatal(err)
	}
	a.link, a.id = l, l.ID()
	m, err := manifest.Parse([]byte(`{"tools":[{"name":"t","description":"d","params":{"n":"number"}},{"name":"slow","timeoutMs":1000}]}`), manifest.Limits{})
	if err != nil {
		a.t.Fatal(err)
	}
	if _, err := l.Register(m); err != nil {
		a.t.Fatal(err)
	}
	e, ok := a.registry.Roots().Snapshot().Find("app__slow")
	if !ok {
		a.t.Fatal("the page is not published")
	}
	go func() { _, _ = e.Page.Call(context.Background(), e.Tool, tenant.Call{Args: json.RawMessage(`{}`)}) }()
	synctest.Wait()
	w := httptest.NewRecorder()
	a.http.Handler.ServeHTTP(w, httptest.NewRequest("GET", "http://localhost/api/calls.jsonl", nil))
	var call struct{ ID string }
	if err := json.Unmarshal(w.Body.Bytes(), &call); err != nil || call.ID == "" {
		a.t.Fatalf("the call is not in the journal: %s", w.Body)
	}
	a.call, a.heard = call.ID, nil
}

func (a *fuzzedServer) end() {
	if err := a.Stop(context.Background()); err != nil {
		a.t.Errorf("stopping: %v", err)
	}
	synctest.Wait()
	for _, c := range a.complaint {
		a.t.Error(c)
	}
}

// request is what the fuzzer chose, nil for none.
func (a *fuzzedServer) request(choices uint8, path, host, origin string, body []byte) *http.Request {
	target, err := url.ParseRequestURI(strings.NewReplacer("{id}", a.id, "{call}", a.call).Replace(path))
	if err != nil {
		return nil
	}
	req := httptest.NewRequest([]string{"POST", "GET", "DELETE", "OPTIONS"}[choices&3], "/", bytes.NewReader(body))
	req.URL, req.Host = target, host
	req.Header.Set("Content-Type", "application/json")
	if origin != "" {
		req.Header.Set("Origin", origin)
	}
	if choices&4 != 0 {
		req.Header.Set(pageTokenHeader, a.token)
	}
	if choices&8 != 0 {
		req.Header.Set("Sec-Fetch-Site", "cross-site")
	}
	if choices&16 != 0 && !bytes.ContainsFunc(body, isControl) {
		req.Header.Set("Last-Event-ID", string(body))
	}
	return req
}

// serve asks, and hangs up if that takes longer than any answer may.
func (a *fuzzedServer) serve(req *http.Request) *httptest.ResponseRecorder {
	a.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w := httptest.NewRecorder()
	served := make(chan struct{})
	go func() {
		defer close(served)
		a.http.Handler.ServeHTTP(w, req.WithContext(ctx))
	}()
	time.Sleep(2 * tenant.DefaultCallTimeout)
	synctest.Wait()
	select {
	case <-served:
		return w
	default:
	}
	if !strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream") {
		a.t.Error("there is no answer in good time")
	}
	cancel()
	synctest.Wait()
	select {
	case <-served:
	default:
		a.t.Fatal("the request goes on although its client is gone")
	}
	return w
}

func (a *fuzzedServer) judge(req *http.Request, w *httptest.ResponseRecorder) {
	t := a.t
	t.Helper()
	origin := req.Header.Get("Origin")
	refused := mustRefuse(req)
	// The mux sends unclean paths elsewhere before the guards are asked.
	moved := w.Code == http.StatusMovedPermanently || w.Code == http.StatusTemporaryRedirect
	if refused && w.Code != http.StatusForbidden && w.Code != http.StatusNotFound && !moved {
		t.Errorf("%s %s of %q, by %q: %d %s", req.Method, req.URL, req.Host, origin, w.Code, w.Body)
	}
	a.mu.Lock()
	if tokenless := req.Header.Get(pageTokenHeader) == "" && strings.HasPrefix(req.URL.Path, "/api/"); len(a.heard) > 0 && (refused || tokenless) {
		t.Errorf("a page heard %q", a.heard)
	}
	a.mu.Unlock()
	if cors := w.Header().Get("Access-Control-Allow-Origin"); cors != "" && cors != "*" && (cors != origin || !isOurOrigin(cors)) {
		t.Errorf("%q may read this, by %q", origin, cors)
	}
	if w.Code >= 500 && w.Code != http.StatusBadGateway && w.Code != http.StatusGatewayTimeout && w.Code != http.StatusNotImplemented {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if problem := readable(w); problem != "" {
		t.Errorf("%s %s: %d %s %q: %s", req.Method, req.URL, w.Code, w.Header().Get("Content-Type"), w.Body, problem)
	}
}

// mustRefuse tells whether a request comes from a page that has no business there.
func mustRefuse(req *http.Request) bool {
	path, origin, crossSite := req.URL.Path, req.Header.Get("Origin"), req.Header.Get("Sec-Fetch-Site") != ""
	switch {
	case !isOurHost(req.Host):
		return true
	case strings.HasPrefix(path, "/api/"):
		return crossSite || origin != "" && origin != "http://"+req.Host && origin != "https://"+req.Host
	case path == "/mcp" || strings.HasPrefix(path, "/mcp/"):
		return origin == "" && crossSite || origin != "" && !isOurOrigin(origin)
	}
	return false
}

// isOurHost is the guard's rule, as a browser reads a Host. What is no port is none of
// its business.
func isOurHost(host string) bool {
	name := strings.ToLower(host)
	if i := strings.LastIndexByte(name, ':'); i >= 0 && (strings.Count(name, ":") == 1 || name[i-1] == ']') {
		name = name[:i]
	}
	if inner, ok := strings.CutPrefix(name, "["); ok {
		name = strings.TrimSuffix(inner, "]")
	}
	name = strings.TrimSuffix(name, ".")
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	addr, err := netip.ParseAddr(name)
	return err == nil && addr.Unmap().IsLoopback()
}

func isOurOrigin(origin string) bool {
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.User == nil && u.Path == "" && u.RawQuery == "" && u.Fragment == "" && isOurHost(u.Host)
}

// readable says why an answer is not what its type promises.
func readable(w *httptest.ResponseRecorder) string {
	kind, _, _ := strings.Cut(w.Header().Get("Content-Type"), ";")
	lines := [][]byte{w.Body.Bytes()}
	switch kind {
	case "application/jsonl":
		lines = bytes.Split(bytes.TrimSpace(lines[0]), []byte("\n"))
	case "application/json", "application/problem+json":
	case "text/event-stream":
		lines = nil
		for line := range bytes.Lines(w.Body.Bytes()) {
			if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
				lines = append(lines, data)
			}
		}
	default:
		if w.Code >= 400 && w.Body.Len() > 0 && w.Code != http.StatusUpgradeRequired {
			return "an error that programs can't read"
		}
		return ""
	}
	for _, line := range lines {
		if !json.Valid(line) {
			return fmt.Sprintf("no JSON: %q", line)
		}
	}
	return ""
}

// Write takes the log's errors.
func (a *fuzzedServer) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.complaint = append(a.complaint, string(p))
	return len(p), nil
}

func (a *fuzzedServer) hear(format string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.heard = append(a.heard, fmt.Sprintf(format, args...))
}

// What follows is the page's socket.

func (a *fuzzedServer) Call(c tenant.CallFrame) error {
	a.hear("call %s", c.Tool)
	if c.Tool == "slow" {
		return nil
	}
	go func() { _ = a.link.Answer(c.ID, tenant.Answer{Result: json.RawMessage(`"done"`)}) }()
	return nil
}

func (a *fuzzedServer) Cancel(string, string)          {}
func (a *fuzzedServer) Probe()                         { go a.link.Heard() }
func (a *fuzzedServer) Answer(string, tenant.Answer)   {}
func (a *fuzzedServer) Watch(string, bool)             {}
func (a *fuzzedServer) Complain(string)                {}
func (a *fuzzedServer) Identify(string)                { a.hear("identify") }
func (a *fuzzedServer) Approved(*tenant.Registration)  {}
func (a *fuzzedServer) Registered(tenant.Registration) { a.hear("renamed") }
func (a *fuzzedServer) Move(to tenant.Connect)         { a.hear("move %s", to) }
func (a *fuzzedServer) Close(why tenant.Reason) {
	if why != tenant.Stopping {
		a.hear("close %d", why)
	}
	go a.link.Closed(tenant.Departure{})
}
