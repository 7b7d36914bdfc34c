package bridge

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"jsbridge/bridge/dashboard"
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
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	opts.Agent.NoShortcut = noShortcut
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
	req.Host = header["Host"] // which net/http does not take from the header; "" is the URL's
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
