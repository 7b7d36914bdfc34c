package bridge

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"jsbridge/bridge/dashboard"
	"jsbridge/tenant"
	"jsbridge/web"
)

// board is a server with what a dashboard's page knows of it.
type board struct {
	t     *testing.T
	s     *Server
	base  string
	token string
}

func newBoard(t *testing.T, opts Options) *board {
	t.Helper()
	opts.Files = web.Files()
	opts.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	s, err := New(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	b := &board{t: t, s: s, base: fmt.Sprintf("http://localhost:%d", s.Port())}
	t.Cleanup(b.stop)
	_, _, page := b.ask("GET", "/", "", nil)
	m := regexp.MustCompile(`<meta name="jsbridge-token" content="([A-Z2-7]{26})">`).FindStringSubmatch(page)
	if m == nil {
		t.Fatalf("the page has no token: %s", page)
	}
	b.token = m[1]
	return b
}

func (b *board) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := b.s.Stop(ctx); err != nil {
		b.t.Errorf("stopping: %v", err)
	}
}

// ask sends a request with these headers and no others.
func (b *board) ask(method, path, body string, header map[string]string) (int, http.Header, string) {
	b.t.Helper()
	req, err := http.NewRequest(method, b.base+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	for k, v := range header {
		req.Header.Set(k, v)
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		b.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer res.Body.Close()
	all, err := io.ReadAll(res.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return res.StatusCode, res.Header, string(all)
}

func (b *board) headers() map[string]string {
	return map[string]string{"Content-Type": "application/json", "X-Jsbridge-Token": b.token, "Origin": b.base, "Sec-Fetch-Site": "same-origin"}
}

// do does something as the dashboard's page would, and asserts the status.
func (b *board) do(method, path string, body any, want int) string {
	b.t.Helper()
	raw := ""
	if body != nil {
		enc, err := json.Marshal(body)
		if err != nil {
			b.t.Fatal(err)
		}
		raw = string(enc)
	}
	status, header, got := b.ask(method, path, raw, b.headers())
	if status != want {
		b.t.Fatalf("%s %s %s: %d %s, want %d", method, path, raw, status, got, want)
	}
	if want >= 400 {
		isProblem(b.t, path, status, header, got)
	}
	return got
}

// isProblem asserts RFC 9457.
func isProblem(t *testing.T, what string, status int, header http.Header, body string) {
	t.Helper()
	var p struct {
		Title, Detail string
		Status        int
	}
	if err := json.Unmarshal([]byte(body), &p); err != nil || p.Status != status || p.Title == "" || p.Detail == "" || header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("%s: %s is no problem: %s", what, header.Get("Content-Type"), body)
	}
}

func get[T any](b *board, path string) (v T) {
	b.t.Helper()
	if err := json.Unmarshal([]byte(b.do("GET", path, nil, 200)), &v); err != nil {
		b.t.Fatal(err)
	}
	return v
}

// tab is a web page.
type tab struct {
	b    *board
	ws   *websocket.Conn
	on   func(call map[string]any) any // what a function returns; nil: the call is left open
	said chan map[string]any           // what it was told, but for calls
	done chan struct{}
}

func (b *board) open(connect, origin, tools string, on func(map[string]any) any) *tab {
	b.t.Helper()
	ws, _, err := websocket.Dial(b.t.Context(), strings.Replace(b.base, "http", "ws", 1)+"/ws?v=1&instance=instance-"+strings.NewReplacer(":", "-", "/", "-").Replace(connect)+"-000000&tenant="+connect,
		&websocket.DialOptions{HTTPHeader: http.Header{"Origin": {origin}}})
	if err != nil {
		b.t.Fatal(err)
	}
	p := &tab{b: b, ws: ws, on: on, said: make(chan map[string]any, 1000), done: make(chan struct{})}
	ws.SetReadLimit(1 << 20)
	p.say(`{"type":"register_tools","appLabel":"Page","url":"http://localhost/x","title":"T","tools":` + tools + `}`)
	go p.read()
	b.t.Cleanup(func() {
		_ = ws.CloseNow()
		<-p.done
	})
	return p
}

func (p *tab) say(frame string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_ = p.ws.Write(ctx, websocket.MessageText, []byte(frame)) // a closed socket shows elsewhere
}

func (p *tab) read() {
	defer close(p.done)
	for {
		_, data, err := p.ws.Read(context.Background())
		if err != nil {
			p.said <- map[string]any{"type": "closed", "code": float64(websocket.CloseStatus(err))}
			return
		}
		var f map[string]any
		if json.Unmarshal(data, &f) != nil {
			continue
		}
		switch f["type"] {
		case "call", "get_prompt", "read_resource":
			if result := p.on(f); result != nil {
				raw, _ := json.Marshal(map[string]any{"type": "call_result", "id": f["id"], "result": result})
				p.say(string(raw))
			}
		case "probe":
			p.say(fmt.Sprintf(`{"type":"alive","id":%q}`, f["id"]))
		default:
			p.said <- f
		}
	}
}

// hears waits until the page is told something of a type.
func (p *tab) hears(kind string) map[string]any {
	p.b.t.Helper()
	late := time.After(patience)
	for {
		select {
		case f := <-p.said:
			if f["type"] == kind {
				return f
			}
		case <-late:
			p.b.t.Fatalf("the page was not told %s", kind)
		}
	}
}

func echo(call map[string]any) any { return call["args"] }

// view is a dashboard's page: it keeps the state up to date from the events.
type view struct {
	t      *testing.T
	cancel context.CancelFunc
	ended  chan struct{}

	mu      sync.Mutex
	state   dashboard.State
	kinds   []string
	last    string // id of the last event
	notices []dashboard.Notice
	more    chan struct{}
}

func (b *board) watch(lastID string) *view {
	b.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	req, _ := http.NewRequestWithContext(ctx, "GET", b.base+"/api/events", nil)
	if lastID != "" {
		req.Header.Set("Last-Event-ID", lastID)
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil || res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/event-stream" || res.Header.Get("Cache-Control") != "no-store" {
		b.t.Fatalf("the event stream: %v, %v", res, err)
	}
	v := &view{t: b.t, cancel: cancel, ended: make(chan struct{}), more: make(chan struct{}, 1)}
	go func() {
		defer close(v.ended)
		defer res.Body.Close()
		v.read(res.Body)
	}()
	b.t.Cleanup(v.close)
	return v
}

func (v *view) close() {
	v.cancel()
	<-v.ended
}

func (v *view) read(body io.Reader) {
	var id, kind string
	for lines := bufio.NewReader(body); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch key {
		case "id":
			id = value
		case "event":
			kind = value
		case "data":
			v.mu.Lock()
			v.last, v.kinds = id, append(v.kinds, kind)
			v.take(kind, []byte(value))
			v.mu.Unlock()
			select {
			case v.more <- struct{}{}:
			default:
			}
		}
	}
}

func (v *view) take(kind string, data []byte) {
	if kind == "snapshot" {
		v.state = dashboard.State{}
		if err := json.Unmarshal(data, &v.state); err != nil {
			v.t.Error(err)
		}
		return
	}
	var c dashboard.Change
	if err := json.Unmarshal(data, &c); err != nil {
		v.t.Error(err)
	}
	s := &v.state
	apply(&s.Sessions, c.Sessions, func(r dashboard.SessionRow) string { return r.ID })
	apply(&s.Connections, c.Connections, func(r dashboard.Connection) string { return r.ID })
	apply(&s.Channels, c.Channels, func(r dashboard.Channel) string { return r.ID })
	apply(&s.Workspaces, c.Workspaces, func(r dashboard.Workspace) string { return r.ID })
	apply(&s.Calls, c.Calls, func(r dashboard.Call) string { return r.ID })
	if c.Origins != nil {
		s.Origins = *c.Origins
	}
	if c.Counters != nil {
		s.Counters = *c.Counters
	}
	v.notices = append(v.notices, c.Notices...)
}

func apply[T any](list *[]T, d *dashboard.Diff[T], id func(T) string) {
	if d == nil {
		return
	}
	*list = slices.DeleteFunc(*list, func(item T) bool { return slices.Contains(d.Gone, id(item)) })
	for _, item := range d.Set {
		if i := slices.IndexFunc(*list, func(old T) bool { return id(old) == id(item) }); i >= 0 {
			(*list)[i] = item
		} else {
			*list = append(*list, item)
		}
	}
}

// sees waits for a state.
func (v *view) sees(what string, ok func(*dashboard.State) bool) dashboard.State {
	v.t.Helper()
	late := time.After(patience)
	for {
		v.mu.Lock()
		is, state := ok(&v.state), v.state
		v.mu.Unlock()
		if is {
			return state
		}
		select {
		case <-v.more:
		case <-v.ended:
			v.t.Fatalf("the stream ended before it showed %s", what)
		case <-late:
			all, _ := json.Marshal(state)
			v.t.Fatalf("the dashboard does not show %s: %s", what, all)
		}
	}
}

func (v *view) connection(label string) dashboard.Connection {
	v.t.Helper()
	var found dashboard.Connection
	v.sees("the connection "+label, func(s *dashboard.State) bool {
		i := slices.IndexFunc(s.Connections, func(c dashboard.Connection) bool { return c.Label == label && c.State != "joined" })
		if i >= 0 {
			found = s.Connections[i]
		}
		return i >= 0
	})
	return found
}

func (v *view) told() (last string, kinds []string, notices []dashboard.Notice) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.last, slices.Clone(v.kinds), slices.Clone(v.notices)
}

