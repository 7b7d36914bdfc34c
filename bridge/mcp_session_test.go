package bridge

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"jsbridge/bridge/agent"
)

// patience bounds waits; nothing is asserted to be fast by it.
const patience = 30 * time.Second

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// receive waits for what a channel gives.
func receive[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("waited in vain for %s", what)
		panic("unreachable")
	}
}

// scripted is a page without a browser.
type scripted struct {
	t *testing.T
	*websocket.Conn
}

// page connects one under a name: as a root connection, for all sessions.
func (e *edge) page(name string) *scripted {
	e.t.Helper()
	ws, _, err := websocket.Dial(within(e.t), "ws://"+e.addr+"/ws?v=1&tenant="+name, nil)
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() { _ = ws.CloseNow() })
	return &scripted{e.t, ws}
}

func (p *scripted) say(message string) {
	p.t.Helper()
	if err := p.Write(within(p.t), websocket.MessageText, []byte(message)); err != nil {
		p.t.Fatal(err)
	}
}

// declare replaces the page's tools and waits until the server has them.
func (p *scripted) declare(names ...string) {
	p.t.Helper()
	var tools []string
	for _, n := range names {
		tools = append(tools, fmt.Sprintf(`{"name":%q,"description":"d"}`, n))
	}
	p.say(`{"type":"register_tools","tools":[` + strings.Join(tools, ",") + `]}`)
	p.hears("registered")
}

// frame is what these tests look at of a server's message.
type frame struct{ Type, ID, Name string }

// hears reads on until a message of this type.
func (p *scripted) hears(kind string) frame {
	p.t.Helper()
	for {
		_, b, err := p.Read(within(p.t))
		if err != nil {
			p.t.Fatalf("while waiting for %s: %v", kind, err)
		}
		var f frame
		if err := json.Unmarshal(b, &f); err != nil {
			p.t.Fatal(err)
		}
		if f.Type == kind {
			return f
		}
	}
}

// call is a tools/call in its own goroutine.
func (e *edge) call(session, tool string) <-chan *reply {
	done := make(chan *reply, 1)
	e.t.Cleanup(func() {
		select {
		case <-done:
		case <-time.After(patience):
			e.t.Errorf("the call of %s never ended", tool)
		}
	})
	answer := make(chan *reply, 1)
	go func() {
		defer close(done)
		answer <- e.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":%q}}`, tool), "Mcp-Session-Id", session)
	}()
	return answer
}

// open opens a session's standalone stream and gives its lines.
func (e *edge) open(session string) *bufio.Scanner {
	e.t.Helper()
	req, err := http.NewRequestWithContext(e.t.Context(), http.MethodGet, "http://"+e.addr+"/mcp", nil)
	if err != nil {
		e.t.Fatal(err)
	}
	req.Header = headers("Mcp-Session-Id", session, "Accept", "text/event-stream")
	res, err := e.http.RoundTrip(req)
	if err != nil {
		e.t.Fatal(err)
	}
	if res.StatusCode != 200 {
		e.t.Fatalf("GET: %d", res.StatusCode)
	}
	e.t.Cleanup(func() { res.Body.Close() })
	return bufio.NewScanner(res.Body)
}

// tells are the notifications on a stream, until it ends.
func tells(lines *bufio.Scanner) <-chan string {
	c := make(chan string, 1000)
	go func() {
		defer close(c)
		for lines.Scan() {
			if strings.Contains(lines.Text(), `"method":"notifications/`) {
				c <- lines.Text()
			}
		}
	}()
	return c
}

// The SDK alone would have DELETE wait for the page, and never tell it.
func TestDeleteReachesThePage(t *testing.T) {
	e := newEdge(t, Options{})
	page := e.page("shop")
	page.declare("wait")
	id := e.session(latestSessions)
	answer := e.call(id, "shop__wait")
	called := page.hears("call")
	// The page has not answered, and never will.
	if r := e.do(http.MethodDelete, "/mcp", "", headers("Mcp-Session-Id", id)); r.StatusCode != 204 || r.text != "" {
		t.Errorf("DELETE: %v", r)
	}
	if cancelled := page.hears("cancel"); cancelled.ID != called.ID {
		t.Errorf("call %s was cancelled, not %s", cancelled.ID, called.ID)
	}
	receive(t, "the call's end", answer)
	for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
		if r := e.do(method, "/mcp", toolsList, headers("Mcp-Session-Id", id)); r.StatusCode != 404 || r.code() == 0 {
			t.Errorf("%s after DELETE: %v", method, r)
		}
	}
	// The page is as good as before.
	answer = e.call(e.session(latestSessions), "shop__wait")
	page.say(`{"type":"call_result","id":"` + page.hears("call").ID + `","result":"fine"}`)
	if r := receive(t, "the next call", answer); !strings.Contains(r.text, `"fine"`) {
		t.Errorf("the next call: %v", r)
	}
}

