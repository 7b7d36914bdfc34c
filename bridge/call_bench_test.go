package bridge

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"jsbridge/web"
)

// BenchmarkCall is a whole tools/call, from the client's request to its answer, with a
// page on a real socket. Client and page are in this process and allocate nearly
// nothing; the floor is the same two with no more than net/http and the WebSocket
// library between them, so that what is above it is jsbridge's and the SDK's.
func BenchmarkCall(b *testing.B) {
	for _, size := range []struct {
		name  string
		bytes int
	}{{"short", 16}, {"100kB", 100_000}} {
		b.Run("floor/"+size.name, func(b *testing.B) {
			c := dialBench(b, startFloor(b), "")
			b.ReportAllocs()
			for msg := benchCall("echo", size.bytes); b.Loop(); {
				c.call(msg)
			}
		})
		b.Run("jsbridge/"+size.name, func(b *testing.B) {
			c := startBench(b)
			b.ReportAllocs()
			for msg := benchCall(benchTool, size.bytes); b.Loop(); {
				c.call(msg)
			}
		})
	}
}

// BenchmarkCallOwners says whose the allocations of a call are: of which module is the
// innermost function on the stack that is not the standard library's, client and page
// left out. The rest is net/http's own. It records each allocation, so that its times
// mean nothing.
func BenchmarkCallOwners(b *testing.B) {
	defer func(rate int) { runtime.MemProfileRate = rate }(runtime.MemProfileRate)
	runtime.MemProfileRate = 1
	c := startBench(b)
	msg := benchCall(benchTool, 16)
	for range 100 { // connections, pools and maps have their sizes then
		c.call(msg)
	}
	before := allocationsByOwner()
	for b.Loop() {
		c.call(msg)
	}
	b.StopTimer()
	after := allocationsByOwner()
	for _, owner := range owners {
		b.ReportMetric(float64(after[owner]-before[owner])/float64(b.N), owner+"-allocs/op")
	}
}

var owners = []string{"jsbridge", "websocket", "go-sdk", "std"}

func allocationsByOwner() map[string]int64 {
	for range 2 { // a profile is complete as of the last but one collection
		runtime.GC()
	}
	records := make([]runtime.MemProfileRecord, 1<<14)
	n, ok := runtime.MemProfile(records, true)
	if !ok {
		panic(fmt.Sprintf("the profile has %d records", n))
	}
	counts := make(map[string]int64)
	for _, r := range records[:n] {
		counts[ownerOf(r.Stack())] += r.AllocObjects
	}
	return counts
}

// ownerOf is "" for client and page.
func ownerOf(stack []uintptr) string {
	owner := ""
	for frames := runtime.CallersFrames(stack); ; {
		f, more := frames.Next()
		first, _, path := strings.Cut(f.Function, "/")
		switch {
		case strings.HasSuffix(f.File, "_test.go") || strings.HasPrefix(f.Function, "testing."):
			return ""
		case owner != "": // the innermost is found
		case first == "jsbridge":
			owner = "jsbridge"
		case strings.HasPrefix(f.Function, "github.com/coder/websocket"):
			owner = "websocket"
		case path && strings.Contains(first, "."): // the SDK, and what it brings
			owner = "go-sdk"
		}
		if !more {
			return cmp.Or(owner, "std")
		}
	}
}

const benchTool = "bench__echo"

// benchCall is a whole request's message, with a text of so many bytes.
func benchCall(tool string, size int) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":%q,"arguments":{"text":"%s"}}}`, tool, strings.Repeat("x", size))
}

// startBench starts a server with one page and one session.
func startBench(b *testing.B) *benchClient {
	s, err := New(b.Context(), Options{Logger: slog.New(slog.DiscardHandler), Files: web.Files()})
	if err != nil {
		b.Fatal(err)
	}
	s.Start()
	b.Cleanup(func() {
		if err := s.Stop(context.Background()); err != nil {
			b.Errorf("stopping: %v", err)
		}
	})
	addr := fmt.Sprintf("127.0.0.1:%d", s.Port())
	joinBench(b, addr, "&v=1")
	c := dialBench(b, addr, "")
	answer := c.post([]byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`))
	if !strings.Contains(string(answer), `"serverInfo"`) {
		b.Fatalf("initialize: %s", answer)
	}
	c = dialBench(b, addr, c.session)
	c.post([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
	return c
}

// startFloor passes arguments to a page and its result back, as bench's floor does.
func startFloor(b *testing.B) (addr string) {
	sockets, results := make(chan *websocket.Conn, 1), make(chan []byte, 1)
	mux := http.NewServeMux()
	mux.HandleFunc("/ws", func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		ws.SetReadLimit(16 << 20)
		for {
			_, data, err := ws.Read(context.Background())
			if err != nil {
				return
			}
			if bytes.HasPrefix(data, []byte(`{"type":"register_tools"`)) {
				sockets <- ws
				continue
			}
			results <- between(data, `"result":`, `}`)
		}
	})
	var ws *websocket.Conn
	mux.HandleFunc("POST /mcp", func(w http.ResponseWriter, r *http.Request) {
		if ws == nil { // there is one caller
			ws = <-sockets
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		args := between(body, `"arguments":`, `}}`)
		if err := ws.Write(r.Context(), websocket.MessageText, around(`{"type":"call","id":"1","name":"echo","args":`, args, `}`)); err != nil {
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(around(`{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":`, <-results, `}]}}`))
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	server := &http.Server{Handler: mux}
	go func() { _ = server.Serve(l) }()
	b.Cleanup(func() { _ = server.Close() })
	joinBench(b, l.Addr().String(), "")
	return l.Addr().String()
}

