package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"jsbridge/internal/rig"
)

// The server's limits for slow peers, and what a busy machine may add to them.
const (
	headerLimit = 10 * time.Second // until a request's header is there
	bodyLimit   = 30 * time.Second // and its body
	writeLimit  = 10 * time.Second // one write, to whoever it is
	late        = 10 * time.Second
)

var slowPeers = []scenario{{
	name:    "slow/page does not read",
	promise: "a page that reads nothing is disconnected once a write takes 10 s; calls to it fail, saying whether they may have run; calls of another page of the same client go on",
	run:     runSlowReader,
}, {
	name:    "slow/page writes a byte at a time",
	promise: "a page that takes for ever to send one message answers no ping meanwhile, and is disconnected after two that it missed (at most 45 s)",
	run:     runSlowWriter,
}, {
	name:    "slow/MCP body a byte at a time",
	promise: "a request whose body is not there after 30 s is ended",
	run: func(ctx context.Context, a *arena) (string, error) {
		return runDrip(ctx, a, bodyLimit, func(w *workspace) (first, drip string) {
			return mcpHead(w, http.MethodPost, "application/json, text/event-stream", 1000), strings.Repeat(" ", 1000)
		})
	},
}, {
	name:    "slow/API body a byte at a time",
	promise: "the same for the dashboard's API",
	run: func(ctx context.Context, a *arena) (string, error) {
		token, err := apiToken(ctx, a)
		if err != nil {
			return "", err
		}
		return runDrip(ctx, a, bodyLimit, func(*workspace) (first, drip string) {
			return fmt.Sprintf("POST /api/origins HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nX-Jsbridge-Token: %s\r\nContent-Length: 1000\r\n\r\n", token), strings.Repeat(" ", 1000)
		})
	},
}, {
	name:    "slow/header a byte at a time",
	promise: "a request whose header is not there after 10 s is ended",
	run: func(ctx context.Context, a *arena) (string, error) {
		return runDrip(ctx, a, headerLimit, func(*workspace) (first, drip string) {
			return "GET /mcp HTTP/1.1\r\nHost: localhost\r\n", "X-Slow: " + strings.Repeat("x", 1000)
		})
	},
}, {
	name:    "slow/MCP answer is not read",
	promise: "a client that does not read its answer of 8 MB, as a stream or as plain JSON, is cut once a write takes 10 s; other calls of the same session go on",
	run:     runUnreadAnswer,
}, {
	name:    "slow/MCP stream is not read",
	promise: "a standalone stream that is not read is cut once a write takes 10 s; the session lives on, and opens another one; other sessions are told of the same changes without delay",
	run:     runUnreadStream,
}, {
	name:    "slow/dashboard stream is not read",
	promise: "a dashboard that does not read is cut once a write takes 10 s, or when it lags too far behind; calls and another dashboard go on",
	run:     runUnreadDashboard,
}}

// A slow connection takes and gives what it is told to, and no more.
type slow struct {
	conn *net.TCPConn
	in   *bufio.Reader
	pid  int // of the server
}

// slowTo connects, with buffers so small that the server notices soon.
func slowTo(ctx context.Context, s *rig.Server) (*slow, error) {
	dialer := net.Dialer{}
	conn, err := dialer.DialContext(ctx, "tcp", "127.0.0.1:"+s.Port())
	if err != nil {
		return nil, err
	}
	tcp := conn.(*net.TCPConn)
	return &slow{tcp, bufio.NewReaderSize(tcp, 16), s.Pid}, tcp.SetReadBuffer(4 << 10)
}

func (s *slow) write(text string) error {
	_, err := io.WriteString(s.conn, text)
	return err
}