// agent is an MCP client.
func (b *board) agent(path string) *mcp.ClientSession {
	b.t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "tester\u202e", Version: "1.2"}, nil)
	ss, err := client.Connect(b.t.Context(), &mcp.StreamableClientTransport{Endpoint: b.base + path}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = ss.Close() })
	return ss
}

const someTools = `[{"name":"add","description":"d","params":{"n":{"type":"number"}},"example":{"n":1}}]`

const near = "http://localhost:3000"

func TestDashboardShowsWhatThereIs(t *testing.T) {
	b := newBoard(t, Options{AllowOrigins: []string{"https://flag.example"}})
	v := b.watch("")
	s := v.sees("a server", func(s *dashboard.State) bool { return s.Server.Epoch != "" })
	if s.Server.MCP != b.base+"/mcp" || s.Server.PageCode != "allow" || s.Server.Redacted || s.Server.Started.IsZero() {
		t.Errorf("the server: %+v", s.Server)
	}
	if !reflect.DeepEqual(s.Origins.Allowed, []dashboard.AllowedOrigin{{Origin: "https://flag.example", By: "flag"}}) {
		t.Errorf("origins: %+v", s.Origins)
	}
	a := b.agent("/mcp/work")
	b.open("room:one", near, someTools, echo)
	b.open("two", near, someTools, echo)
	b.open("far", "https://far.example", someTools, echo)
	if _, err := a.CallTool(t.Context(), &mcp.CallToolParams{Name: "join_channel", Arguments: map[string]any{"channel": "room"}}); err != nil {
		t.Fatal(err)
	}
	s = v.sees("two published connections in a session", func(s *dashboard.State) bool {
		return len(s.Sessions) == 1 && s.Sessions[0].Connections == 2 && len(s.Origins.Waiting) == 1 && len(s.Connections) == 3
	})
	if x := s.Sessions[0]; x.Client != (dashboard.Client{Name: "tester", Version: "1.2"}) || x.Era != "session" || x.Protocol != "2025-11-25" || x.Workspace != "work" || !slices.Equal(x.Channels, []string{"room"}) {
		t.Errorf("the session: %+v", x)
	}
	if w := s.Origins.Waiting[0]; w.Origin != "https://far.example" || w.Pages != 1 || !w.Approvable {
		t.Errorf("waiting: %+v", w)
	}
	if !slices.Contains(s.Channels, dashboard.Channel{ID: "room", Connections: 1, Sessions: 1}) || !slices.Contains(s.Workspaces, dashboard.Workspace{ID: "work", Sessions: 1}) {
		t.Errorf("channels %+v, workspaces %+v", s.Channels, s.Workspaces)
	}
	if c := v.connection("one"); c.Kind != "channel" || c.Channel != "room" || c.Tools != 1 || c.State != tenant.Ready || !c.Current || c.URL != "http://localhost/x" {
		t.Errorf("in the channel: %+v", c)
	}
	if c := v.connection("far"); c.State != tenant.Pending {
		t.Errorf("waiting: %+v", c)
	}
	b.do("POST", "/api/origins", map[string]string{"origin": "https://far.example"}, 200)
	v.sees("the approval", func(s *dashboard.State) bool {
		return len(s.Origins.Waiting) == 0 && slices.Contains(s.Origins.Allowed, dashboard.AllowedOrigin{Origin: "https://far.example", By: "state"}) &&
			!slices.ContainsFunc(s.Connections, func(c dashboard.Connection) bool { return c.State == tenant.Pending })
	})
	if _, err := a.CallTool(t.Context(), &mcp.CallToolParams{Name: "two__add", Arguments: map[string]any{"n": 1}}); err != nil {
		t.Fatal(err)
	}
	s = v.sees("the call", func(s *dashboard.State) bool {
		return len(s.Calls) == 1 && s.Calls[0].State == "done" && s.Counters.Calls == 1
	})
	if c := s.Calls[0]; c.By != "agent" || c.Name != "two__add" || c.Session != s.Sessions[0].ID || c.Client.Name != "tester" || c.ArgBytes != 7 || c.Label != "two" || c.Method != "tool" {
		t.Errorf("the call: %+v", c)
	}
	_ = a.Close()
	v.sees("no session", func(s *dashboard.State) bool { return len(s.Sessions) == 0 })

	// What a tab made of the changes is what another is told at once.
	last, kinds, _ := v.told()
	fresh := b.watch("")
	got := fresh.sees("a server", func(s *dashboard.State) bool { return s.Server.Epoch != "" })
	byID := func(list []dashboard.Connection) {
		slices.SortFunc(list, func(a, b dashboard.Connection) int { return strings.Compare(a.ID, b.ID) })
	}
	s = v.sees("anything", func(*dashboard.State) bool { return true })
	byID(got.Connections)
	byID(s.Connections)
	if !reflect.DeepEqual(got, s) {
		t.Errorf("after %s (%v) a tab has\n%+v\nanother is told\n%+v", last, kinds, s, got)
	}
	if kinds[0] != "snapshot" || slices.Contains(kinds[1:], "snapshot") {
		t.Errorf("events: %v", kinds)
	}
}

