package page

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"jsbridge/tenant"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 30 * time.Second

type side struct {
	t *testing.T
	*Handler
	*tenant.Tenant
	url string
}

func newSide(t *testing.T, opts Options, topts tenant.Options) *side {
	t.Helper()
	opts.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	r := tenant.NewRegistry(topts)
	tn, err := r.Open()
	if err != nil {
		t.Fatal(err)
	}
	h, url := start(t, r, opts)
	return &side{t, h, tn, url}
}

// start serves pages over real HTTP.
func start(t *testing.T, r *tenant.Registry, opts Options) (h *Handler, url string) {
	t.Helper()
	h = New(r, opts)
	srv := httptest.NewServer(h)
	t.Cleanup(func() {
		r.Close()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		h.Wait(ctx)
		srv.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return h, srv.URL
}

// dial opens a page's socket and registers its tools.
func (s *side) dial(query, label string) *websocket.Conn {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ws, _, err := websocket.Dial(ctx, s.url+"/ws?tenant="+s.ID()+query, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = ws.CloseNow() })
	ws.SetReadLimit(64 << 20)
	if err := ws.Write(ctx, websocket.MessageText, []byte(`{"type":"register_tools","appLabel":"`+label+`","tools":[{"name":"x","description":"d"}]}`)); err != nil {
		s.t.Fatal(err)
	}
	s.waitFor(label+"__x", func() bool { _, ok := s.Snapshot().Find(label + "__x"); return ok })
	return ws
}

func (s *side) waitFor(what string, ok func() bool) {
	s.t.Helper()
	limit := time.After(patience)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-limit:
			s.t.Fatalf("waited in vain for %s", what)
		}
	}
}

// answerAll answers each call with its own arguments, until the socket ends.
func answerAll(ws *websocket.Conn) {
	for {
		_, data, err := ws.Read(context.Background())
		if err != nil {
			return
		}
		var f struct {
			Type, ID string
			Args     json.RawMessage
		}
		if json.Unmarshal(data, &f) != nil || f.Type != "call" {
			continue
		}
		if ws.Write(context.Background(), websocket.MessageText, fmt.Appendf(nil, `{"type":"call_result","id":%q,"result":%s}`, f.ID, f.Args)) != nil {
			return
		}
	}
}

func (s *side) call(name, args string) error {
	e, ok := s.Snapshot().Find(name)
	if !ok {
		return errors.New("no such tool")
	}
	a, err := e.Page.Call(s.t.Context(), e.Tool, tenant.Call{Args: json.RawMessage(args)})
	if err == nil && string(a.Result) != args {
		return fmt.Errorf("sent %.40s, got %.40s", args, a.Result)
	}
	return err
}

// A page that stops reading is disconnected, and nobody else notices.
func TestSlowReaderFailsAlone(t *testing.T) {
	s := newSide(t, Options{MaxFrame: 2 << 20, WriteTimeout: 5 * time.Second}, tenant.Options{ReconnectGrace: time.Millisecond})
	s.dial("&v=1", "slow") // never reads
	go answerAll(s.dial("&v=1", "good"))
	var wg sync.WaitGroup
	args := `{"text":"` + strings.Repeat("x", 1<<20) + `"}`
	for i := range 40 {
		wg.Go(func() {
			var ce *tenant.CallError
			if err := s.call("slow__x", args); !errors.As(err, &ce) && err != nil && err.Error() != "no such tool" {
				t.Errorf("the slow page's call: %v", err)
			}
		})
		wg.Go(func() {
			if err := s.call("good__x", fmt.Sprintf(`{"n":%d}`, i)); err != nil {
				t.Errorf("the good page's call: %v", err)
			}
		})
	}
	wg.Wait()
	s.waitFor("the slow page to be gone", func() bool { _, ok := s.Snapshot().Find("slow__x"); return !ok })
}

