package page

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/coder/websocket"

	"jsbridge/manifest"
	"jsbridge/tenant"
)

// FuzzSession feeds frames, one a line, to the whole of a page's connection, while
// calls are running: of the page (ids 1-1, 1-2 and so on), and of another page (2-1).
// Whatever it says, all its calls end, the other page's goes on, and what the page is
// told is of the protocol. The network is a pipe, the clock waits for nobody.
func FuzzSession(f *testing.F) {
	var all []string
	paths, _ := filepath.Glob(filepath.Join("testdata", "wire", "page-*.json"))
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			f.Fatal(err)
		}
		var line bytes.Buffer
		if err := json.Compact(&line, b); err != nil {
			f.Fatal(err)
		}
		all = append(all, line.String())
		f.Add(line.Bytes(), true)
	}
	f.Add([]byte(strings.Join(all, "\n")), true)
	for _, seed := range []string{
		`{"type":"call_result","id":"1-1","result":[1]}` + "\n" + `{"type":"call_result","id":"1-1","result":2}` + "\n" + `{"type":"call_result","id":"2-1","result":"stolen"}`,
		`{"type":"progress","id":"1-1","progress":1e308,"total":1e309}` + "\n" + `{"type":"log","id":"1-1","level":"info","data":{}}` + "\n" + `{"type":"call_result","id":"1-2","error":{"message":5}}`,
		`{"type":"ask","id":"q","callId":"1-1","kind":"elicit","params":{"message":"?"}}` + "\n" + `{"type":"ask","id":"q","callId":"2-1","kind":"sample"}` + "\n" + `{"type":"ask","id":"","callId":"1-1","kind":"x"}`,
		`{"type":"rename_connection","appLabel":"B"}` + "\n" + `{"type":"register_tools","appLabel":"B","tools":[{"name":"t"},{"name":"T"},5]}` + "\n" + `{"type":"leave_channel"}` + "\n" + `{"type":"alive"}`,
		`{"type":"register_tools","tools":[]}` + "\n" + `{"type":"register_tools"}` + "\n" + `{"type":"nonsense"}` + "\n" + `{}` + "\n" + `[]`,
		"\x00", "{\"type\":\"alive\",\"\xff\":1}", "",
	} {
		f.Add([]byte(seed), true)
		f.Add([]byte(seed), false)
	}
	f.Fuzz(func(t *testing.T, data []byte, v1 bool) {
		frames := bytes.Split(data, []byte("\n"))
		if len(frames) > 200 {
			return // takes long, and shows no more
		}
		synctest.Test(t, func(t *testing.T) { fuzzSession(t, frames, v1) })
	})
}

func fuzzSession(t *testing.T, frames [][]byte, v1 bool) {
	r := tenant.NewRegistry(tenant.Options{})
	own, err := r.Open()
	if err != nil {
		t.Fatal(err)
	}
	ws, end := dialPiped(t, r, own, v1)
	defer end()
	told := make(chan string, 1)
	go func() { told <- protocolErrors(ws, v1) }()
	say := func(frame []byte) bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := ws.Write(ctx, websocket.MessageText, frame)
		synctest.Wait()
		return err == nil
	}
	say([]byte(`{"type":"register_tools","appLabel":"A","tools":[{"name":"t"}]}`))
	other := bystander(t, r)
	var calls []<-chan error
	for range 3 {
		calls = append(calls, startCall(t, own.Snapshot(), "a__t"))
	}
	synctest.Wait()
	for _, frame := range frames {
		if !say(frame) {
			break
		}
	}
	checkPublished(t, own.Snapshot())
	other.check(t)

	time.Sleep(tenant.DefaultCallTimeout + time.Second) // a page that can't pong is gone by now
	synctest.Wait()
	for i, done := range calls {
		select {
		case <-done:
		default:
			t.Errorf("call %d does not end", i+1)
		}
	}
	_ = ws.CloseNow()
	if wrong := <-told; wrong != "" {
		t.Error(wrong)
	}
	if got := own.Pages(); len(got) > 1 {
		t.Errorf("one socket makes %d pages", len(got))
	}
}

// dialPiped opens a page's socket to a handler that nobody else can reach. Call end
// once all is done: it checks that nothing was logged as an error.
func dialPiped(t *testing.T, r *tenant.Registry, own *tenant.Tenant, v1 bool) (ws *websocket.Conn, end func()) {
	t.Helper()
	var log lockedBuffer
	h := New(r, Options{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelError})), MaxTools: 64})
	pipes := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	srv := &http.Server{Handler: h, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	go func() { _ = srv.Serve(pipes) }()
	query := "?tenant=" + own.ID()
	if v1 {
		query += "&v=1&instance=0123456789abcdef"
	}
	client := &http.Client{Transport: &http.Transport{DialContext: pipes.dial, DisableKeepAlives: true}}
	ws, _, err := websocket.Dial(t.Context(), "http://localhost/ws"+query, &websocket.DialOptions{HTTPClient: client})
	if err != nil {
		t.Fatal(err)
	}
	ws.SetReadLimit(-1)
	return ws, func() {
		r.Close()
		_ = srv.Close()
		h.Wait(context.Background())
		synctest.Wait()
		if log.String() != "" {
			t.Errorf("logged: %s", &log)
		}
	}
}

