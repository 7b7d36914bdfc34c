package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"jsbridge/manifest"
	"jsbridge/tenant"
)

// fuzzSide is a handler that is asked without a network.
type fuzzSide struct {
	*Handler
	t        *testing.T
	registry *tenant.Registry
	a, b     string // sessions
	pages    []*fuzzPage

	mu     sync.Mutex
	panics []string // that the log tells of
}

// newFuzzSide has client A speak that version.
func newFuzzSide(t *testing.T, version string) *fuzzSide {
	return newFuzzSideWith(t, version, Options{})
}

func newFuzzSideWith(t *testing.T, version string, opts Options) *fuzzSide {
	s := &fuzzSide{t: t}
	var mu sync.Mutex
	spaces, ids := make(map[string]string), make(map[string]bool)
	workspace := func(key string) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if spaces[key] == "" {
			spaces[key] = uuid.NewString()
			ids[spaces[key]] = true
		}
		return spaces[key], nil
	}
	s.registry = tenant.NewRegistry(tenant.Options{Reserved: IsBuiltin, IsWorkspace: func(id string) bool {
		mu.Lock()
		defer mu.Unlock()
		return ids[id]
	}})
	opts.Logger, opts.Workspace, opts.MaxBody = slog.New(panicLog{s}), workspace, 1<<16
	s.Handler = New(s.registry, opts)
	s.a, s.b = s.open(version), s.open(withSessions)
	own, _ := workspace(defaultWorkspace)
	other, _ := workspace("other")
	for _, id := range []string{s.sessions[s.a].view.Own().ID(), own, s.sessions[s.b].view.Own().ID(), other} {
		s.join(id)
	}
	return s
}

func (s *fuzzSide) end() {
	s.registry.Close()
	s.Close()
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.panics {
		s.t.Error(p)
	}
}

// others is all that the pages of the clients that were not fuzzed have heard.
func (s *fuzzSide) others() string { return s.pages[2].heard() + s.pages[3].heard() }

// open begins a session.
func (s *fuzzSide) open(version string) string {
	s.t.Helper()
	req := httptest.NewRequest("POST", "/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"`+version+`","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`))
	req.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, req)
	id := w.Header().Get(sessionHeader)
	if id == "" {
		s.t.Fatalf("no session: %d %s", w.Code, w.Body)
	}
	req = httptest.NewRequest("POST", "/mcp", strings.NewReader(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(sessionHeader, id)
	s.ServeHTTP(httptest.NewRecorder(), req)
	return id
}

func (s *fuzzSide) join(id string) {
	s.t.Helper()
	p := new(fuzzPage)
	l, err := s.registry.Join(tenant.Connect{Session: id}, tenant.Joining{Origin: "http://a.test", Probes: true, Transport: p})
	if err != nil {
		s.t.Fatal(err)
	}
	p.link = l
	m, err := manifest.Parse([]byte(`{"type":"register_tools","appLabel":"P","tools":`+offerings+`}`), manifest.Limits{})
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := l.Register(m); err != nil {
		s.t.Fatal(err)
	}
	s.pages = append(s.pages, p)
}

// request is what the fuzzer chose.
func (s *fuzzSide) request(choices uint16, version, name string, body []byte) *http.Request {
	req := httptest.NewRequest(fuzzMethods[choices&3], "/mcp", bytes.NewReader(body))
	set := func(header, value string) {
		if value != "" {
			req.Header.Set(header, value)
		}
	}
	set("Content-Type", fuzzTypes[choices>>2&3])
	set("Accept", fuzzAccepts[choices>>10&7])
	if version == "" {
		version = fuzzVersions[choices>>5&3]
	}
	set(versionHeader, version)
	if choices&fuzzInSession != 0 {
		set(sessionHeader, s.a)
	} else if choices&fuzzOtherID != 0 {
		set(sessionHeader, "not-a-session")
	}
	set(methodHeader, name)
	if choices&fuzzTellsMethod != 0 {
		s.tellMethod(req, body)
	}
	return req
}

// tellMethod sets the headers that 2026-07-28 wants to be those of the body.
func (s *fuzzSide) tellMethod(req *http.Request, body []byte) {
	var msg struct {
		Method string
		Params struct {
			Name, URI string
			Ref       struct{ Name string }
		}
	}
	_ = json.Unmarshal(body, &msg)
	name := msg.Params.Name + msg.Params.URI
	if strings.ContainsFunc(msg.Method+name, func(c rune) bool { return c < ' ' || c > '~' }) {
		return // net/http takes no such header
	}
	req.Header.Set(methodHeader, msg.Method)
	if name != "" {
		req.Header.Set("Mcp-Name", name)
	}
}

// serve asks, and hangs up if that takes longer than any answer may.
func (s *fuzzSide) serve(req *http.Request) *httptest.ResponseRecorder {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w := httptest.NewRecorder()
	served := make(chan struct{})
	go func() {
		defer close(served)
		s.ServeHTTP(w, req.WithContext(ctx))
	}()
	time.Sleep(2 * tenant.DefaultCallTimeout)
	synctest.Wait()
	select {
	case <-served:
		return w
	default:
	}
	stream := req.Method == http.MethodGet || req.Header.Get(methodHeader) == methodListen
	if !stream {
		s.t.Error("there is no answer in good time")
	}
	cancel()
	synctest.Wait()
	select {
	case <-served:
	default:
		s.t.Fatal("the request goes on although its client is gone")
	}
	return w
}

// fuzzPage answers whatever it is asked, and notes it.
type fuzzPage struct {
	fakePage
	answers  func(tenant.CallFrame) // nil: it answers well
	answered func()                 // its question was; nil: it has none
	mu       sync.Mutex
	log      strings.Builder
}

func (p *fuzzPage) heard() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

func (p *fuzzPage) note(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(&p.log, format+"\n", args...)
}

func (p *fuzzPage) Call(c tenant.CallFrame) error {
	p.note("call %s %s %s", c.Method, c.Tool, c.Args)
	if p.answers != nil {
		go p.answers(c)
		return nil
	}
	results := map[tenant.Method]string{tenant.RunTool: `{"content":[{"type":"text","text":"ok"}]}`, tenant.GetPrompt: `{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}]}`,
		tenant.ReadResource: `{"contents":[{"text":"hi"}]}`, tenant.Complete: `{"values":["v"]}`}
	go func() { _ = p.link.Answer(c.ID, tenant.Answer{Result: json.RawMessage(results[c.Method])}) }()
	return nil
}

func (p *fuzzPage) Cancel(id, _ string) { p.note("cancel %s", id) }
func (p *fuzzPage) Answer(id string, _ tenant.Answer) {
	p.note("answer %s", id)
	if p.answered != nil {
		go p.answered()
	}
}

func (p *fuzzPage) Complain(message string)   { p.note("complain %s", message) }
func (p *fuzzPage) Watch(uri string, on bool) { p.note("watch %s %v", uri, on) }
func (p *fuzzPage) Identify(label string)     { p.note("identify %s", label) }

// panicLog keeps what the log says of panics.
type panicLog struct{ s *fuzzSide }

func (panicLog) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelError }
func (p panicLog) WithAttrs([]slog.Attr) slog.Handler         { return p }
func (p panicLog) WithGroup(string) slog.Handler              { return p }

func (p panicLog) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	r.Attrs(func(a slog.Attr) bool { text += " " + a.String(); return true })
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	p.s.panics = append(p.s.panics, text)
	return nil
}