// head reads a response's header.
func (s *slow) head(want int) error {
	_ = s.conn.SetReadDeadline(time.Now().Add(rig.Patience))
	var head []string
	for {
		line, err := s.in.ReadString('\n')
		if err != nil {
			return fmt.Errorf("reading a response: %w", err)
		}
		if line == "\r\n" {
			break
		}
		head = append(head, line)
	}
	if !strings.HasPrefix(head[0], fmt.Sprintf("HTTP/1.1 %d", want)) {
		return fmt.Errorf("the response is %q, want %d", head[0], want)
	}
	return nil
}

// open tells whether the server still has its end of the connection. What the peer
// sees says nothing: it does not read.
func (s *slow) open() (bool, error) {
	table, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/tcp", s.pid))
	if err != nil {
		return false, err
	}
	_, near, _ := net.SplitHostPort(s.conn.LocalAddr().String())
	_, far, _ := net.SplitHostPort(s.conn.RemoteAddr().String())
	for line := range strings.Lines(string(table)) {
		f := strings.Fields(line) // sl, local, remote, state, ...
		if len(f) > 3 && portOf(f[1]) == far && portOf(f[2]) == near {
			return f[3] == "01" || f[3] == "08", nil // ESTABLISHED, CLOSE_WAIT
		}
	}
	return false, nil
}

// portOf is the port of an address as /proc/net/tcp has it.
func portOf(address string) string {
	_, port, _ := strings.Cut(address, ":")
	var n uint16
	_, _ = fmt.Sscanf(port, "%X", &n)
	return fmt.Sprint(n)
}

// held waits until the server has let go of the connection, and gives how long
// that took. Meanwhile it does what it is given every 20 ms.
func (s *slow) held(ctx context.Context, limit time.Duration, meanwhile func() error) (time.Duration, error) {
	begun := time.Now()
	err := await(ctx, limit+late, "the server to let go of a slow connection", func() (bool, error) {
		if err := meanwhile(); err != nil {
			return false, err
		}
		open, err := s.open()
		return !open, err
	})
	return time.Since(begun), err
}

// runDrip sends the second part of a request a byte at a time.
func runDrip(ctx context.Context, a *arena, limit time.Duration, request func(*workspace) (first, drip string)) (string, error) {
	w, err := newWorkspace(ctx, a)
	if err != nil {
		return "", err
	}
	defer w.leave()
	s, err := slowTo(ctx, a.server)
	if err != nil {
		return "", err
	}
	defer s.conn.Close()
	first, drip := request(w)
	if err := s.write(first); err != nil {
		return "", err
	}
	sent := 0
	took, err := s.held(ctx, limit, func() error {
		if sent%4 == 0 && sent/4 < len(drip) {
			_ = s.write(drip[sent/4 : sent/4+1]) // what the server has let go is found out below
		}
		sent++
		return nil
	})
	if err != nil {
		return "", err
	}
	if took < limit/2 {
		return "", fmt.Errorf("it was cut after %s already, which is no limit that was to be tried", took)
	}
	return fmt.Sprintf("cut after %s and %d bytes", short(took), sent/4), nil
}

// mcpHead is a request's header, to the session of the workspace's client.
func mcpHead(w *workspace, method, accept string, length int) string {
	return fmt.Sprintf("%s /mcp/%s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: %s\r\nMcp-Session-Id: %s\r\nMcp-Protocol-Version: %s\r\nContent-Length: %d\r\n\r\n",
		method, workspaceKey, accept, w.client.ID(), withSessions, length)
}