func TestStatelessClientsAreShown(t *testing.T) {
	b := newBoard(t, Options{})
	v := b.watch("")
	client := mcp.NewClient(&mcp.Implementation{Name: "modern", Version: "3"}, nil)
	ss, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: b.base + "/mcp"}, &mcp.ClientSessionOptions{ProtocolVersion: "2026-07-28"})
	if err != nil {
		t.Fatal(err)
	}
	defer ss.Close()
	if _, err := ss.ListTools(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	s := v.sees("the workspace's session", func(s *dashboard.State) bool { return len(s.Sessions) == 1 && s.Sessions[0].Client.Name != "" })
	if x := s.Sessions[0]; x.Era != "stateless" || x.Protocol != "2026-07-28" || x.Workspace != "default" || x.Client.Name != "modern" {
		t.Errorf("the session: %+v", x)
	}
	// A bearer token is shown to nobody, not even all of its hash.
	req := `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	status, _, body := b.ask("POST", "/mcp", req, map[string]string{"Content-Type": "application/json", "Accept": "application/json", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/list", "Authorization": "Bearer topsecret"})
	if status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	s = v.sees("another session", func(s *dashboard.State) bool { return len(s.Sessions) == 2 && len(s.Workspaces) == 2 })
	i := slices.IndexFunc(s.Workspaces, func(w dashboard.Workspace) bool { return regexp.MustCompile(`^bearer:[0-9a-f]{12}$`).MatchString(w.ID) })
	if i < 0 || s.Workspaces[i].Sessions != 1 || s.Sessions[1].Workspace != s.Workspaces[i].ID {
		t.Fatalf("workspaces: %+v, sessions %+v", s.Workspaces, s.Sessions)
	}
	// Its snippet can be had all the same.
	var out struct{ Connect string }
	_ = json.Unmarshal([]byte(b.do("POST", "/api/snippets", map[string]string{"workspace": s.Workspaces[i].ID}, 200)), &out)
	var other struct{ Connect string }
	_ = json.Unmarshal([]byte(b.do("POST", "/api/snippets", map[string]string{"session": s.Sessions[1].ID}, 200)), &other)
	if out.Connect == "" || out != other {
		t.Errorf("snippets: %+v, %+v", out, other)
	}
}

func TestDetailsAndActions(t *testing.T) {
	b := newBoard(t, Options{})
	v := b.watch("")
	p := b.open("room:one", near, someTools+`,"prompts":[{"name":"ask","arguments":[{"name":"who","required":true}]}],"resources":[{"uri":"cart","mimeType":"text/plain"}],"resourceTemplates":[{"uriTemplate":"item/{id}"}],"problems":[{"name":"bad","index":3,"reason":"no"}]`, echo)
	c := v.connection("one")
	at := "/api/connections/" + c.ID
	d := get[dashboard.ConnectionDetails](b, at)
	if len(d.Tools) != 1 || d.Tools[0].Name != "one__add" || d.Tools[0].PageName != "add" || d.Tools[0].Source != "host" || string(d.Tools[0].Example) != `{"n":1}` || !json.Valid(d.Tools[0].InputSchema) {
		t.Errorf("tools: %+v", d.Tools)
	}
	if len(d.Prompts) != 1 || d.Prompts[0].Name != "one__ask" || !d.Prompts[0].Arguments[0].Required || len(d.Resources) != 2 || d.Resources[0].URI != "page://one/cart" || d.Resources[1].URITemplate != "page://one/item/{id}" {
		t.Errorf("prompts %+v, resources %+v", d.Prompts, d.Resources)
	}
	if len(d.ProblemList) != 1 || d.ProblemList[0].Name != "bad" || d.ID != c.ID || d.Connection.Channel != "room" {
		t.Errorf("problems: %+v, %+v", d.ProblemList, d.Connection)
	}

	b.do("POST", at+"/identify", struct{}{}, 204)
	if f := p.hears("identify"); f["label"] != "one" {
		t.Errorf("identify: %v", f)
	}
	b.do("POST", at+"/rename", map[string]string{"label": " My\u202eApp\n "}, 204)
	if f := p.hears("registered"); f["prefix"] != "myapp" && f["prefix"] != "my_app" {
		t.Errorf("renamed: %v", f)
	}
	after := v.sees("the new name", func(s *dashboard.State) bool { return strings.HasPrefix(s.Connections[0].Prefix, "my") }).Connections[0]
	if after.Rev <= c.Rev || after.ID != c.ID || strings.ContainsRune(after.Label, '\u202e') {
		t.Errorf("renamed: %+v", after)
	}
	b.do("POST", at+"/rename", map[string]string{"label": "\u200b"}, 400)
	b.do("POST", at+"/move", map[string]string{"to": "::"}, 400)
	b.do("POST", at+"/move", map[string]string{"to": "00000000-0000-4000-8000-000000000000"}, 404)
	b.do("POST", at+"/move", map[string]string{"to": "other room:x"}, 204)
	if f := p.hears("move_channel"); f["channel"] != "other-room:x" {
		t.Errorf("move: %v", f)
	}
	b.do("POST", at+"/disconnect", struct{}{}, 204)
	if f := p.hears("closed"); f["code"] != float64(1000) {
		t.Errorf("closed: %v", f)
	}
	v.sees("no connection", func(s *dashboard.State) bool { return len(s.Connections) == 0 && len(s.Channels) == 0 })
	for _, path := range []string{"/identify", "/rename", "/move", "/disconnect", "/tools", "/call"} {
		b.do("POST", at+path, struct{}{}, 404)
	}
	b.do("GET", at, nil, 404)
	b.do("DELETE", at+"/tools/x", nil, 404)
}

// scripted is a page whose script adds and removes tools.
func (b *board) scripted(connect string) *tab {
	var p *tab
	dynamic := map[string]string{}
	p = b.open(connect, near, someTools, func(f map[string]any) any {
		args, _ := f["args"].(map[string]any)
		name, _ := args["name"].(string)
		switch f["name"] {
		case "__register_tool_by_code__", "__register_tool_by_path__":
			if args["code"] == "throw" {
				p.say(fmt.Sprintf(`{"type":"call_result","id":%q,"error":{"message":"bad code","name":"SyntaxError"}}`, f["id"]))
				return nil
			}
			origin := map[string]any{"kind": "path", "path": args["path"]}
			if args["code"] != nil {
				origin = map[string]any{"kind": "code", "code": args["code"]}
			}
			tool, _ := json.Marshal(map[string]any{"name": name, "description": args["description"], "params": args["params"], "source": "dynamic", "origin": origin})
			dynamic[name] = string(tool)
		case "__unregister_tool__":
			delete(dynamic, args["toolName"].(string))
		default:
			return args
		}
		tools := `{"name":"add","description":"d"}`
		for _, d := range dynamic {
			tools += "," + d
		}
		p.say(`{"type":"register_tools","appLabel":"Page","tools":[` + tools + `]}`)
		return "done"
	})
	return p
}

func TestAddCallAndRemoveATool(t *testing.T) {
	b := newBoard(t, Options{})
	v := b.watch("")
	b.scripted("one")
	c := v.connection("one")
	at := "/api/connections/" + c.ID
	added := b.do("POST", at+"/tools", map[string]any{"name": "x/ü", "description": "d", "code": "return args", "params": map[string]any{"n": map[string]any{"type": "number"}}}, 200)
	if !strings.Contains(added, `"published":"one__x`) || !strings.Contains(added, `"confirmation":"done"`) {
		t.Errorf("added: %s", added)
	}
	b.do("POST", at+"/tools", map[string]any{"name": "y", "description": "d", "path": "a.b"}, 200)
	for _, bad := range []struct {
		body map[string]any
		want int
	}{
		{map[string]any{"name": "y", "description": "d", "path": "a.b"}, 409},
		{map[string]any{"name": "add", "description": "d", "path": "a.b"}, 409},
		{map[string]any{"name": "z", "description": "d"}, 400},
		{map[string]any{"name": "z", "description": "d", "path": "a", "code": "b"}, 400},
		{map[string]any{"name": "", "description": "d", "path": "a"}, 400},
		{map[string]any{"name": "z", "description": "d", "code": "1", "params": map[string]any{"n": map[string]any{"type": "nonsense"}}}, 400},
		{map[string]any{"name": "z", "description": "d", "code": "throw"}, 422},
		{map[string]any{"name": 1}, 400},
	} {
		b.do("POST", at+"/tools", bad.body, bad.want)
	}
	var called struct {
		Call   string
		MS     *float64
		Result struct {
			Content           []struct{ Type, Text string }
			StructuredContent map[string]any
			IsError           bool
		}
	}
	call := func(tool, args string) {
		t.Helper()
		called.Result.IsError = false
		if err := json.Unmarshal([]byte(b.do("POST", at+"/call", map[string]any{"tool": tool, "arguments": json.RawMessage(args)}, 200)), &called); err != nil {
			t.Fatal(err)
		}
	}
	call("x/ü", `{"n":"5"}`)
	if called.Result.IsError || called.Result.StructuredContent["n"] != float64(5) || called.MS == nil {
		t.Errorf("called: %+v", called)
	}
	d := get[dashboard.DetailedCall](b, "/api/calls/"+called.Call)
	if d.By != "dashboard" || string(d.Arguments) != `{"n":5}` || string(d.Result) != `{"n":5}` || d.State != "done" || d.Connection != c.ID {
		t.Errorf("in the log: %+v", d)
	}
	call("x/ü", `{"n":"many"}`)
	if !called.Result.IsError || !strings.Contains(called.Result.Content[0].Text, `"n"`) || called.Call != "" {
		t.Errorf("wrong arguments: %+v", called)
	}
	b.do("POST", at+"/call", map[string]any{"tool": "none"}, 404)

	b.do("DELETE", at+"/tools/x%2F%C3%BC", nil, 204)
	b.do("DELETE", at+"/tools/x%2F%C3%BC", nil, 404)
	b.do("DELETE", at+"/tools/add", nil, 409)

	// Everything went through the log as the dashboard's, and made no notice.
	s := v.sees("the calls", func(s *dashboard.State) bool { return len(s.Calls) >= 5 && s.Counters.Running == 0 })
	names := map[string]int{}
	for _, c := range s.Calls {
		names[c.Name]++
		if c.By != "dashboard" {
			t.Errorf("a call by %s", c.By)
		}
	}
	if names["register_page_tool_by_code"] != 2 || names["register_page_tool_by_path"] != 1 || names["unregister_page_tool"] != 1 {
		t.Errorf("calls: %v", names)
	}
	if _, _, notices := v.told(); len(notices) != 0 {
		t.Errorf("notices: %+v", notices)
	}

	// What an agent does makes one.
	a := b.agent("/mcp")
	if r, err := a.CallTool(t.Context(), &mcp.CallToolParams{Name: "register_page_tool_by_code", Arguments: map[string]any{"name": "z", "description": "does z", "code": "return 1"}}); err != nil || r.IsError {
		t.Fatalf("%+v, %v", r, err)
	}
	if r, err := a.CallTool(t.Context(), &mcp.CallToolParams{Name: "unregister_page_tool", Arguments: map[string]any{"toolName": "one__z"}}); err != nil || r.IsError {
		t.Fatalf("%+v, %v", r, err)
	}
	v.sees("two notices", func(*dashboard.State) bool { return len(v.notices) == 2 })
	_, _, notices := v.told()
	if n := notices[0]; n.Kind != "registered" || n.Published != "one__z" || n.Name != "z" || n.Origin == nil || n.Origin.Code != "return 1" || n.Client.Name != "tester" || n.Connection != c.ID || n.Description != "does z" {
		t.Errorf("the notice: %+v", n)
	}
	if notices[1].Kind != "unregistered" {
		t.Errorf("the other notice: %+v", notices[1])
	}
}

