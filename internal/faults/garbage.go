package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/coder/websocket"

	"jsbridge/internal/rig"
)

const garbage = 20_000

var garbages = []scenario{{
	name:    "garbage/frames",
	promise: fmt.Sprintf("%d frames of a grammar (seed %d) to /ws: each one is acknowledged, refused with a reason, or ends its socket with a code and a reason; it answers a valid message after each", garbage, seed),
	run:     func(ctx context.Context, a *arena) (string, error) { return runGarbageFrames(ctx, a, garbage) },
}, {
	name: "garbage/requests", args: []string{"--session-idle", "5s", "--empty-timeout", "5s"},
	promise: fmt.Sprintf("%d requests of a grammar (seed %d) to /mcp and its neighbours: each one is answered, refusals with a reason, and none as a fault of the server (5xx; but 501 for a transfer encoding that it does not know)", garbage, seed),
	run:     func(ctx context.Context, a *arena) (string, error) { return runGarbageRequests(ctx, a, garbage) },
}, {
	name: "garbage/a little", quick: true, args: []string{"--session-idle", "2s", "--empty-timeout", "2s"},
	promise: "the same with 500 of each",
	run: func(ctx context.Context, a *arena) (string, error) {
		frames, err := runGarbageFrames(ctx, a, 500)
		if err != nil {
			return "", err
		}
		requests, err := runGarbageRequests(ctx, a, 500)
		return frames + "; " + requests, err
	},
}}

// sentinel is a message that is answered always, by its own type.
const sentinel = "are_you_there"

// silent are the types that may go without an answer: what the page says of a call
// or a resource that there is not is ordinary, since both may have just ended.
var silent = map[string]bool{"alive": true, "log": true, "progress": true, "call_result": true, "resource_updated": true, "ask": true}

func runGarbageFrames(ctx context.Context, a *arena, n int) (string, error) {
	w, err := newWorkspace(ctx, a)
	if err != nil {
		return "", err
	}
	defer w.leave()
	g := newGrammar()
	counts := make(map[string]int)
	var ws *websocket.Conn
	defer func() {
		if ws != nil {
			_ = ws.CloseNow()
		}
	}()
	for i := range n {
		if ws == nil {
			if ws, err = garbageSocket(ctx, w); err != nil {
				return "", err
			}
		}
		frame := g.frame()
		outcome, open, err := sendGarbage(ctx, ws, frame)
		if err != nil {
			return "", fmt.Errorf("frame %d: %w; it was %.300q", i, err, frame)
		}
		counts[outcome]++
		if !open {
			_ = ws.CloseNow()
			ws = nil
		}
	}
	return fmt.Sprintf("%d frames: %s", n, tally(counts)), nil
}

// tally lists counts by their names.
func tally(counts map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d × %s", counts[name], name))
	}
	return strings.Join(parts, ", ")
}

func garbageSocket(ctx context.Context, w *workspace) (*websocket.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, rig.Patience)
	defer cancel()
	ws, _, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(w.base, "http")+"/ws?v=1&instance=tab-of-the-garbage&tenant="+w.connect, nil)
	if err != nil {
		return nil, err
	}
	ws.SetReadLimit(-1)
	_, data, err := ws.Read(ctx)
	if err == nil && !strings.Contains(string(data), `"welcome"`) {
		err = fmt.Errorf("a page was greeted with %.300q", data)
	}
	return ws, err
}

