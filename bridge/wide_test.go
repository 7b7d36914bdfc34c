package bridge

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"jsbridge/web"
)

// A page on another machine may say that its origin is localhost, and a program
// there sends none: neither proves that it is one of this machine.
func TestRemotePageWaits(t *testing.T) {
	ip := otherAddress(t)
	s, err := New(t.Context(), Options{Files: web.Files(), Host: "0.0.0.0", Token: "secret", Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	defer func() { _ = s.Stop(context.WithoutCancel(t.Context())) }()
	for host, want := range map[string]string{ip: "pending", "127.0.0.1": "ready"} {
		for _, origin := range []string{"", "http://localhost:3000"} {
			opts := &websocket.DialOptions{Host: "localhost", HTTPHeader: http.Header{}}
			if origin != "" {
				opts.HTTPHeader.Set("Origin", origin)
			}
			ws, _, err := websocket.Dial(t.Context(), "ws://"+net.JoinHostPort(host, strconv.Itoa(s.Port()))+"/ws?v=1&tenant=bank", opts)
			if err != nil {
				t.Fatal(err)
			}
			_, msg, err := ws.Read(t.Context())
			if !strings.Contains(string(msg), `"state":"`+want+`"`) {
				t.Errorf("from %s with Origin %q: %s, %v; want %s", host, origin, msg, err, want)
			}
			_ = ws.CloseNow()
		}
	}
}

func TestListeningWideIsWarnedOf(t *testing.T) {
	for host, warned := range map[string]bool{"": false, "localhost": false, "127.0.0.1": false, "0.0.0.0": true} {
		log := new(loggedText)
		s, err := New(t.Context(), Options{Files: web.Files(), Host: host, Token: "s3cret", Logger: log.logger()})
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Join(log.lines(), "\n")
		if strings.Contains(text, "level=WARN msg=\"listening beyond this machine") != warned || strings.Contains(text, "s3cret") {
			t.Errorf("host %q: %s", host, text)
		}
		if err := s.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}
}

// otherAddress is one of this machine that is not loopback.
func otherAddress(t *testing.T) string {
	t.Helper()
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && !n.IP.IsLoopback() && n.IP.To4() != nil {
			return n.IP.String()
		}
	}
	t.Skip("this machine has no address but loopback")
	return ""
}