// A human hears of what an agent did while no dashboard was open.
func TestNoticesAwaitADashboard(t *testing.T) {
	b := newBoard(t, Options{})
	b.watch("").close()
	p := b.scripted("one")
	p.hears("registered")
	a := b.agent("/mcp")
	if r, err := a.CallTool(t.Context(), &mcp.CallToolParams{Name: "register_page_tool_by_code", Arguments: map[string]any{"name": "z", "description": "d", "code": "return 1"}}); err != nil || r.IsError {
		t.Fatalf("%+v, %v", r, err)
	}
	v := b.watch("")
	v.sees("the notice", func(*dashboard.State) bool { return len(v.notices) == 1 })
}

func TestPageCodeBindsTheDashboard(t *testing.T) {
	b := newBoard(t, Options{Tenant: tenant.Options{PageCode: tenant.RefuseCode}})
	v := b.watch("")
	b.scripted("one")
	at := "/api/connections/" + v.connection("one").ID
	b.do("POST", at+"/tools", map[string]any{"name": "x", "description": "d", "code": "return 1"}, 403)
	b.do("POST", at+"/tools", map[string]any{"name": "x", "description": "d", "path": "a.b"}, 200)
	if s := v.sees("a server", func(s *dashboard.State) bool { return s.Server.Epoch != "" }); s.Server.PageCode != "off" {
		t.Errorf("the page is told %q", s.Server.PageCode)
	}
}

