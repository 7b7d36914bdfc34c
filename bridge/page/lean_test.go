package page

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"jsbridge/tenant"
)

// rawDial sends the handshake with, in the same packet, the first frames: a script that
// does not wait for its turn.
func rawDial(t *testing.T, url, query string, frames ...string) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	b := []byte("GET /ws?" + query + " HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
	for _, f := range frames {
		b = append(b, 0x81, 0x80|126)
		b = binary.BigEndian.AppendUint16(b, uint16(len(f)))
		b = append(b, 0, 0, 0, 0) // a mask that changes nothing
		b = append(b, f...)
	}
	if _, err := conn.Write(b); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(conn)
	res, err := http.ReadResponse(in, nil)
	if err != nil || res.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("the handshake was answered with %v, %v", res, err)
	}
	return conn, in
}

func TestWhatComesWithTheHandshakeIsNotLost(t *testing.T) {
	s := newSide(t, Options{}, tenant.Options{})
	rawDial(t, s.url, "v=1&tenant="+s.ID(), `{"type":"register_tools","appLabel":"early","tools":[{"name":"x","description":"`+strings.Repeat("d", 3*socketBuffer)+`"}]}`)
	s.waitFor("early__x", func() bool { _, ok := s.Snapshot().Find("early__x"); return ok })
}

// goroutines counts those that have this function on their stack.
func goroutines(function string) int {
	var b strings.Builder
	_ = pprof.Lookup("goroutine").WriteTo(&b, 2)
	n := 0
	for stack := range strings.SplitSeq(b.String(), "\n\n") {
		if strings.Contains(stack, function+"(") {
			n++
		}
	}
	return n
}

// A page that nobody calls costs its reader, which is not the HTTP server's goroutine,
// and nothing else: there may be ten thousand.
func TestQuietPageHasOneGoroutine(t *testing.T) {
	s := newSide(t, Options{}, tenant.Options{})
	const pages = 5
	for i := range pages {
		go answerAll(s.dial("&v=1", "page"+string(rune('a'+i))))
	}
	s.waitFor("the writers' end", func() bool { return goroutines("page.(*socket).write") == 0 })
	if n := goroutines("page.(*socket).serve"); n != pages {
		t.Errorf("%d readers, want %d", n, pages)
	}
	if n := goroutines("page.(*socket).ping") + goroutines("page.(*Handler).ServeHTTP"); n != 0 {
		t.Errorf("%d goroutines besides the readers", n)
	}
}

// Pings go on while nothing else is said.
func TestPagesArePingedAgainAndAgain(t *testing.T) {
	s := newSide(t, Options{PingInterval: time.Second}, tenant.Options{})
	conn, in := rawDial(t, s.url, "v=1&tenant="+s.ID())
	for pings := 0; pings < 2; {
		var head [2]byte
		if _, err := io.ReadFull(in, head[:]); err != nil {
			t.Fatal(err)
		}
		n := int(head[1])
		if n == 126 {
			var long [2]byte
			if _, err := io.ReadFull(in, long[:]); err != nil {
				t.Fatal(err)
			}
			n = int(binary.BigEndian.Uint16(long[:]))
		}
		payload := make([]byte, n)
		if _, err := io.ReadFull(in, payload); err != nil {
			t.Fatal(err)
		}
		if head[0] == 0x89 {
			pings++
			pong := append([]byte{0x8a, 0x80 | byte(n), 0, 0, 0, 0}, payload...)
			if _, err := conn.Write(pong); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Sockets that are still open when nobody waits any longer are cut.
func TestWaitCutsWhatIsLeft(t *testing.T) {
	s := newSide(t, Options{}, tenant.Options{})
	_, in := rawDial(t, s.url, "v=1&tenant="+s.ID())
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s.Wait(ctx)
	if _, err := io.Copy(io.Discard, in); err != nil && !strings.Contains(err.Error(), "reset") {
		t.Errorf("the socket was not cut: %v", err)
	}
}
