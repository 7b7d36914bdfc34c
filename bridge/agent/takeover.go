package agent

import (
	"fmt"
	"net"
	"net/http"
	"time"
)

// taken is the response of a standalone stream on a connection that was taken over from
// net/http. That would keep buffers of 10 KB, the whole request and a stack of 16 KB for
// as long as the stream is open, and there may be thousands. It speaks HTTP/1.1, with
// nothing between it and the connection: the SDK writes each event at once.
type taken struct {
	conn   net.Conn
	header http.Header
	begun  bool
	broken bool // a write failed, perhaps in the midst of a chunk
	plain  bool // HTTP/1.0: no chunks
}

// takeOver ends net/http's part in a request, unless that can't be; then the request is
// net/http's still. What the response's header has so far goes out with it. A stream that
// was taken over counts in h.streams.
func (h *Handler) takeOver(w http.ResponseWriter, r *http.Request) (t *taken, ok bool) {
	if r.ProtoMajor != 1 { // its streams share a connection
		return nil, false
	}
	h.mu.Lock()
	closed := h.closed
	if !closed {
		h.streams.Add(1)
	}
	h.mu.Unlock()
	if closed {
		return nil, false
	}
	header := w.Header().Clone()
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		h.streams.Done()
		return nil, false
	}
	return &taken{conn: conn, header: header, plain: !r.ProtoAtLeast(1, 1)}, true
}

// watch reads until the client has gone. A client has nothing to send: what it sends all
// the same is dropped.
func (t *taken) watch() {
	var b [64]byte
	for {
		if _, err := t.conn.Read(b[:]); err != nil {
			return
		}
	}
}

// Header implements http.ResponseWriter.
func (t *taken) Header() http.Header { return t.header }

// WriteHeader implements http.ResponseWriter.
func (t *taken) WriteHeader(status int) {
	if t.begun {
		return
	}
	t.begun = true
	h := t.header
	t.header = http.Header{"Content-Type": h["Content-Type"]} // nobody asks for the rest, of a stream that is open for hours
	h.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	h.Set("Connection", "close") // nothing else will come on it
	h.Del("Content-Length")
	if !t.plain {
		h.Set("Transfer-Encoding", "chunked")
	}
	head := headWriter(fmt.Appendf(nil, "HTTP/1.1 %d %s\r\n", status, http.StatusText(status)))
	_ = h.Write(&head)                           // it appends
	_, _ = t.conn.Write(append(head, "\r\n"...)) // the body's first write has the error, too
}

// headWriter collects the header, so that it goes out as one packet.
type headWriter []byte

func (h *headWriter) Write(b []byte) (int, error) {
	*h = append(*h, b...)
	return len(b), nil
}

// Write implements http.ResponseWriter.
func (t *taken) Write(b []byte) (int, error) {
	t.WriteHeader(http.StatusOK)
	if t.plain || len(b) == 0 { // an empty chunk would be the last
		return t.conn.Write(b)
	}
	chunk := fmt.Appendf(make([]byte, 0, len(b)+16), "%x\r\n", len(b))
	chunk = append(append(chunk, b...), "\r\n"...)
	if _, err := t.conn.Write(chunk); err != nil {
		t.broken = true
		return 0, err
	}
	return len(b), nil
}

// FlushError is for http.ResponseController. There is nothing to flush.
func (t *taken) FlushError() error { return nil }

// SetWriteDeadline is for http.ResponseController.
func (t *taken) SetWriteDeadline(at time.Time) error { return t.conn.SetWriteDeadline(at) }

// close ends the response, and the connection with it.
func (t *taken) close() {
	if t.begun && !t.plain && !t.broken {
		_ = t.conn.SetWriteDeadline(time.Now().Add(time.Second)) // it may be full, but this is five bytes
		_, _ = t.conn.Write([]byte("0\r\n\r\n"))
	}
	_ = t.conn.Close()
}

// streamRequest is what the SDK needs to know of a request for the standalone stream,
// instead of all that came with it, and of a context that ends with its handler.
func streamRequest(r *http.Request) *http.Request {
	slim := &http.Request{Method: r.Method, URL: r.URL, Proto: r.Proto, ProtoMajor: r.ProtoMajor, ProtoMinor: r.ProtoMinor, Host: r.Host, Header: make(http.Header), Body: http.NoBody}
	for _, name := range []string{"Accept", sessionHeader, versionHeader} {
		if v := r.Header.Get(name); v != "" { // the values themselves would keep all others
			slim.Header.Set(name, v)
		}
	}
	return slim
}