func TestCancelARunningCall(t *testing.T) {
	b := newBoard(t, Options{})
	v := b.watch("")
	var p *tab
	p = b.open("one", near, someTools, func(f map[string]any) any {
		if f["progress"] == true {
			p.say(fmt.Sprintf(`{"type":"progress","id":%q,"progress":1,"total":2,"message":"half"}`, f["id"]))
		}
		return nil
	})
	v.connection("one")
	a := b.agent("/mcp")
	done := make(chan string, 1)
	go func() {
		r, err := a.CallTool(context.Background(), &mcp.CallToolParams{Name: "one__add", Arguments: map[string]any{"n": 1}})
		text := fmt.Sprint(err)
		if err == nil && len(r.Content) == 1 {
			text = fmt.Sprint(r.IsError, r.Content[0].(*mcp.TextContent).Text)
		}
		done <- text
	}()
	s := v.sees("live progress", func(s *dashboard.State) bool { return len(s.Calls) == 1 && s.Calls[0].Progress != nil })
	if pr := *s.Calls[0].Progress; pr.Progress != 1 || pr.Total != 2 || pr.Message != "half" {
		t.Errorf("progress: %+v", pr)
	}
	v.sees("a running session", func(s *dashboard.State) bool {
		return len(s.Sessions) == 1 && s.Sessions[0].Running == 1 && s.Counters.Running == 1
	})
	id := s.Calls[0].ID
	b.do("POST", "/api/calls/"+id+"/cancel", struct{}{}, 204)
	if text := <-done; !strings.HasPrefix(text, "true") || !strings.Contains(text, "cancelled by the user") || !strings.Contains(text, "may have run") {
		t.Errorf("the agent was told %s", text)
	}
	if f := p.hears("cancel"); !strings.Contains(f["reason"].(string), "dashboard") {
		t.Errorf("the page was told %v", f)
	}
	v.sees("the call's end", func(s *dashboard.State) bool {
		return s.Calls[0].State == "cancelled" && s.Sessions[0].Running == 0 && s.Counters.Running == 0
	})
	b.do("POST", "/api/calls/"+id+"/cancel", struct{}{}, 409)
	b.do("POST", "/api/calls/c99/cancel", struct{}{}, 404)
	b.do("GET", "/api/calls/c99", nil, 404)
}

