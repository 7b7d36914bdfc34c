package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"jsbridge/manifest"
	"jsbridge/tenant"
)

// What a request may carry, by the bits of a fuzzed number.
var (
	fuzzMethods  = []string{"POST", "GET", "DELETE", "PUT"}
	fuzzTypes    = []string{"application/json", "application/json; charset=utf-8", "text/plain", ""}
	fuzzAccepts  = []string{"application/json, text/event-stream", "application/json", "", "text/html", "text/event-stream", "*/*", "application/json;q=0", ";"}
	fuzzVersions = []string{"2025-11-25", "2026-07-28", "2025-03-26", ""}
)

// Bits of the number beside those.
const (
	fuzzInSession   = 1 << 7 // of client A, else none
	fuzzOtherID     = 1 << 8 // a session that is not there
	fuzzTellsMethod = 1 << 9 // the headers of 2026-07-28 are those of the body
	fuzzOlder       = 1 << 4 // client A is of 2025-03-26, which has batches
)

// Everything that a client may send is answered, as MCP has it, and concerns nobody
// else. A request is fuzzed against two clients with a page each, and one of the
// stateless era, on a clock that waits for nobody.
func FuzzServeHTTP(f *testing.F) {
	for _, seed := range []struct {
		choices       uint16
		version, name string
		body          string
	}{
		{0, "", "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`},
		{fuzzInSession, "", "", `{"jsonrpc":"2.0","id":"x","method":"tools/list"}`},
		{fuzzInSession, "", "", `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"p__t","arguments":{"n":1},"_meta":{"progressToken":7}}}`},
		{fuzzInSession, "", "", `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"register_page_tool_by_code","arguments":{"name":"x","description":"d","code":"return 1","params":{"a":{"type":"string"}}}}}`},
		{fuzzInSession, "", "", `{"jsonrpc":"2.0","id":4,"method":"prompts/get","params":{"name":"p__review","arguments":{"style":"s"}}}`},
		{fuzzInSession, "", "", `{"jsonrpc":"2.0","id":5,"method":"resources/read","params":{"uri":"page://p/item/5"}}`},
		{fuzzInSession, "", "", `{"jsonrpc":"2.0","id":6,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"p__review"},"argument":{"name":"style","value":""}}}`},
		{fuzzInSession, "", "", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`},
		{fuzzInSession, "", "", `{"jsonrpc":"2.0","id":7,"result":{}}`},
		{fuzzInSession | fuzzOlder | 2<<5, "", "", `[{"jsonrpc":"2.0","id":8,"method":"ping"},{"jsonrpc":"2.0","id":9,"method":"tools/list"}]`},
		{fuzzInSession | fuzzOlder | 2<<5 | 1<<10, "", "", `[{"jsonrpc":"2.0","id":"8","method":"tools/call","params":{"name":"p__t"}},{"jsonrpc":"2.0","method":"notifications/roots/list_changed"},{"jsonrpc":"2.0","id":8,"method":"nonsense"}]`},
		{fuzzInSession | 2<<5, "", "", `[{"jsonrpc":"2.0","id":8,"method":"ping"}]`},
		{fuzzInSession | 1, "", "", ``},
		{fuzzInSession | 2, "", "", ``},
		{fuzzOtherID, "", "", `{"jsonrpc":"2.0","id":1,"method":"ping"}`},
		{fuzzTellsMethod | 1<<5, "", "", `{"jsonrpc":"2.0","id":10,"method":"tools/call","params":{"name":"p__t","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`},
		{fuzzTellsMethod | 1<<5, "", "", `{"jsonrpc":"2.0","id":11,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`},
		{fuzzTellsMethod | 1<<5, "", "", `{"jsonrpc":"2.0","id":12,"method":"subscriptions/listen","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}},"notifications":{"toolsListChanged":true}}}`},
		{1 << 5, "", "tools/list", `{"jsonrpc":"2.0","id":13,"method":"tools/call","params":{"name":"p__t"}}`},
		{0, "2999-01-01", "", `{"jsonrpc":"2.0","id":14,"method":"ping"}`},
		{0, "", "", `{"jsonrpc":"2.0","id":{},"method":5}`},
		{0, "", "", `{"jsonrpc":"1.0"`},
	} {
		f.Add(seed.choices, seed.version, seed.name, []byte(seed.body))
	}
	f.Fuzz(func(t *testing.T, choices uint16, version, name string, body []byte) {
		if strings.ContainsFunc(version+name, func(c rune) bool { return c < ' ' || c == 0x7f }) {
			return // net/http takes no such header
		}
		synctest.Test(t, func(t *testing.T) {
			s := newFuzzSide(t, map[bool]string{true: "2025-03-26", false: withSessions}[choices&fuzzOlder != 0])
			defer s.end()
			req := s.request(choices, version, name, body)
			was := s.others()
			s.judge(req, body, s.serve(req))
			if now := s.others(); now != was {
				t.Errorf("another client's page heard %q", strings.TrimPrefix(now, was))
			}
			s.goesOn(req)
		})
	})
}

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
	s.Handler = New(s.registry, Options{Logger: slog.New(panicLog{s}), Workspace: workspace, MaxBody: 1 << 16})
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

var fuzzStatus = []int{200, 202, 204, 400, 404, 405, 406, 413, 415}

// judge holds an answer to what MCP says of it.
func (s *fuzzSide) judge(req *http.Request, body []byte, w *httptest.ResponseRecorder) {
	t := s.t
	t.Helper()
	if !slices.Contains(fuzzStatus, w.Code) {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
	kind, _, _ := strings.Cut(w.Header().Get("Content-Type"), ";")
	messages, err := messagesOf(kind, w.Body.Bytes())
	if err != nil {
		t.Errorf("%d %s %q: %v", w.Code, kind, w.Body, err)
		return
	}
	if w.Code >= 400 && w.Code != 405 && (len(messages) != 1 || messages[0].Error == nil) {
		t.Errorf("%d without an error: %s", w.Code, w.Body)
	}
	if w.Code == 202 && w.Body.Len() > 0 {
		t.Errorf("a notification is answered: %s", w.Body)
	}
	asked, ok := askedIn(body)
	if req.Method != http.MethodPost || !ok {
		return
	}
	if req.Header.Get(methodHeader) == methodListen && w.Code == 200 {
		return // answered when it ends, if at all
	}
	if w.Code >= 400 {
		if id := messages[0].ID; string(id) != "null" && !(len(asked) == 1 && sameID(id, asked[0])) {
			t.Errorf("a refusal of %s, and %s was asked: %s", id, asked, w.Body)
		}
		return
	}
	s.judgeAnswers(asked, messages)
}

// judgeAnswers: each request has one answer, and what nobody asked for has none.
func (s *fuzzSide) judgeAnswers(asked []json.RawMessage, messages []fuzzMessage) {
	s.t.Helper()
	answers := make([]int, len(asked))
	for _, m := range messages {
		if m.Method != nil { // on the way
			continue
		}
		if m.Result == nil == (m.Error == nil) {
			s.t.Errorf("neither a result nor an error, or both: %+v", m)
		}
		i := slices.IndexFunc(asked, func(id json.RawMessage) bool { return sameID(id, m.ID) })
		if i < 0 {
			s.t.Errorf("an answer to %s, and %s was asked", m.ID, asked)
			continue
		}
		answers[i]++
	}
	for i, n := range answers {
		if n != 1 {
			s.t.Errorf("%d answers to %s", n, asked[i])
		}
	}
}

// goesOn tells whether the clients are served after that.
func (s *fuzzSide) goesOn(req *http.Request) {
	for _, id := range []string{s.a, s.b} {
		if id == s.a && req.Method == http.MethodDelete {
			continue
		}
		ping := httptest.NewRequest("POST", "/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":"last","method":"ping"}`))
		ping.Header.Set("Content-Type", "application/json")
		ping.Header.Set(sessionHeader, id)
		if w := s.serve(ping); w.Code != 200 || !strings.Contains(w.Body.String(), `"last"`) {
			s.t.Errorf("a ping afterwards: %d %s", w.Code, w.Body)
		}
	}
}

// fuzzMessage is a JSON-RPC message.
type fuzzMessage struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  *string         `json:"method"`
	Result  json.RawMessage `json:"result"`
	Error   json.RawMessage `json:"error"`
}

// messagesOf reads an answer as what it says it is.
func messagesOf(kind string, body []byte) (found []fuzzMessage, err error) {
	add := func(raw []byte) error {
		var m fuzzMessage
		if err := json.Unmarshal(raw, &m); err != nil {
			return err
		}
		if m.Version != "2.0" {
			return fmt.Errorf("no JSON-RPC: %q", raw)
		}
		found = append(found, m)
		return nil
	}
	switch {
	case len(body) == 0:
		return nil, nil
	case kind == "application/json" && body[0] == '[':
		var all []json.RawMessage
		if err := json.Unmarshal(body, &all); err != nil {
			return nil, err
		}
		for _, raw := range all {
			if err := add(raw); err != nil {
				return nil, err
			}
		}
		return found, nil
	case kind == "application/json":
		return found, add(body)
	case kind != "text/event-stream":
		return nil, fmt.Errorf("the content type is %q", kind)
	}
	for line := range bytes.Lines(body) {
		line = bytes.TrimSuffix(line, []byte("\n"))
		field, value, _ := bytes.Cut(line, []byte(":"))
		switch value = bytes.TrimPrefix(value, []byte(" ")); string(field) {
		case "data":
			if len(value) > 0 { // the SDK primes a stream with an empty one
				if err := add(value); err != nil {
					return nil, err
				}
			}
		case "", "event", "id", "retry":
		default:
			return nil, fmt.Errorf("the line %q is none of an event stream", line)
		}
	}
	return found, nil
}

// askedIn gives the ids of the requests that a body surely has, if it is nothing else
// and no two are alike.
func askedIn(body []byte) (ids []json.RawMessage, ok bool) {
	msgs := []map[string]json.RawMessage{nil}
	if json.Unmarshal(body, &msgs[0]) != nil && json.Unmarshal(body, &msgs) != nil {
		return nil, false
	}
	for _, msg := range msgs {
		var method string
		if string(msg["jsonrpc"]) != `"2.0"` || json.Unmarshal(msg["method"], &method) != nil || method == "" || method == "notifications/cancelled" {
			return nil, false
		}
		id, given := msg["id"]
		if !given {
			continue
		}
		var number int64
		var text string
		if json.Unmarshal(id, &number) != nil && json.Unmarshal(id, &text) != nil || string(id) == "null" || slices.ContainsFunc(ids, func(o json.RawMessage) bool { return sameID(o, id) }) {
			return nil, false
		}
		ids = append(ids, id)
	}
	return ids, len(ids) > 0
}

func sameID(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && x == y
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
