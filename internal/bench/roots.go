package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
)

const (
	rootName   = "bench-root"   // the page's connect string
	rootPrefix = "bench_root__" // of its published names
	rootTools  = 50
)

// rootPause comes after each change. It is longer than jsbridge waits before it
// tells one, so that nothing of a change is left over when the next one begins.
const rootPause = 60 * time.Millisecond

// rootOptions is how much of a root connection to measure.
type rootOptions struct {
	sessions int
	rounds   int // 0 leaves the measurement out
}

// roots is what was measured of a root connection that comes and goes.
type roots struct {
	comes, leaves []spreading // one per round
	memory        []int64     // of the server with all sessions, before the first round and after each; bytes, 0 where it is not known
}

// A spreading is how one change got round.
type spreading struct {
	median, last time.Duration // over the sessions
	cpu          time.Duration // of the server, with rootPause; 0 where it is not known
}

// A gallery is the sessions that are told of each change.
type gallery struct {
	ctx      context.Context // ends with the first stream
	cancel   context.CancelCauseFunc
	server   *process
	sessions []endpoint
	told     chan telling
	readers  sync.WaitGroup // one per stream
}

// A telling is one notification's arrival.
type telling struct {
	session int
	at      time.Time
}

// measureRoots has a page come as a root connection and leave, again and again,
// while sessions with open streams wait to be told. It takes a server of its
// own, whose memory nothing else has been through. The page and the sessions
// are in this process. A latency is the time from the writing of the page's
// message to the reading of the session's notification.
func measureRoots(c *crew, binary string, o rootOptions) (*roots, error) {
	server, err := c.start("jsbridge with the root connection", binary, "", "--port", "0", "--state", "",
		"--max-sessions", fmt.Sprint(o.sessions), "--max-tenants", fmt.Sprint(o.sessions))
	if err != nil {
		return nil, err
	}
	base, err := server.address(c.ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(c.ctx)
	g := &gallery{ctx: ctx, cancel: cancel, server: server, told: make(chan telling, o.sessions)}
	defer g.readers.Wait()
	defer cancel(nil)
	r, err := g.measure(strings.TrimPrefix(base, "http://"), o)
	if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(err, cause) { // a stream that ended is why the rest failed
		err = fmt.Errorf("%w (%v)", cause, err)
	}
	return r, err
}

func (g *gallery) measure(host string, o rootOptions) (*roots, error) {
	for range o.sessions {
		if err := g.admit(host); err != nil {
			return nil, fmt.Errorf("session %d: %w", len(g.sessions)+1, err)
		}
	}
	// Every session reads its list before the measured rounds and after them. It
	// is far more work than being told, and takes the server's heap to the size
	// at which it collects garbage: less would look like growth later on.
	if err := new(roots).round(g, host, g.sessions); err != nil {
		return nil, fmt.Errorf("first round: %w", err)
	}
	r := &roots{memory: []int64{residentMemory(g.server.pid)}}
	for round := range o.rounds {
		if err := r.round(g, host, g.sessions[round%o.sessions:][:1]); err != nil {
			return nil, fmt.Errorf("round %d: %w", round+1, err)
		}
	}
	if err := new(roots).round(g, host, g.sessions); err != nil {
		return nil, fmt.Errorf("last round: %w", err)
	}
	return r, nil
}

// admit opens one more session and its stream. Go raises the limit of open
// files by itself, as far as the system lets it.
func (g *gallery) admit(host string) error {
	e := endpoint{host: host}
	if err := e.initialize(g.ctx); err != nil {
		return err
	}
	c, err := e.dial(g.ctx) // the end of the context closes it
	if err != nil {
		return err
	}
	_ = c.conn.SetDeadline(time.Now().Add(patience))
	res, err := c.request(http.MethodGet, "text/event-stream", nil)
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("GET: %s", res.Status)
	}
	_ = c.conn.SetDeadline(time.Time{})
	session := len(g.sessions)
	g.sessions = append(g.sessions, e)
	g.readers.Go(func() {
		g.cancel(notifications(res.Body, func(at time.Time) {
			select {
			case g.told <- telling{session, at}:
			case <-g.ctx.Done():
			}
		}))
	})
	return nil
}

// round has a page come and leave. The readers' lists must be right both times.
func (r *roots) round(g *gallery, host string, readers []endpoint) error {
	page, err := dialRoot(g.ctx, host)
	if err != nil {
		return err
	}
	defer func() { _ = page.CloseNow() }()
	for _, step := range []struct {
		change func(context.Context, *websocket.Conn) (time.Time, error)
		tools  int
		into   *[]spreading
	}{
		{comeRoot, rootTools, &r.comes},
		{leaveRoot, 0, &r.leaves},
	} {
		cpu := cpuTime(g.server.pid)
		begun, err := step.change(g.ctx, page)
		if err != nil {
			return err
		}
		s, err := g.await(begun)
		if err != nil {
			return fmt.Errorf("a change to %d tools: %w", step.tools, err)
		}
		s.cpu = cpuTime(g.server.pid) - cpu
		*step.into = append(*step.into, s)
		for _, e := range readers {
			if err := e.checkRoot(g.ctx, step.tools); err != nil {
				return err
			}
		}
	}
	r.memory = append(r.memory, residentMemory(g.server.pid))
	return nil
}