func TestCallLog(t *testing.T) {
	for _, redact := range []bool{false, true} {
		b := newBoard(t, Options{Redact: redact})
		v := b.watch("")
		b.open("one", near, someTools, echo)
		at := "/api/connections/" + v.connection("one").ID
		for i := range 3 {
			b.do("POST", at+"/call", map[string]any{"tool": "add", "arguments": map[string]int{"n": i}}, 200)
		}
		log := b.do("GET", "/api/calls.jsonl", nil, 200)
		lines := strings.Split(strings.TrimSpace(log), "\n")
		for i, line := range lines {
			var d dashboard.DetailedCall
			if err := json.Unmarshal([]byte(line), &d); err != nil || d.ID != fmt.Sprintf("c%d", i+1) {
				t.Errorf("line %d: %s, %v", i, line, err)
			}
			if want := fmt.Sprintf(`{"n":%d}`, i); redact != (d.Arguments == nil) || redact != (d.Result == nil) || redact != (d.Omitted == "redacted") || !redact && string(d.Result) != want {
				t.Errorf("redact %v: %s", redact, line)
			}
		}
		if len(lines) != 3 {
			t.Errorf("%d lines", len(lines))
		}
		if s := v.sees("a server", func(s *dashboard.State) bool { return true }); s.Server.Redacted != redact {
			t.Errorf("redacted is %v", s.Server.Redacted)
		}
	}
}

