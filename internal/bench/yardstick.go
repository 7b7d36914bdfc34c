package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"

	"github.com/coder/websocket"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A hop is the yardsticks' way to their page: one socket and a map of calls,
// with nothing that could be left out.
type hop struct {
	joined chan struct{} // closed when the page has registered
	ws     *websocket.Conn

	mu      sync.Mutex
	pending map[string]chan json.RawMessage // by call id
	sent    uint64
}

func newHop() *hop {
	return &hop{joined: make(chan struct{}), pending: make(map[string]chan json.RawMessage)}
}

// ServeHTTP is the page's socket. There is one page per process, once.
func (h *hop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ws, err := websocket.Accept(w, r, nil)
	if err != nil {
		return // Accept has answered
	}
	ws.SetReadLimit(frameLimit)
	defer func() { _ = ws.CloseNow() }()
	for {
		_, data, err := ws.Read(context.Background())
		if err != nil {
			return // the page's process has ended, which ends the run
		}
		var msg struct {
			Type   string          `json:"type"`
			ID     string          `json:"id"`
			Result json.RawMessage `json:"result"`
		}
		if json.Unmarshal(data, &msg) != nil {
			return
		}
		if msg.Type == "register_tools" {
			h.ws = ws
			close(h.joined)
			continue
		}
		h.mu.Lock()
		done := h.pending[msg.ID]
		delete(h.pending, msg.ID)
		h.mu.Unlock()
		if done != nil {
			done <- msg.Result
		}
	}
}

// call has the page run its tool.
func (h *hop) call(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
	select {
	case <-h.joined:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	done := make(chan json.RawMessage, 1)
	h.mu.Lock()
	h.sent++
	id := strconv.FormatUint(h.sent, 10)
	h.pending[id] = done
	h.mu.Unlock()

	msg := make([]byte, 0, len(args)+64)
	msg = append(msg, `{"type":"call","id":"`...)
	msg = append(msg, id...)
	msg = append(msg, `","name":"`+toolName+`","args":`...)
	msg = append(msg, args...)
	msg = append(msg, '}')
	// Not ctx: a caller that leaves in the middle of a write would end the socket.
	if err := h.ws.Write(context.Background(), websocket.MessageText, msg); err != nil {
		return nil, err
	}
	select {
	case result := <-done:
		return result, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// serve prints the address and serves the endpoint beside the page's socket.
func serve(out io.Writer, port string, h *hop, endpoint http.Handler) error {
	l, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		return err
	}
	addr, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return fmt.Errorf("listening on %v, which has no port", l.Addr())
	}
	if _, err := fmt.Fprintf(out, "http://localhost:%d\n", addr.Port); err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/ws", h)
	mux.Handle("/mcp", endpoint)
	return http.Serve(l, mux)
}

// serveFloor takes the same request and gives the same answer as an MCP server,
// without being one.
func serveFloor(out io.Writer, port string) error {
	h := newHop()
	return serve(out, port, h, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			ID     json.RawMessage `json:"id"`
			Params struct {
				Arguments json.RawMessage `json:"arguments"`
			} `json:"params"`
		}
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(body, &req)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		result, err := h.call(r.Context(), req.Params.Arguments)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":%s}]}}`, req.ID, result)
	}))
}

// serveBare is the least that serves the tool over MCP with the SDK. The tool
// is added without a check of arguments, which is the SDK's fastest way.
func serveBare(out io.Writer, port string) error {
	h := newHop()
	server := mcp.NewServer(&mcp.Implementation{Name: bare, Version: "1"}, nil)
	tool := &mcp.Tool{Name: toolName, Description: describe(0), InputSchema: json.RawMessage(echoSchema)}
	server.AddTool(tool, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		result, err := h.call(ctx, req.Params.Arguments)
		if err != nil {
			return nil, err
		}
		var text string
		if err := json.Unmarshal(result, &text); err != nil {
			return nil, errors.New("the page's result is no text")
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil
	})
	return serve(out, port, h, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
}
