package bridge

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jsbridge/web"
)

// edge is a running server, asked as nothing but net/http would.
type edge struct {
	t *testing.T
	*Server
	addr string
	http http.Transport
}

func newEdge(t *testing.T, opts Options) *edge {
	t.Helper()
	e := newStoppedEdge(t, opts)
	e.Start()
	return e
}

// noShortcut has all tests here run without the shortcut, see the Makefile.
var noShortcut = os.Getenv("JSBRIDGE_NO_SHORTCUT") != ""

// newStoppedEdge is one that listens but does not serve yet.
func newStoppedEdge(t *testing.T, opts Options) *edge {
	t.Helper()
	opts.Files, opts.Logger = web.Files(), slog.New(slog.NewTextHandler(io.Discard, nil))
	opts.State = filepath.Join(t.TempDir(), "state.json")
	opts.Agent.NoShortcut = noShortcut
	s, err := New(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	e := &edge{t: t, Server: s, addr: fmt.Sprintf("127.0.0.1:%d", s.Port())}
	t.Cleanup(func() {
		e.http.CloseIdleConnections()
		if err := s.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("stopping: %v", err)
		}
	})
	return e
}

// message is a JSON-RPC message.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	} `json:"error"`
}

type reply struct {
	*http.Response
	text     string
	messages []message
}

// code is the JSON-RPC error's code; 0 when there is none.
func (r *reply) code() int {
	for _, m := range r.messages {
		if m.Error != nil {
			return m.Error.Code
		}
	}
	return 0
}

func (r *reply) String() string {
	return fmt.Sprintf("%d %s %q", r.StatusCode, r.Header.Get("Content-Type"), r.text)
}

// field is a text of the first result.
func (r *reply) field(name string) string {
	if len(r.messages) == 0 {
		return ""
	}
	var fields map[string]any
	_ = json.Unmarshal(r.messages[0].Result, &fields)
	s, _ := fields[name].(string)
	return s
}

// headers are what clients send; pairs of further ones replace them, "" takes
// one away.
func headers(pairs ...string) http.Header {
	h := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			h.Del(pairs[i])
			continue
		}
		h.Set(pairs[i], pairs[i+1])
	}
	return h
}

func (e *edge) do(method, path, body string, h http.Header) *reply {
	e.t.Helper()
	req, err := http.NewRequestWithContext(within(e.t), method, "http://"+e.addr+path, strings.NewReader(body))
	if err != nil {
		e.t.Fatal(err)
	}
	req.Header = h
	res, err := e.http.RoundTrip(req)
	if err != nil {
		e.t.Fatalf("%s %s %s: %v", method, path, body, err)
	}
	return readReply(e.t, res)
}

func (e *edge) post(body string, pairs ...string) *reply {
	e.t.Helper()
	return e.do(http.MethodPost, "/mcp", body, headers(pairs...))
}

// readReply reads an answer whole, as JSON or as an event stream.
func readReply(t *testing.T, res *http.Response) *reply {
	t.Helper()
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	r := &reply{Response: res, text: string(b)}
	if len(b) == 0 { // an answer to HEAD, for one
		return r
	}
	switch kind, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";"); kind {
	case "application/json":
		r.add(t, b)
	case "text/event-stream":
		for line := range bytes.Lines(b) {
			if data, ok := bytes.CutPrefix(line, []byte("data:")); ok && len(bytes.TrimSpace(data)) > 0 {
				r.add(t, data)
			}
		}
	}
	return r
}

func (r *reply) add(t *testing.T, b []byte) {
	t.Helper()
	var one message
	if bytes.HasPrefix(bytes.TrimSpace(b), []byte("[")) {
		var many []message
		if err := json.Unmarshal(b, &many); err != nil {
			t.Errorf("%s: %v", b, err)
		}
		r.messages = append(r.messages, many...)
	} else if err := json.Unmarshal(b, &one); err != nil {
		t.Errorf("%q: %v", b, err)
	} else {
		r.messages = append(r.messages, one)
	}
}

func initializeFor(version string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + version + `","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`
}

const (
	latestSessions = "2025-11-25" // the last version with sessions
	toolsList      = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
	ping           = `{"jsonrpc":"2.0","id":2,"method":"ping"}`
	getSnippet     = `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"get_embed_snippet"}}`
)

// session opens one and gives its id.
func (e *edge) session(version string) string {
	e.t.Helper()
	r := e.post(initializeFor(version))
	id := r.Header.Get("Mcp-Session-Id")
	if r.StatusCode != 200 || id == "" {
		e.t.Fatalf("initialize %s: %v", version, r)
	}
	if r := e.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, "Mcp-Session-Id", id); r.StatusCode != 202 || r.text != "" {
		e.t.Fatalf("initialized: %v", r)
	}
	return id
}

// raw sends text over a connection of its own.
func (e *edge) raw(text string) (net.Conn, *bufio.Reader) {
	e.t.Helper()
	var d net.Dialer
	c, err := d.DialContext(e.t.Context(), "tcp", e.addr)
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() { c.Close() })
	e.write(c, text)
	return c, bufio.NewReader(c)
}

func (e *edge) write(c net.Conn, text string) {
	e.t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		e.t.Fatal(err)
	}
}

// request is a POST as it is on the wire.
func (e *edge) request(proto, body string, extra ...string) string {
	lines := append([]string{"POST /mcp " + proto, "Host: " + e.addr, "Content-Type: application/json", "Accept: */*", fmt.Sprintf("Content-Length: %d", len(body))}, extra...)
	return strings.Join(lines, "\r\n") + "\r\n\r\n" + body
}