// A session that waits for its page is not idle, nor is one that listens.
func TestReaperSparesCallsAndStreams(t *testing.T) {
	t.Parallel() // it waits
	e := newEdge(t, Options{Agent: agent.Options{SessionIdle: 3 * time.Second}})
	page := e.page("shop")
	page.declare("wait")
	calling, listening := e.session(latestSessions), e.session(latestSessions)
	e.open(listening)
	answer := e.call(calling, "shop__wait")
	called := page.hears("call")
	// This one is younger, and idle: once it is gone, a session that the reaper
	// takes for idle would be gone as well.
	e.post(initializeFor(latestSessions))
	e.waitSessions(2)
	for _, id := range []string{calling, listening} {
		if r := e.post(ping, "Mcp-Session-Id", id); r.StatusCode != 200 || r.code() != 0 {
			t.Errorf("ping: %v", r)
		}
	}
	page.say(`{"type":"call_result","id":"` + called.ID + `","result":"fine"}`)
	if r := receive(t, "the call's end", answer); !strings.Contains(r.text, `"fine"`) {
		t.Errorf("the call: %v", r)
	}
	e.waitSessions(1) // now that one is idle
}

func (e *edge) waitSessions(want int) {
	e.t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	limit := time.After(patience)
	for e.agents.Sessions() != want {
		select {
		case <-tick.C:
		case <-limit:
			e.t.Fatalf("%d sessions, want %d", e.agents.Sessions(), want)
		}
	}
}

// watchedListener tells what becomes of one client's connection.
type watchedListener struct {
	net.Listener
	// patient leaves out deadlines that are still to come.
	patient bool
	mu      sync.Mutex
	conns   map[string]*watchedConn
}

type watchedConn struct {
	net.Conn
	patient     bool
	begun, done atomic.Int64 // writes
	closed      chan struct{}
	closing     sync.Once
}

func (l *watchedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	// So that little fills it.
	_ = c.(*net.TCPConn).SetWriteBuffer(4 << 10)
	w := &watchedConn{Conn: c, patient: l.patient, closed: make(chan struct{})}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns[c.RemoteAddr().String()] = w
	return w, nil
}

func (l *watchedListener) find(client net.Conn) *watchedConn {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.conns[client.LocalAddr().String()]
}

func (c *watchedConn) Write(b []byte) (int, error) {
	c.begun.Add(1)
	defer c.done.Add(1)
	return c.Conn.Write(b)
}

func (c *watchedConn) SetWriteDeadline(t time.Time) error {
	if c.patient && time.Until(t) > time.Second {
		t = time.Time{}
	}
	return c.Conn.SetWriteDeadline(t)
}