// sendGarbage sends a frame, and then the sentinel, and tells what became of the
// frame, and whether the socket is still open.
func sendGarbage(ctx context.Context, ws *websocket.Conn, frame string) (outcome string, open bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, rig.Patience)
	defer cancel()
	// A write may fail because the frame ended the socket, which the read tells.
	_ = ws.Write(ctx, websocket.MessageText, []byte(frame))
	_ = ws.Write(ctx, websocket.MessageText, []byte(`{"type":"`+sentinel+`"}`))
	for {
		_, data, err := ws.Read(ctx)
		var end websocket.CloseError
		switch {
		case errors.As(err, &end):
			if end.Reason == "" {
				return "", false, fmt.Errorf("the socket was closed with %d and no reason", end.Code)
			}
			return fmt.Sprintf("closed with %d", end.Code), false, nil
		case err != nil:
			return "", false, fmt.Errorf("the socket ended without a close frame: %w", err)
		}
		var told struct{ Type, Message, Of string }
		if err := json.Unmarshal(data, &told); err != nil {
			return "", false, fmt.Errorf("the server said %.300q: %w", data, err)
		}
		switch {
		case told.Type == "error" && strings.Contains(string(data), sentinel):
			if outcome == "" {
				outcome = "silence"
				var f struct{ Type string }
				_ = json.Unmarshal([]byte(frame), &f)
				if !silent[f.Type] {
					return "", false, errors.New("it was neither acknowledged nor refused")
				}
			}
			return outcome, true, nil
		case told.Type == "error":
			if told.Message == "" {
				return "", false, fmt.Errorf("it was refused without a reason: %s", data)
			}
			outcome = "refused"
		default:
			outcome = "acknowledged"
		}
	}
}

func runGarbageRequests(ctx context.Context, a *arena, n int) (string, error) {
	w, err := newWorkspace(ctx, a)
	if err != nil {
		return "", err
	}
	defer w.leave()
	target, err := connect(ctx, a.server.Base, noWorkspace, withSessions)
	if err != nil {
		return "", err
	}
	defer func() { target.leave() }()
	g := newGrammar()
	counts := make(map[string]int)
	for i := range n {
		request := g.request(target.ID())
		status, err := sendRequest(ctx, a.server, request)
		if err != nil {
			return "", fmt.Errorf("request %d: %w; it was %.2000q", i, err, request)
		}
		counts[status]++
		if strings.HasPrefix(request, http.MethodDelete) && status[0] == '2' { // the session, perhaps
			target.leave()
			if target, err = connect(ctx, a.server.Base, noWorkspace, withSessions); err != nil {
				return "", err
			}
		}
	}
	return fmt.Sprintf("%d requests: %s", n, tally(counts)), nil
}

// streaming is how long a request that opened a stream is listened to.
const streaming = 20 * time.Millisecond

// sendRequest sends a request over a connection of its own, and tells what it was
// answered with: 200, 404.
func sendRequest(ctx context.Context, s *rig.Server, request string) (string, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", "127.0.0.1:"+s.Port())
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(rig.Patience))
	// The write fails when the server has refused before it was complete.
	_, _ = io.WriteString(conn, request)
	method, _, _ := strings.Cut(request, " ")
	in := bufio.NewReader(conn)
	res, err := http.ReadResponse(in, &http.Request{Method: method})
	for err == nil && res.StatusCode == http.StatusContinue {
		res, err = http.ReadResponse(in, &http.Request{Method: method})
	}
	if err != nil {
		return "", fmt.Errorf("no answer: %w", err)
	}
	defer res.Body.Close()
	if res.Header.Get("Content-Type") == "text/event-stream" && method == http.MethodGet {
		_ = conn.SetDeadline(time.Now().Add(streaming))
	}
	body, err := io.ReadAll(res.Body)
	if errors.Is(err, os.ErrDeadlineExceeded) && method == http.MethodGet {
		return "stream", nil
	}
	switch res.StatusCode { // net/http's own refusals, after which it hangs up while the rest still comes
	case http.StatusBadRequest, http.StatusRequestHeaderFieldsTooLarge, http.StatusNotImplemented:
		if res.ContentLength < 0 && errors.Is(err, syscall.ECONNRESET) {
			return res.Status[:3] + " and a reset", nil
		}
	}
	if err != nil {
		return "", fmt.Errorf("%s, which breaks off: %w", res.Status, err)
	}
	if res.StatusCode >= 500 && res.StatusCode != http.StatusNotImplemented {
		return "", fmt.Errorf("%s: %.500s", res.Status, body)
	}
	// 417 is net/http's own, too, for an Expect that it does not know.
	if res.StatusCode >= 400 && len(body) == 0 && method != http.MethodHead && res.StatusCode != http.StatusExpectationFailed {
		return "", fmt.Errorf("%s, without a reason", res.Status)
	}
	return res.Status[:3], nil
}