// around puts texts around what comes from a peer.
func around(before string, middle []byte, after string) []byte {
	all := make([]byte, 0, len(before)+len(middle)+len(after))
	return append(append(append(all, before...), middle...), after...)
}

// between is what stands behind one text and before the next of another.
func between(data []byte, before, after string) []byte {
	_, rest, _ := bytes.Cut(data, []byte(before))
	if i := bytes.Index(rest, []byte(after)); i >= 0 {
		return rest[:i]
	}
	return rest
}

// joinBench brings in a page that gives each call's text back, and waits until it has
// been registered, where it is told.
func joinBench(b *testing.B, addr, query string) {
	ws, _, err := websocket.Dial(b.Context(), "ws://"+addr+"/ws?tenant=bench"+query, nil)
	if err != nil {
		b.Fatal(err)
	}
	ws.SetReadLimit(16 << 20)
	if err := ws.Write(b.Context(), websocket.MessageText, []byte(`{"type":"register_tools","tools":[{"name":"echo","description":"Gives the text back.","params":{"text":{"type":"string"}}}]}`)); err != nil {
		b.Fatal(err)
	}
	for registered := query == ""; !registered; {
		_, data, err := ws.Read(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		registered = bytes.HasPrefix(data, []byte(`{"type":"registered"`))
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		answerBench(ws)
	}()
	b.Cleanup(func() {
		_ = ws.CloseNow()
		<-ended
	})
}

func answerBench(ws *websocket.Conn) {
	var in, out []byte
	for {
		_, r, err := ws.Reader(context.Background())
		if err != nil {
			return
		}
		if in, err = readAll(in[:0], r); err != nil {
			return
		}
		if !bytes.HasPrefix(in, []byte(`{"type":"call"`)) {
			continue
		}
		out = append(append(out[:0], `{"type":"call_result","id":"`...), between(in, `"id":"`, `"`)...)
		out = append(append(out, `","result":"`...), between(in, `"text":"`, `"`)...)
		if ws.Write(context.Background(), websocket.MessageText, append(out, `"}`...)) != nil {
			return
		}
	}
}

// readAll is io.ReadAll into memory that is there.
func readAll(into []byte, r io.Reader) ([]byte, error) {
	for {
		if len(into) == cap(into) {
			into = append(into, 0)[:len(into)]
		}
		n, err := r.Read(into[len(into):cap(into)])
		into = into[:len(into)+n]
		if errors.Is(err, io.EOF) {
			return into, nil
		}
		if err != nil {
			return into, err
		}
	}
}

// A benchClient posts on one connection and allocates nothing once it has what it
// needs, unlike net/http's.
type benchClient struct {
	b         *testing.B
	conn      net.Conn
	in        *bufio.Reader
	head      string
	session   string // as the last answer's head named it
	out, body []byte
}

func dialBench(b *testing.B, addr, session string) *benchClient {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close() })
	c := &benchClient{b: b, conn: conn, in: bufio.NewReaderSize(conn, 64<<10)}
	c.head = "POST /mcp HTTP/1.1\r\nHost: " + addr + "\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
	if session != "" {
		c.head += "Mcp-Session-Id: " + session + "\r\nMcp-Protocol-Version: 2025-11-25\r\n"
	}
	return c
}

// call posts a call, whose text must come back.
func (c *benchClient) call(msg []byte) {
	text := between(msg, `"text":"`, `"`)
	if answer := c.post(msg); !bytes.Contains(answer, text) || !bytes.Contains(answer, []byte(`"id":7`)) || bytes.Contains(answer, []byte(`"isError":true`)) {
		c.b.Fatalf("wrong answer: %.300s", answer)
	}
}

// post gives the answer's body, which is its own until the next.
func (c *benchClient) post(msg []byte) []byte {
	c.out = append(append(c.out[:0], c.head...), "Content-Length: "...)
	c.out = append(strconv.AppendInt(c.out, int64(len(msg)), 10), "\r\n\r\n"...)
	if _, err := c.conn.Write(append(c.out, msg...)); err != nil {
		c.b.Fatal(err)
	}
	length := -1
	for {
		name, value, ok := bytes.Cut(c.line(), []byte(": "))
		switch {
		case !ok && len(name) == 0:
			c.readBody(length)
			return c.body
		case bytes.EqualFold(name, []byte("Content-Length")):
			length, _ = strconv.Atoi(string(value)) // "" is left for the body to miss
		case bytes.EqualFold(name, []byte("Mcp-Session-Id")) && string(value) != c.session:
			c.session = string(value)
		case bytes.HasPrefix(name, []byte("HTTP/1.1 ")) && name[len("HTTP/1.1 ")] != '2':
			c.b.Fatalf("answered with %s", name)
		}
	}
}

// readBody reads a body of a length, or in chunks when it is negative.
func (c *benchClient) readBody(length int) {
	c.body = c.body[:0]
	for chunked := length < 0; ; {
		if chunked {
			size, err := strconv.ParseInt(string(c.line()), 16, 32)
			if err != nil {
				c.b.Fatal(err)
			}
			length = int(size)
		}
		have := len(c.body)
		c.body = append(c.body, make([]byte, length)...)
		if _, err := io.ReadFull(c.in, c.body[have:]); err != nil {
			c.b.Fatal(err)
		}
		if chunked {
			c.line()
		}
		if !chunked || length == 0 {
			return
		}
	}
}

func (c *benchClient) line() []byte {
	line, err := c.in.ReadSlice('\n')
	if err != nil {
		c.b.Fatal(err)
	}
	return bytes.TrimRight(line, "\r\n")
}