// An answer that comes at once finds its call.
func TestFastAnswers(t *testing.T) {
	s := newSide(t, Options{}, tenant.Options{})
	go answerAll(s.dial("&v=1", "fast"))
	var wg sync.WaitGroup
	for c := range 8 {
		wg.Go(func() {
			for i := range 500 {
				if err := s.call("fast__x", fmt.Sprintf(`{"c":%d,"i":%d}`, c, i)); err != nil {
					t.Errorf("call %d/%d: %v", c, i, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// A socket that was cut without a word is noticed by its pings.
func TestSilentPeerIsClosed(t *testing.T) {
	s := newSide(t, Options{PingInterval: 20 * time.Millisecond}, tenant.Options{ReconnectGrace: time.Millisecond})
	s.dial("&v=1", "silent") // does not read, so it answers no ping
	s.waitFor("the silent page to be gone", func() bool { return len(s.Pages()) == 0 })
}

func TestPageLimit(t *testing.T) {
	s := newSide(t, Options{}, tenant.Options{MaxPages: 1})
	s.dial("&v=1", "one")
	ws, _, err := websocket.Dial(t.Context(), s.url+"/ws?tenant="+s.ID(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ws.CloseNow() }()
	_, _, err = ws.Read(t.Context())
	if websocket.CloseStatus(err) != websocket.StatusTryAgainLater || !strings.Contains(err.Error(), "--max-pages") {
		t.Errorf("second page: %v", err)
	}
}

// Whoever names no tenant can't hold more than some sockets, and hinders nobody.
func TestStrangersAreBounded(t *testing.T) {
	s := newSide(t, Options{}, tenant.Options{})
	turnedAway := 0
	for range maxRefusals + 20 {
		ws, res, err := websocket.Dial(t.Context(), s.url+"/ws?tenant=6c2d0b5e-1111-4222-8333-444455556666", nil)
		if err == nil {
			defer func() { _ = ws.CloseNow() }() // it does not answer the close handshake
			continue
		}
		if res == nil || res.StatusCode != http.StatusServiceUnavailable {
			t.Fatalf("dial: %v", err)
		}
		turnedAway++
	}
	if turnedAway == 0 {
		t.Error("nobody was turned away")
	}
	go answerAll(s.dial("&v=1", "good"))
	if err := s.call("good__x", `{}`); err != nil {
		t.Error(err)
	}
}

// An answer too many is dropped and counted, and does no harm.
func TestSecondAnswerIsCounted(t *testing.T) {
	s := newSide(t, Options{}, tenant.Options{})
	ws := s.dial("&v=1", "twice")
	done := make(chan error, 1)
	go func() { done <- s.call("twice__x", `{}`) }()
	for {
		_, data, err := ws.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var f struct{ Type, ID string }
		if json.Unmarshal(data, &f) != nil || f.Type != "call" {
			continue
		}
		for range 2 {
			if err := ws.Write(t.Context(), websocket.MessageText, fmt.Appendf(nil, `{"type":"call_result","id":%q,"result":{}}`, f.ID)); err != nil {
				t.Fatal(err)
			}
		}
		break
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	s.waitFor("the second answer to be counted", func() bool { return s.Refused() == 1 })
}

func TestRefusedToolsAreNamed(t *testing.T) {
	s := newSide(t, Options{}, tenant.Options{})
	ws := s.dial("&v=1", "one")
	if err := ws.Write(t.Context(), websocket.MessageText, []byte(`{"type":"register_tools","tools":[{"name":"x","description":"d"},{"name":"bad","params":5},{"description":"no name"}],"problems":[{"name":"nofn","index":3,"reason":"fn is missing"}]}`)); err != nil {
		t.Fatal(err)
	}
	for {
		_, data, err := ws.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var m registeredMsg
		if json.Unmarshal(data, &m) != nil || m.Type != "registered" || len(m.Problems) == 0 {
			continue
		}
		if len(m.Problems) != 3 || len(m.Tools) != 1 || m.Tools[0].Published != "one__x" {
			t.Errorf("registered: %s", data)
		}
		return
	}
}

// named serves pages that join by name; what it logs is counted.
func named(t *testing.T, allow func(string, bool) bool) (url string, logged *lineCounter) {
	t.Helper()
	logged = &lineCounter{}
	_, url = start(t, tenant.NewRegistry(tenant.Options{Allow: allow}), Options{Logger: slog.New(slog.NewTextHandler(logged, nil))})
	return url, logged
}

type lineCounter struct{ lines atomic.Int64 }

func (c *lineCounter) Write(b []byte) (int, error) {
	c.lines.Add(int64(bytes.Count(b, []byte("\n"))))
	return len(b), nil
}

// The first message is the welcome, also when the approval comes at that moment.
func TestWelcomeComesFirst(t *testing.T) {
	var looks atomic.Int32
	url, _ := named(t, func(string, bool) bool { return looks.Add(1) > 1 })
	ws, _, err := websocket.Dial(t.Context(), url+"/ws?v=1&tenant=x", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ws.CloseNow() }()
	if _, msg, err := ws.Read(t.Context()); !bytes.Contains(msg, []byte(`"welcome"`)) || !bytes.Contains(msg, []byte(`"ready"`)) {
		t.Errorf("first message: %s, %v", msg, err)
	}
}

func TestPageCantFloodTheLog(t *testing.T) {
	url, logged := named(t, func(string, bool) bool { return false })
	ws, _, err := websocket.Dial(t.Context(), url+"/ws?v=1&tenant=x", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ws.CloseNow() }()
	bad := `{"type":"register_tools","tools":[` + strings.Repeat(`{"name":1},`, 100) + `{"name":2}]}`
	for _, frame := range append(slices.Repeat([]string{`{"type":"nope"}`}, 100), bad, `{"type":"leave_channel"}`) {
		if err := ws.Write(t.Context(), websocket.MessageText, []byte(frame)); err != nil {
			t.Fatal(err)
		}
	}
	for err == nil {
		_, _, err = ws.Read(t.Context())
	}
	if n := logged.lines.Load(); n > maxLogged+10 {
		t.Errorf("one page wrote %d lines into the log", n)
	}
}