func TestSnippets(t *testing.T) {
	b := newBoard(t, Options{})
	a := b.agent("/mcp")
	v := b.watch("")
	s := v.sees("a session", func(s *dashboard.State) bool { return len(s.Sessions) == 1 })
	own, err := a.CallTool(t.Context(), &mcp.CallToolParams{Name: "get_embed_snippet"})
	if err != nil {
		t.Fatal(err)
	}
	line := own.Content[0].(*mcp.TextContent).Text
	snippet := func(body map[string]string) (out struct{ Snippet, Connect string }) {
		t.Helper()
		if err := json.Unmarshal([]byte(b.do("POST", "/api/snippets", body, 200)), &out); err != nil {
			t.Fatal(err)
		}
		if out.Connect == "" || !strings.Contains(out.Snippet, strings.ReplaceAll(out.Connect, ":", "%3A")) && !strings.Contains(out.Snippet, out.Connect) {
			t.Errorf("%v: %.200s", body, out.Snippet)
		}
		return out
	}
	if got := snippet(map[string]string{"session": s.Sessions[0].ID, "form": "import"}); got.Snippet != line {
		t.Errorf("the session's line is %s, its agent has %s", got.Snippet, line)
	}
	if got := snippet(map[string]string{"connect": "my room:x", "form": "script"}); !strings.HasPrefix(got.Snippet, "<script") || got.Connect != "my-room:x" {
		t.Errorf("%+v", got)
	}
	if got := snippet(map[string]string{"connect": "x", "form": "inline"}); strings.Contains(got.Snippet, "import(") && !strings.HasSuffix(got.Snippet, `"x");`) {
		t.Errorf("%.100s", got.Snippet)
	}
	first, again, other := snippet(map[string]string{}), snippet(map[string]string{"workspace": "default"}), snippet(map[string]string{"workspace": "other"})
	if first != again || first == other {
		t.Errorf("workspaces: %+v, %+v, %+v", first, again, other)
	}
	v.sees("the workspaces", func(s *dashboard.State) bool { return len(s.Workspaces) == 2 })
	for _, bad := range []map[string]string{{"workspace": "a b"}, {"workspace": "bearer:000000000000"}, {"connect": "::"}, {"form": "bookmark"}, {"workspace": "x", "connect": "y"}, {"session": "x", "connect": "y"}} {
		b.do("POST", "/api/snippets", bad, 400)
	}
	b.do("POST", "/api/snippets", map[string]string{"session": "s99"}, 404)
}

func TestAPIRefusals(t *testing.T) {
	b := newBoard(t, Options{})
	without := func(key string) map[string]string {
		h := b.headers()
		delete(h, key)
		return h
	}
	with := func(key, value string) map[string]string {
		h := b.headers()
		h[key] = value
		return h
	}
	paths := map[string]string{"/api/connections/x/identify": "POST", "/api/connections/x/rename": "POST", "/api/connections/x/move": "POST", "/api/connections/x/disconnect": "POST",
		"/api/connections/x/tools": "POST", "/api/connections/x/tools/y": "DELETE", "/api/connections/x/call": "POST", "/api/calls/x/cancel": "POST", "/api/snippets": "POST", "/api/origins": "POST"}
	for path, method := range paths {
		for name, tt := range map[string]struct {
			header map[string]string
			status int
			kind   string
		}{
			"no token":                {without("X-Jsbridge-Token"), 403, dashboard.WrongToken},
			"a wrong token":           {with("X-Jsbridge-Token", strings.ToLower(b.token)), 403, dashboard.WrongToken},
			"a part of the token":     {with("X-Jsbridge-Token", b.token[:25]), 403, dashboard.WrongToken},
			"no content type":         {without("Content-Type"), 415, ""},
			"a form":                  {with("Content-Type", "text/plain"), 415, ""},
			"a foreign origin":        {with("Origin", "https://evil.example"), 403, ""},
			"another port":            {with("Origin", "http://localhost:1"), 403, ""},
			"no origin of its own":    {with("Origin", "null"), 403, ""},
			"a cross-site request":    {with("Sec-Fetch-Site", "cross-site"), 403, ""},
			"a same-site request":     {with("Sec-Fetch-Site", "same-site"), 403, ""},
			"a token of another kind": {with("X-Jsbridge-Token", ""), 403, dashboard.WrongToken},
		} {
			status, header, body := b.ask(method, path, "{}", tt.header)
			var p struct{ Type string }
			_ = json.Unmarshal([]byte(body), &p)
			if status != tt.status || p.Type != tt.kind {
				t.Errorf("%s with %s: %d %s", path, name, status, body)
			}
			isProblem(t, path, status, header, body)
		}
		if method == "POST" {
			large := `{"x":"` + strings.Repeat("x", 1<<20) + `"}`
			for body, want := range map[string]int{"": 400, "null": 400, "[]": 400, "{": 400, "1": 400, large: 413} {
				if path == "/api/connections/x/identify" || strings.HasPrefix(path, "/api/connections") {
					want = 404 // there is no such page, which comes first
				}
				status, header, got := b.ask(method, path, body, b.headers())
				if status != want {
					t.Errorf("%s with %.20q: %d %s", path, body, status, got)
				}
				isProblem(t, path, status, header, got)
			}
		}
		status, header, body := b.ask("PATCH", path, "{}", b.headers())
		if status != 405 || !strings.Contains(header.Get("Allow"), method) {
			t.Errorf("PATCH %s: %d %s", path, status, body)
		}
		isProblem(t, path, status, header, body)
	}
	for _, path := range []string{"/api/", "/api/nothing", "/api/connections", "/api/connections/x/tools/y/z", "/api/calls"} {
		status, header, body := b.ask("GET", path, "", nil)
		if status != 404 {
			t.Errorf("%s: %d", path, status)
		}
		isProblem(t, path, status, header, body)
	}
	for _, path := range []string{"/api/events", "/api/calls.jsonl", "/api/origins", "/api/connections/x"} {
		for _, header := range []map[string]string{{"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}} {
			status, h, body := b.ask("GET", path, "", header)
			if status != 403 || h.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s with %v: %d %s", path, header, status, body)
			}
			isProblem(t, path, status, h, body)
		}
	}
	if status, h, _ := b.ask("HEAD", "/api/events", "", nil); status != 200 || h.Get("Content-Type") != "text/event-stream" {
		t.Errorf("HEAD of the stream: %d %v", status, h)
	}
}

