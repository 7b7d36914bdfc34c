package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"jsbridge/tenant"
)

// stream is an HTTP response that may stay open. It bounds each write, so that
// a client that stopped reading is dropped, and speaks up when the SDK is
// silent, since clients and proxies cut silent connections.
type stream struct {
	http.ResponseWriter
	request *http.Request
	opened  func()        // told once the first bytes were sent
	cancels chan struct{} // an entry for each request that the client was told to forget
	gone    chan struct{} // standalone streams: closed when the handler has returned
	rc      *http.ResponseController
	cancel  context.CancelFunc
	every   time.Duration
	cutOff  atomic.Bool // nothing more goes out, whatever is being written

	mu    sync.Mutex
	begun bool        // the retry field is written
	alive *time.Timer // set once the response is an event stream
	ended bool
}

// retryField asks clients to wait, in milliseconds, before they open a broken stream
// again (HTML, server-sent events).
const retryField = "retry: 1000\n\n"

// maxCancel is more than the SDK's notifications/cancelled has, in bytes.
const maxCancel = 4 << 10

const streamWriteTimeout = 10 * time.Second

var past = time.Unix(1, 0)

func newStream(w http.ResponseWriter, r *http.Request, every time.Duration) *stream {
	ctx, cancel := context.WithCancel(r.Context())
	return &stream{ResponseWriter: w, request: r.WithContext(ctx), gone: make(chan struct{}), cancels: make(chan struct{}, tenant.MaxAsks), rc: http.NewResponseController(w), cancel: cancel, every: every}
}

// Unwrap lets http.ResponseController find the connection.
func (st *stream) Unwrap() http.ResponseWriter { return st.ResponseWriter }

func (st *stream) Write(b []byte) (int, error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	events := strings.HasPrefix(st.Header().Get("Content-Type"), "text/event-stream")
	if events && !st.begun {
		st.begun = true
		if _, err := st.write([]byte(retryField)); err != nil {
			return 0, err
		}
	}
	n, err := st.write(b)
	if len(b) < maxCancel && bytes.Contains(b, []byte(`"notifications/cancelled"`)) {
		select {
		case st.cancels <- struct{}{}:
		default:
		}
	}
	if st.alive == nil && !st.ended && events {
		st.alive = time.AfterFunc(st.every, st.keepAlive)
		if st.opened != nil {
			st.opened()
		}
	} else if st.alive != nil {
		st.alive.Reset(st.every)
	}
	return n, err
}

// write needs st.mu.
func (st *stream) write(b []byte) (int, error) {
	_ = st.rc.SetWriteDeadline(time.Now().Add(streamWriteTimeout))
	if st.cutOff.Load() {
		_ = st.rc.SetWriteDeadline(past)
	}
	n, err := st.ResponseWriter.Write(b)
	if err != nil {
		st.cancel()
	}
	return n, err
}

// cut is end for a client that may not read: it does not wait for a write that is
// under way.
func (st *stream) cut() {
	st.cutOff.Store(true)
	_ = st.rc.SetWriteDeadline(past)
	st.end()
}

// Flush implements http.Flusher.
func (st *stream) Flush() {
	st.mu.Lock()
	defer st.mu.Unlock()
	_ = st.rc.Flush()
}

// keepAlive writes a comment, now and then after each silence. For the response
// of a POST the SDK has nothing to write until the call ends: the call starts
// this, once the SDK has set the headers.
func (st *stream) keepAlive() {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.ended {
		return
	}
	if _, err := st.write([]byte(": keep-alive\n\n")); err != nil {
		return
	}
	_ = st.rc.Flush()
	if st.alive == nil {
		st.alive = time.AfterFunc(st.every, st.keepAlive)
		return
	}
	st.alive.Reset(st.every)
}

// end stops the stream; nothing is written to it afterwards by keepAlive.
func (st *stream) end() {
	st.mu.Lock()
	st.ended = true
	if st.alive != nil {
		st.alive.Stop()
	}
	if !st.cutOff.Load() { // the connection may serve further requests
		_ = st.rc.SetWriteDeadline(time.Time{})
	}
	st.mu.Unlock()
	st.cancel()
}

// jsonWriter turns the SDK's event stream into the plain JSON answer that a
// client asks for by accepting nothing else. Notifications have no place in it.
type jsonWriter struct {
	http.ResponseWriter
	sent   *sentBody
	status int
	body   bytes.Buffer
}

func (j *jsonWriter) WriteHeader(status int) { j.status = status }

func (j *jsonWriter) Write(b []byte) (int, error) { return j.body.Write(b) }

// finish sends what was collected.
func (j *jsonWriter) finish() {
	body := j.body.Bytes()
	if strings.HasPrefix(j.Header().Get("Content-Type"), "text/event-stream") {
		j.Header().Set("Content-Type", "application/json")
		all := responses(body)
		if j.sent.isBatch() {
			body = slices.Concat([]byte("["), bytes.Join(all, []byte(",")), []byte("]"))
		} else {
			body = slices.Concat(all...)
		}
	}
	if j.status != 0 {
		j.ResponseWriter.WriteHeader(j.status)
	}
	rc := http.NewResponseController(j.ResponseWriter)
	_ = rc.SetWriteDeadline(time.Now().Add(streamWriteTimeout))
	if _, err := j.ResponseWriter.Write(body); err == nil && rc.Flush() == nil {
		_ = rc.SetWriteDeadline(time.Time{}) // the connection may serve further requests
	}
}

// responses picks the JSON-RPC responses out of an event stream.
func responses(events []byte) (found [][]byte) {
	for line := range bytes.Lines(events) {
		data, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data:"))
		if !ok {
			continue
		}
		var msg struct {
			Method *string          `json:"method"`
			ID     *json.RawMessage `json:"id"`
		}
		if json.Unmarshal(data, &msg) == nil && msg.Method == nil && msg.ID != nil {
			found = append(found, bytes.TrimSpace(data))
		}
	}
	return found
}
