package agent

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"jsbridge/tenant"
)

// openStream initializes a session and opens its stream by hand.
func (s *side) openStream(proto string) (conn net.Conn, res *http.Response, session string) {
	s.t.Helper()
	init, err := http.Post(s.url, "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`))
	if err != nil {
		s.t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, init.Body)
	init.Body.Close()
	session = init.Header.Get(sessionHeader)
	conn, err = net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(conn, "GET / "+proto+"\r\nHost: x\r\nAccept: text/event-stream\r\n"+sessionHeader+": "+session+"\r\n\r\n"); err != nil {
		s.t.Fatal(err)
	}
	if res, err = http.ReadResponse(bufio.NewReader(conn), nil); err != nil {
		s.t.Fatal(err)
	}
	return conn, res, session
}

func streamOf(h *Handler, session string) *stream {
	h.mu.Lock()
	s := h.sessions[session]
	h.mu.Unlock()
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stream
}

func TestTakenStreamIsGoodHTTP(t *testing.T) {
	for proto, chunked := range map[string]bool{"HTTP/1.1": true, "HTTP/1.0": false} {
		s := newSide(t, Options{}, tenant.Options{})
		_, res, session := s.openStream(proto)
		if got := len(res.TransferEncoding) > 0; res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" || res.Header.Get("Date") == "" || got != chunked {
			t.Errorf("%s: answered with %s %v %v", proto, res.Status, res.TransferEncoding, res.Header)
		}
		begun := make([]byte, len(retryField+": ok\n\n"))
		if _, err := io.ReadFull(res.Body, begun); err != nil || string(begun) != retryField+": ok\n\n" {
			t.Errorf("%s: the stream began with %q, %v", proto, begun, err)
		}
		req, _ := http.NewRequest(http.MethodDelete, s.url, nil)
		req.Header.Set(sessionHeader, session)
		del, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		del.Body.Close()
		if _, err := io.ReadAll(res.Body); err != nil {
			t.Errorf("%s: the stream did not end well: %v", proto, err)
		}
	}
}

// A client that leaves is noticed at once, also one that only stops sending.
func TestTakenStreamNoticesThatTheClientLeft(t *testing.T) {
	for _, leave := range []func(net.Conn){
		func(c net.Conn) { _ = c.Close() },
		func(c net.Conn) { _ = c.(*net.TCPConn).CloseWrite() },
	} {
		s := newSide(t, Options{}, tenant.Options{})
		conn, _, session := s.openStream("HTTP/1.1")
		waitUntil(t, "the stream", func() bool { return streamOf(s.Handler, session) != nil })
		if _, err := io.WriteString(conn, "what a client has no business to send"); err != nil {
			t.Fatal(err)
		}
		leave(conn)
		waitUntil(t, "the stream's end", func() bool { return streamOf(s.Handler, session) == nil })
	}
}

// An open stream holds nothing of net/http's.
func TestTakenStreamFreesTheServer(t *testing.T) {
	s := newSide(t, Options{}, tenant.Options{})
	_, _, session := s.openStream("HTTP/1.1")
	waitUntil(t, "the stream", func() bool { return streamOf(s.Handler, session) != nil })
	waitUntil(t, "the handler's return", func() bool {
		var b strings.Builder
		_ = pprof.Lookup("goroutine").WriteTo(&b, 2)
		return !strings.Contains(b.String(), "agent.(*Handler).serveStream(")
	})
	if streamOf(s.Handler, session) == nil {
		t.Error("the stream ended with its handler")
	}
}