// await waits until each session was told of a change that was begun, and makes
// sure that none is told twice.
func (g *gallery) await(begun time.Time) (spreading, error) {
	heard := make([]bool, len(g.sessions))
	all := make([]time.Duration, 0, len(heard))
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for len(all) < len(heard) {
		select {
		case t := <-g.told:
			if heard[t.session] {
				return spreading{}, errors.New("a session was told twice")
			}
			heard[t.session] = true
			all = append(all, t.at.Sub(begun))
		case <-g.ctx.Done():
			return spreading{}, context.Cause(g.ctx)
		case <-timer.C:
			return spreading{}, fmt.Errorf("%d of %d sessions were not told within %s", len(heard)-len(all), len(heard), patience)
		}
	}
	if err := pause(g.ctx, rootPause); err != nil {
		return spreading{}, err
	}
	if n := len(g.told); n > 0 {
		return spreading{}, fmt.Errorf("%d sessions were told twice", n)
	}
	return spreading{median: median(all), last: slices.Max(all)}, nil
}

// checkRoot makes sure that the session's list has the page's tools, or none.
func (e endpoint) checkRoot(ctx context.Context, want int) error {
	var list struct{ Tools []listedTool }
	if err := e.ask(ctx, "tools/list", `{}`, &list); err != nil {
		return err
	}
	listed := make(map[string]bool)
	for _, tool := range list.Tools {
		listed[tool.Name] = true
	}
	got := 0
	for i := range rootTools {
		if listed[rootPrefix+rootTool(i)] {
			got++
		}
	}
	if got != want || len(list.Tools) != len(listed) || len(listed) <= want {
		return fmt.Errorf("tools/list shows %d of the page's tools in %d, want %d beside jsbridge's own", got, len(list.Tools), want)
	}
	return nil
}

func rootTool(i int) string { return fmt.Sprintf("tool_%02d", i+1) }

// dialRoot opens the socket of a tab that was never seen before.
func dialRoot(ctx context.Context, host string) (*websocket.Conn, error) {
	instance := make([]byte, 16)
	_, _ = rand.Read(instance) // never fails
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ws, _, err := websocket.Dial(ctx, "ws://"+host+"/ws?tenant="+rootName+"&v=1&instance="+hex.EncodeToString(instance), nil)
	if err != nil {
		return nil, err
	}
	var msg struct{ Type, State string }
	if err := readRoot(ctx, ws, &msg); err != nil {
		return nil, err
	}
	if msg.Type != "welcome" || msg.State != "ready" {
		return nil, fmt.Errorf("the page was welcomed with %+v", msg)
	}
	return ws, nil
}

// comeRoot registers the tools and returns when that was begun.
func comeRoot(ctx context.Context, ws *websocket.Conn) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	begun := time.Now()
	if err := ws.Write(ctx, websocket.MessageText, rootManifest); err != nil {
		return begun, err
	}
	var msg struct {
		Type            string
		Tools, Problems []json.RawMessage
	}
	if err := readRoot(ctx, ws, &msg); err != nil {
		return begun, err
	}
	if msg.Type != "registered" || len(msg.Tools) != rootTools || len(msg.Problems) > 0 {
		return begun, fmt.Errorf("the page was answered with %q, %d tools, problems %s", msg.Type, len(msg.Tools), msg.Problems)
	}
	return begun, nil
}

// leaveRoot leaves and returns when that was begun.
func leaveRoot(ctx context.Context, ws *websocket.Conn) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	begun := time.Now()
	if err := ws.Write(ctx, websocket.MessageText, []byte(`{"type":"leave_channel"}`)); err != nil {
		return begun, err
	}
	if _, _, err := ws.Read(ctx); websocket.CloseStatus(err) != websocket.StatusNormalClosure {
		return begun, fmt.Errorf("the page left and was not closed with 1000: %v", err)
	}
	return begun, nil
}

func readRoot(ctx context.Context, ws *websocket.Conn, into any) error {
	_, data, err := ws.Read(ctx)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("the page cannot read %.200q: %w", data, err)
	}
	return nil
}

// rootManifest registers the page's tools.
var rootManifest = func() []byte {
	var b strings.Builder
	io.WriteString(&b, `{"type":"register_tools","title":"bench","url":"http://localhost/bench","tools":[`)
	for i := range rootTools {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"name":%q,"description":"Gives the text back, as the %d others of this page do.","source":"host","inputSchema":%s}`,
			rootTool(i), rootTools-1, echoSchema)
	}
	b.WriteString(`]}`)
	return []byte(b.String())
}()