// With --token the page loads without it, and nothing else of the API does.
func TestAPIWithToken(t *testing.T) {
	b := newBoard(t, Options{Token: "s3cret"})
	for _, header := range []map[string]string{b.headers(), {"Authorization": "Bearer wrong"}} {
		for path, method := range map[string]string{"/api/events": "GET", "/api/snippets": "POST", "/api/calls.jsonl": "GET", "/api/nothing": "GET"} {
			status, h, body := b.ask(method, path, "{}", header)
			if status != 401 || h.Get("WWW-Authenticate") == "" {
				t.Errorf("%s: %d %s", path, status, body)
			}
			isProblem(t, path, status, h, body)
		}
	}
	h := b.headers()
	h["Authorization"] = "Bearer s3cret"
	if status, _, body := b.ask("POST", "/api/snippets", "{}", h); status != 200 {
		t.Errorf("with the token: %d %s", status, body)
	}
}

func TestPageHeaders(t *testing.T) {
	b := newBoard(t, Options{})
	_, h, body := b.ask("GET", "/", "", nil)
	for key, want := range map[string]string{
		"Content-Security-Policy": "frame-ancestors 'none'", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cross-Origin-Opener-Policy": "same-origin",
		"Cross-Origin-Resource-Policy": "same-origin", "Permissions-Policy": "camera=()", "Cache-Control": "no-store", "X-Frame-Options": "DENY",
	} {
		if !strings.Contains(h.Get(key), want) {
			t.Errorf("%s: %q", key, h.Get(key))
		}
	}
	for _, want := range []string{"require-trusted-types-for 'script'", "trusted-types 'none'", "default-src 'none'", "script-src 'self';"} {
		if !strings.Contains(h.Get("Content-Security-Policy"), want) {
			t.Errorf("the policy lacks %s: %s", want, h.Get("Content-Security-Policy"))
		}
	}
	if h.Get("ETag") != "" || strings.Count(body, b.token) != 1 {
		t.Errorf("the page may be kept, or has not its token once: %v", h)
	}
	if other := newBoard(t, Options{}); other.token == b.token {
		t.Error("two starts have one token")
	}
}

// What a page says comes out as JSON text, and has no part in the stream's own
// lines.
func TestHostileStrings(t *testing.T) {
	b := newBoard(t, Options{})
	v := b.watch("")
	hostile := "</script><img src=x onerror=alert(1)>\u202e\u2028\nid: 9\nevent: snapshot\ndata: {}\n\n\x00"
	enc, _ := json.Marshal(hostile)
	tools := fmt.Sprintf(`[{"name":%s,"description":%s,"title":%s,"example":{"x":%s}}],"summary":%s`, strings.ReplaceAll(string(enc), `\u0000`, ""), enc, enc, enc, enc)
	var p *tab
	p = b.open("one", near, tools, func(f map[string]any) any {
		p.say(fmt.Sprintf(`{"type":"call_result","id":%q,"error":{"message":%s,"name":%s}}`, f["id"], enc, enc))
		return nil
	})
	c := v.connection("one")
	if strings.ContainsAny(c.Summary, "\u202e\u2028\x00") {
		t.Errorf("the summary: %q", c.Summary)
	}
	at := "/api/connections/" + c.ID
	d := get[dashboard.ConnectionDetails](b, at)
	if len(d.Tools) != 1 || strings.ContainsAny(d.Tools[0].Title, "\u202e\n") || !regexp.MustCompile(`^[a-z][A-Za-z0-9_-]*$`).MatchString(d.Tools[0].Name) {
		t.Fatalf("tools: %+v, %+v", d.Tools, d.ProblemList)
	}
	if raw := b.do("GET", at, nil, 200); strings.Contains(raw, "<img") || strings.Count(raw, "\n") != 1 {
		t.Errorf("details: %s", raw)
	}
	b.do("POST", at+"/call", map[string]any{"tool": d.Tools[0].PageName}, 200)
	s := v.sees("the failed call", func(s *dashboard.State) bool { return len(s.Calls) == 1 && s.Calls[0].State == "failed" })
	if e := s.Calls[0].Error; strings.ContainsAny(e, "\u202e\u2028\n\x00") || len(e) > 300 {
		t.Errorf("the error: %q", e)
	}
	if _, kinds, _ := v.told(); slices.Contains(kinds[1:], "snapshot") {
		t.Errorf("a page made an event: %v", kinds)
	}
}

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
