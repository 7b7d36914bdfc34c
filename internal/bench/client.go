package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// patience bounds every wait for something that should happen at once.
const patience = 20 * time.Second

const protocolVersion = "2025-11-25"

// An endpoint is where and as whom to post.
type endpoint struct {
	host    string // localhost:port
	session string // "" before initialize, and for the floor always
	version string // of the protocol, as the server answered; "" likewise
	server  string // name and version, likewise
}

// A connection carries one request at a time and is kept alive between them. It
// is no http.Client, whose goroutines and locks would be measured as well.
type connection struct {
	endpoint
	conn net.Conn
	in   *bufio.Reader
	out  []byte // the request being written, reused
	stop func() bool
}

// dial connects; ctx's end cuts whatever the connection waits for.
func (e endpoint) dial(ctx context.Context) (*connection, error) {
	var d net.Dialer
	_, port, err := net.SplitHostPort(e.host)
	if err != nil {
		return nil, err
	}
	conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", port))
	if err != nil { // a peer may listen on the other one alone
		var err6 error
		if conn, err6 = d.DialContext(ctx, "tcp", net.JoinHostPort("::1", port)); err6 != nil {
			return nil, err
		}
	}
	c := &connection{endpoint: e, conn: conn, in: bufio.NewReader(conn)}
	c.stop = context.AfterFunc(ctx, func() { _ = conn.Close() })
	return c, nil
}

func (c *connection) close() {
	c.stop()
	_ = c.conn.Close()
}

// request sends one request and reads the answer's head.
func (c *connection) request(method, accept string, body []byte) (*http.Response, error) {
	b := append(c.out[:0], method...)
	b = append(b, " /mcp HTTP/1.1\r\nHost: "...)
	b = append(b, c.host...)
	b = append(b, "\r\nContent-Type: application/json\r\nAccept: "...)
	b = append(b, accept...)
	if c.session != "" {
		b = append(b, "\r\nMcp-Session-Id: "...)
		b = append(b, c.session...)
		b = append(b, "\r\nMcp-Protocol-Version: "...)
		b = append(b, c.version...)
	}
	b = append(b, "\r\nContent-Length: "...)
	b = strconv.AppendInt(b, int64(len(body)), 10)
	b = append(b, "\r\n\r\n"...)
	b = append(b, body...)
	c.out = b
	if _, err := c.conn.Write(b); err != nil {
		return nil, err
	}
	return http.ReadResponse(c.in, nil)
}

// post sends one JSON-RPC message and returns the one that answers it, from a
// JSON body or an event stream. For a notification it returns nothing.
func (c *connection) post(msg []byte) (answer []byte, header http.Header, err error) {
	res, err := c.request(http.MethodPost, "application/json, text/event-stream", msg)
	if err != nil {
		return nil, nil, err
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, nil, err
	}
	if res.StatusCode/100 != 2 {
		return nil, nil, fmt.Errorf("%s: %s", res.Status, bytes.TrimSpace(body))
	}
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		return body, res.Header, nil
	}
	for line := range bytes.Lines(body) {
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			answer = data // the answer ends its stream, so the last one counts
		}
	}
	return answer, res.Header, nil
}

// rpcAnswer is a JSON-RPC response to a numbered request.
type rpcAnswer[R any] struct {
	ID     int
	Result R
	Error  *struct {
		Code    int
		Message string
	}
}

// decodeAnswer reads the response to request id.
func decodeAnswer[R any](data []byte, id int, into *R) error {
	var a rpcAnswer[R]
	if err := json.Unmarshal(data, &a); err != nil {
		return fmt.Errorf("wrong answer %.200q: %w", data, err)
	}
	if a.Error != nil {
		return fmt.Errorf("error %d: %s", a.Error.Code, a.Error.Message)
	}
	if a.ID != id {
		return fmt.Errorf("wrong answer: id %d, want %d", a.ID, id)
	}
	*into = a.Result
	return nil
}

// callResult is the result of tools/call.
type callResult struct {
	Content []struct{ Type, Text string }
	IsError bool
}

// text is a result's only text.
func (r callResult) text() (string, error) {
	if r.IsError || len(r.Content) != 1 || r.Content[0].Type != "text" {
		return "", fmt.Errorf("wrong answer: want one text, have %+v", r)
	}
	return r.Content[0].Text, nil
}

// ask sends one request on a connection of its own and decodes its result.
func (e endpoint) ask(ctx context.Context, method, params string, result any) error {
	c, err := e.dial(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	_ = c.conn.SetDeadline(time.Now().Add(patience))
	answer, _, err := c.post(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params))
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	var raw json.RawMessage
	if err := decodeAnswer(answer, 1, &raw); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	return json.Unmarshal(raw, result)
}

// initialize opens an MCP session and keeps its id.
func (e *endpoint) initialize(ctx context.Context) error {
	c, err := e.dial(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	_ = c.conn.SetDeadline(time.Now().Add(patience))
	if err := c.greet(); err != nil {
		return err
	}
	*e = c.endpoint
	if _, _, err := c.post([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)); err != nil {
		return fmt.Errorf("notifications/initialized: %w", err)
	}
	return nil
}

// greet asks for a session and takes it.
func (c *connection) greet() error {
	answer, header, err := c.post([]byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + protocolVersion +
		`","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`))
	if err != nil {
		return fmt.Errorf("initialize: %w", err)
	}
	var result struct {
		ProtocolVersion string
		ServerInfo      struct{ Name, Version string }
	}
	if err := decodeAnswer(answer, 1, &result); err != nil {
		return fmt.Errorf("initialize: %w", err)
	}
	if c.session = header.Get("Mcp-Session-Id"); c.session == "" {
		return errors.New("initialize: the answer names no session")
	}
	c.version = result.ProtocolVersion
	c.server = strings.TrimSpace(result.ServerInfo.Name + " " + result.ServerInfo.Version)
	return nil
}