func (c *watchedConn) Close() error {
	c.closing.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// writing is the number of the write that is under way, 0 for none.
func (c *watchedConn) writing() int64 {
	if done, begun := c.done.Load(), c.begun.Load(); begun > done {
		return begun
	}
	return 0
}

// newWatchedEdge has small buffers, and streams that are never silent.
func newWatchedEdge(t *testing.T, patient bool) (*edge, *watchedListener) {
	t.Helper()
	e := newStoppedEdge(t, Options{Agent: agent.Options{KeepAlive: time.Millisecond}})
	l := &watchedListener{Listener: e.listeners[0], patient: patient, conns: make(map[string]*watchedConn)}
	e.listeners[0] = l
	e.Start()
	return e, l
}

// stall sends a request and never reads the answer.
func (e *edge) stall(l *watchedListener, method, body string, lines ...string) *watchedConn {
	e.t.Helper()
	c, _ := e.raw("")
	_ = c.(*net.TCPConn).SetReadBuffer(4 << 10)
	lines = append(lines, "Host: "+e.addr, fmt.Sprintf("Content-Length: %d", len(body)))
	e.write(c, method+" /mcp HTTP/1.1\r\n"+strings.Join(lines, "\r\n")+"\r\n\r\n"+body)
	var w *watchedConn
	for w == nil { // the server may not have accepted it yet
		e.do(http.MethodGet, "/healthz", "", http.Header{})
		w = l.find(c)
	}
	return w
}

// waitStuck waits until a session hears of three changes while one and the same
// write to another's connection is under way: that one holds up nobody.
func (e *edge) waitStuck(conn *watchedConn, page *scripted) {
	e.t.Helper()
	other := e.session(latestSessions)
	told := tells(e.open(other))
	var during, stuck int64
	for i := 0; during < 3; i++ {
		before := conn.writing()
		page.declare(fmt.Sprintf("tool%d", i))
		e.wantListChanged("another session", told)
		e.post(toolsList, "Mcp-Session-Id", other)
		switch now := conn.writing(); {
		case now == 0 || now != before:
			during = 0
		case now == stuck:
			during++
		default:
			stuck, during = now, 1
		}
		select {
		case <-conn.closed:
			e.t.Fatal("the stalled stream was cut before another session was told of three changes")
		default:
		}
	}
}

func (e *edge) wantListChanged(who string, told <-chan string) {
	e.t.Helper()
	if s := receive(e.t, "list_changed to "+who, told); !strings.Contains(s, "tools/list_changed") {
		e.t.Fatalf("%s was told %q", who, s)
	}
}

// A client that stopped reading holds up nobody else, and is cut off in the end.
func TestStalledStreamDelaysNobody(t *testing.T) {
	t.Parallel() // it waits for the deadline
	e, l := newWatchedEdge(t, false)
	page := e.page("shop")
	id := e.session(latestSessions)
	conn := e.stall(l, "GET", "", "Mcp-Session-Id: "+id)
	e.waitStuck(conn, page)
	// Nor does it hold up its own session's requests.
	if r := e.post(toolsList, "Mcp-Session-Id", id); r.StatusCode != 200 {
		t.Errorf("tools/list of the stalled session: %v", r)
	}
	receive(t, "the stalled stream's end", conn.closed)
	// The session is still there; its next stream tells what the last one missed.
	page.declare("last")
	e.wantListChanged("the new stream", tells(e.open(id)))
}

// A client whose connection hangs opens its stream anew, and has it at once,
// whenever the old one would have been cut.
func TestStalledStreamIsTakenOver(t *testing.T) {
	e, l := newWatchedEdge(t, true)
	page := e.page("shop")
	id := e.session(latestSessions)
	conn := e.stall(l, "GET", "", "Mcp-Session-Id: "+id)
	e.waitStuck(conn, page)
	told := tells(e.open(id))
	receive(t, "the old stream's end", conn.closed)
	page.declare("last")
	e.wantListChanged("the new stream", told)
}

// Likewise it can end its session.
func TestDeleteWithStalledStream(t *testing.T) {
	e, l := newWatchedEdge(t, true)
	page := e.page("shop")
	id := e.session(latestSessions)
	conn := e.stall(l, "GET", "", "Mcp-Session-Id: "+id)
	e.waitStuck(conn, page)
	if r := e.do(http.MethodDelete, "/mcp", "", headers("Mcp-Session-Id", id)); r.StatusCode != 204 {
		t.Errorf("DELETE: %v", r)
	}
	receive(t, "the stream's end", conn.closed)
}

// Answers that are no stream are cut off likewise when nobody reads them.
func TestStalledAnswerIsCut(t *testing.T) {
	t.Parallel()
	e, l := newWatchedEdge(t, false)
	var lists []string // much, in one answer
	for n := range 40 {
		lists = append(lists, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/list"}`, n))
	}
	var conns []*watchedConn
	for _, accept := range []string{"application/json", "text/event-stream"} {
		conns = append(conns, e.stall(l, "POST", "["+strings.Join(lists, ",")+"]", "Mcp-Session-Id: "+e.session("2025-03-26"), "Content-Type: application/json", "Accept: "+accept))
	}
	for _, c := range conns {
		receive(t, "the end of an answer", c.closed)
	}
}