func runSlowReader(ctx context.Context, a *arena) (string, error) {
	w, err := newWorkspace(ctx, a)
	if err != nil {
		return "", err
	}
	defer w.leave()
	other, err := w.join(ctx, "other", "echo")
	if err != nil {
		return "", err
	}
	defer other.leave()
	s, err := slowPage(ctx, a, w, "hold")
	if err != nil {
		return "", err
	}
	defer s.conn.Close()
	err = await(ctx, rig.Patience, "the slow page's tools", func() (bool, error) { return w.lists(ctx, "slow") })
	if err != nil {
		return "", err
	}
	var calls []<-chan answered
	for range 8 { // together more than what there is of buffers
		calls = append(calls, w.client.begin(ctx, "slow__hold", map[string]any{"text": strings.Repeat("x", 1<<20)}))
	}
	var worst time.Duration
	took, err := s.held(ctx, writeLimit, func() error {
		begun := time.Now()
		err := w.client.echo(ctx, other.prefix, "go on")
		worst = max(worst, time.Since(begun))
		return err
	})
	if err != nil {
		return "", err
	}
	said := make(map[string]int)
	for _, call := range calls {
		end, err := ends(ctx, call)
		if err != nil {
			return "", err
		}
		if end.err != nil || !end.failed || !strings.Contains(end.text, "run") {
			return "", fmt.Errorf("a call to the slow page ended with %.200q, %v", end.text, end.err)
		}
		if strings.Contains(end.text, "did not run") {
			said["did not run"]++
		} else {
			said["may have run"]++
		}
	}
	err = await(ctx, rig.Patience, "the page to leave the list", func() (bool, error) {
		here, err := w.lists(ctx, "slow")
		return !here, err
	})
	return fmt.Sprintf("disconnected after %s; its calls failed (%s); the other page's took at most %s", short(took), tally(said), short(worst)), err
}

// slowPage is a page named Slow that was let in, of which nothing more is read.
func slowPage(ctx context.Context, a *arena, w *workspace, tools ...string) (*slow, error) {
	s, err := slowTo(ctx, a.server)
	if err != nil {
		return nil, err
	}
	o := w.options("slow", tools...)
	o.label = "Slow"
	err = s.write(fmt.Sprintf("GET /ws?v=1&tenant=%s&instance=%s HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n", o.connect, o.instance))
	if err == nil {
		err = s.head(http.StatusSwitchingProtocols)
	}
	message := declaration(o)
	if err == nil {
		err = s.write(string(frameHead(len(message))) + message)
	}
	if err != nil {
		return nil, errors.Join(err, s.conn.Close())
	}
	return s, nil
}

// frameHead begins a text message of a client (RFC 6455 section 5.2), masked with
// zeros, which change nothing.
func frameHead(length int) []byte {
	head := []byte{0x81, 0x80 | 127}
	head = binary.BigEndian.AppendUint64(head, uint64(length))
	if length < 1<<16 {
		head = binary.BigEndian.AppendUint16([]byte{0x81, 0x80 | 126}, uint16(length))
	}
	if length < 126 {
		head = []byte{0x81, 0x80 | byte(length)}
	}
	return append(head, 0, 0, 0, 0)
}

func runSlowWriter(ctx context.Context, a *arena) (string, error) {
	w, err := newWorkspace(ctx, a)
	if err != nil {
		return "", err
	}
	defer w.leave()
	s, err := slowPage(ctx, a, w, "hold")
	if err != nil {
		return "", err
	}
	defer s.conn.Close()
	if err := s.write(string(frameHead(1 << 20))); err != nil {
		return "", err
	}
	sent := 0
	took, err := s.held(ctx, pingsMissed, func() error {
		_ = s.write("x") // a failure shows in that the server lets go
		sent++
		return nil
	})
	if err != nil {
		return "", err
	}
	err = await(ctx, rig.Patience, "the page to leave the list", func() (bool, error) {
		here, err := w.lists(ctx, "slow")
		return !here, err
	})
	return fmt.Sprintf("disconnected after %s and %d bytes", short(took), sent), err
}

// apiToken is the token that the dashboard's page has.
func apiToken(ctx context.Context, a *arena) (string, error) {
	page, err := a.ask(ctx, "/")
	if err != nil {
		return "", err
	}
	_, rest, _ := strings.Cut(string(page), `jsbridge-token" content="`)
	token, _, found := strings.Cut(rest, `"`)
	if !found {
		return "", errors.New("the dashboard's page has no token")
	}
	return token, nil
}