// protocolErrors reads all that a page is told, answering probes, and says what of it
// is not of the protocol.
func protocolErrors(ws *websocket.Conn, v1 bool) string {
	older := map[string]bool{"init": true, "call": true, "identify": true, "move_channel": true}
	for {
		typ, data, err := ws.Read(context.Background())
		var ce websocket.CloseError
		if errors.As(err, &ce) {
			switch ce.Code {
			case websocket.StatusNormalClosure, websocket.StatusUnsupportedData, websocket.StatusGoingAway:
				return ""
			}
			return "closed with " + ce.Error()
		}
		if err != nil {
			return ""
		}
		var f struct {
			Type string
			ID   *string
		}
		if typ != websocket.MessageText || !utf8.Valid(data) || json.Unmarshal(data, &f) != nil || f.Type == "" || !v1 && !older[f.Type] {
			return "told " + string(data)
		}
		if f.Type == "probe" {
			_ = ws.Write(context.Background(), websocket.MessageText, []byte(`{"type":"alive","id":"1"}`))
		}
	}
}

// checkPublished checks that every name is there once and leads to its own tool.
func checkPublished(t *testing.T, s *tenant.Snapshot) {
	t.Helper()
	seen := make(map[string]bool)
	for _, e := range s.Entries() {
		if found, ok := s.Find(e.Name); seen[strings.ToLower(e.Name)] || !ok || found.Tool != e.Tool || found.Page != e.Page {
			t.Errorf("%q is there twice or leads elsewhere", e.Name)
		}
		seen[strings.ToLower(e.Name)] = true
	}
}

func startCall(t *testing.T, s *tenant.Snapshot, name string) <-chan error {
	t.Helper()
	done := make(chan error, 1)
	e, ok := s.Find(name)
	if !ok {
		t.Fatalf("there is no %s", name)
	}
	go func() {
		_, err := e.Page.Call(context.Background(), e.Tool, tenant.Call{Args: json.RawMessage(`{}`), OnEvent: func(tenant.Event) {},
			OnAsk: func(a *tenant.Ask) { a.Answer(tenant.Answer{Result: json.RawMessage(`{}`)}) }})
		done <- err
	}()
	return done
}

// otherPage is a page of another tenant that has a call running.
type otherPage struct {
	*tenant.Tenant
	link  *tenant.Link
	heard lockedBuffer
	call  <-chan error
}

func bystander(t *testing.T, r *tenant.Registry) *otherPage {
	t.Helper()
	own, err := r.Open()
	if err != nil {
		t.Fatal(err)
	}
	o := &otherPage{Tenant: own}
	if o.link, err = r.Join(tenant.Connect{Session: own.ID()}, tenant.Joining{Transport: o}); err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Parse([]byte(`{"appLabel":"B","tools":[{"name":"t"}]}`), manifest.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.link.Register(m); err != nil {
		t.Fatal(err)
	}
	o.call = startCall(t, own.Snapshot(), "b__t")
	synctest.Wait()
	return o
}

// check tells whether nothing has happened to it.
func (o *otherPage) check(t *testing.T) {
	t.Helper()
	select {
	case err := <-o.call:
		t.Errorf("another page's call ended: %v", err)
		return
	default:
	}
	if heard := o.heard.String(); heard != "call 2-1\n" {
		t.Errorf("another page heard %q", heard)
	}
	if _, ok := o.Snapshot().Find("b__t"); !ok || o.link.Answer("2-1", tenant.Answer{}) != nil || <-o.call != nil {
		t.Error("another page can't answer its call")
	}
}

func (o *otherPage) Call(c tenant.CallFrame) error     { o.heard.add("call " + c.ID); return nil }
func (o *otherPage) Cancel(id, _ string)               { o.heard.add("cancel " + id) }
func (o *otherPage) Probe()                            {}
func (o *otherPage) Answer(id string, _ tenant.Answer) { o.heard.add("answer " + id) }
func (o *otherPage) Watch(uri string, _ bool)          { o.heard.add("watch " + uri) }
func (o *otherPage) Complain(message string)           { o.heard.add("complain " + message) }
func (o *otherPage) Identify(string)                   { o.heard.add("identify") }
func (o *otherPage) Approved(*tenant.Registration)     { o.heard.add("approved") }
func (o *otherPage) Registered(tenant.Registration)    { o.heard.add("registered") }
func (o *otherPage) Move(tenant.Connect)               { o.heard.add("move") }
func (o *otherPage) Close(tenant.Reason)               {}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) add(line string) { _, _ = l.Write([]byte(line + "\n")) }

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// pipeListener accepts what its dial opens, in memory.
type pipeListener struct {
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func (p *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipeListener) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipeListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }
