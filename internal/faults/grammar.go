package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// A grammar makes garbage: valid messages with something wrong about them, so that
// it gets further than noise would. The same seed makes the same garbage.
type grammar struct{ *rand.Rand }

// seed is fixed, so that a failure can be repeated.
const seed = 20261130

func newGrammar() grammar { return grammar{rand.New(rand.NewPCG(seed, 6))} }

func pick[T any](g grammar, from ...T) T { return from[g.IntN(len(from))] }

// value is JSON of any kind.
func (g grammar) value(depth int) string {
	switch n := g.IntN(14); {
	case n < 6 || depth <= 0:
		return pick(g, `null`, `true`, `0`, `-1`, `1e308`, `1e999`, `0.1`, `9007199254740993`, `123456789012345678901234567890`, `""`, `"x"`, `"\u0000"`,
			`"\ud800"`, `"\u202eevil"`, `"__proto__"`, `"tools/call"`, `{}`, `[]`, `"`+strings.Repeat("x", g.IntN(3000))+`"`)
	case n < 8:
		return g.list(depth)
	case n < 9:
		return strings.Repeat(`[`, 500) + strings.Repeat(`]`, 500)
	case n < 10:
		return strings.Repeat(`{"a":`, 500) + `1` + strings.Repeat(`}`, 500)
	}
	return g.object(depth)
}

func (g grammar) list(depth int) string {
	items := []string{}
	for range g.IntN(5) {
		items = append(items, g.value(depth-1))
	}
	return "[" + strings.Join(items, ",") + "]"
}

// names are members that mean something to somebody.
var names = []string{"type", "id", "name", "args", "result", "error", "message", "tools", "params", "inputSchema", "description", "progress", "total", "level",
	"data", "kind", "callId", "uri", "appLabel", "prompts", "resources", "resourceTemplates", "origin", "source", "timeoutMs", "method", "jsonrpc",
	"arguments", "_meta", "progressToken", "cursor", "protocolVersion", "capabilities", "clientInfo", "__proto__", "TYPE", ""}

func (g grammar) object(depth int) string {
	members := []string{}
	for range g.IntN(6) {
		members = append(members, fmt.Sprintf(`%q:%s`, pick(g, names...), g.value(depth-1)))
	}
	return "{" + strings.Join(members, ",") + "}"
}

// spoil makes something wrong about a message that is an object.
func (g grammar) spoil(message string) string {
	switch g.IntN(10) {
	case 0: // cut off
		return message[:g.IntN(len(message))]
	case 1: // a bit that fell over
		b := []byte(message)
		b[g.IntN(len(b))] ^= 1 << g.IntN(8)
		return string(b)
	case 2: // no UTF-8
		at := g.IntN(len(message))
		return message[:at] + pick(g, "\xff", "\xc0\xaf", "\xed\xa0\x80") + message[at:]
	case 3: // said twice
		return message[:len(message)-1] + "," + message[1:]
	case 4: // no object
		return g.value(3)
	case 5: // something after it
		return message + pick(g, " ", "\n", "{}", "x", ",", "\x00")
	case 6:
		return "[" + message + "," + message + "]"
	}
	return g.replace(message)
}

// replace gives some members other values, or takes them out.
func (g grammar) replace(message string) string {
	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(message), &members) != nil || len(members) == 0 {
		return message
	}
	keys := []string{}
	for key := range members {
		keys = append(keys, key)
	}
	slices.Sort(keys) // or the garbage would not be the same
	parts := []string{}
	for _, key := range keys {
		switch g.IntN(3) {
		case 0:
			parts = append(parts, fmt.Sprintf("%q:%s", key, g.value(4)))
		case 1:
			parts = append(parts, fmt.Sprintf("%q:%s", key, members[key]))
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// frames are those that pages send.
var frames = []string{
	`{"type":"register_tools","appLabel":"App","tools":[{"name":"echo","description":"d","params":{"text":{"type":"string"}}}],"prompts":[{"name":"p"}],"resources":[{"uri":"test://x","name":"x"}]}`,
	`{"type":"register_tools","tools":[{"name":"t","description":"d","inputSchema":{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"$ref":"#/$defs/a"}}},"annotations":{"readOnlyHint":true},"timeoutMs":5}]}`,
	`{"type":"call_result","id":"1-1","result":{"content":[{"type":"text","text":"x"}]}}`,
	`{"type":"call_result","id":"1-1","error":{"message":"m","name":"n","code":"c"}}`,
	`{"type":"progress","id":"1-1","progress":1,"total":2,"message":"m"}`,
	`{"type":"log","level":"info","data":{"a":1},"logger":"l"}`,
	`{"type":"ask","id":"a1","callId":"1-1","kind":"elicit","params":{"message":"m","requestedSchema":{"type":"object","properties":{}}}}`,
	`{"type":"resource_updated","uri":"test://x"}`,
	`{"type":"rename_connection","appLabel":"Other"}`,
	`{"type":"alive","id":"1"}`,
	`{"type":"leave_channel"}`,
	`{"type":"no_such_type","id":"1"}`,
}

func (g grammar) frame() string { return g.spoil(pick(g, frames...)) }

// requests are those that clients send.
var requests = []string{
	`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"garbage","version":"1"}}}`,
	`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
	`{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"cursor":"x"}}`,
	`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"get_embed_snippet","arguments":{"form":"import"}}}`,
	`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"call_page_tool","arguments":{"name":"x","arguments":{}},"_meta":{"progressToken":1}}}`,
	`{"jsonrpc":"2.0","id":5,"method":"resources/read","params":{"uri":"test://x"}}`,
	`{"jsonrpc":"2.0","id":6,"method":"resources/subscribe","params":{"uri":"test://x"}}`,
	`{"jsonrpc":"2.0","id":7,"method":"prompts/get","params":{"name":"x","arguments":{"a":"b"}}}`,
	`{"jsonrpc":"2.0","id":8,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"x"},"argument":{"name":"a","value":"b"}}}`,
	`{"jsonrpc":"2.0","id":9,"method":"logging/setLevel","params":{"level":"debug"}}`,
	`{"jsonrpc":"2.0","id":10,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`,
	`{"jsonrpc":"2.0","id":11,"method":"ping"}`,
	`{"jsonrpc":"2.0","id":12,"result":{}}`,
	`{"jsonrpc":"2.0","id":13,"error":{"code":-1,"message":"m"}}`,
	`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
	`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}`,
}

// A request is one over HTTP, as it is on the wire.
func (g grammar) request(session string) string {
	body := pick(g, requests...)
	if g.IntN(4) > 0 {
		body = g.spoil(body)
	}
	method := "POST"
	if g.IntN(8) == 0 {
		method = pick(g, "GET", "DELETE", "PUT", "HEAD", "OPTIONS", "PATCH", "TRACE", "BREW", "post")
	}
	path := "/mcp"
	if g.IntN(4) == 0 {
		path = pick(g, "/mcp/", "/mcp/faults", "/mcp/a:b", "/mcp/%00", "/mcp/"+strings.Repeat("x", 100), "/mcp/a/b", "/mcp?x=1", "/ws", "/ws?tenant=%ff", "/api/events/x", "/api/origins", "//mcp", "/../mcp")
	}
	headers := []string{"Host: localhost"}
	header := func(name string, values ...string) {
		if g.IntN(6) > 0 {
			headers = append(headers, name+": "+values[0])
		} else if v := pick(g, values...); v != "" {
			headers = append(headers, name+": "+v)
		}
	}
	header("Content-Type", "application/json", "text/plain", "application/json; charset=utf-16", "multipart/form-data", "")
	header("Accept", "application/json, text/event-stream", "application/json", "text/event-stream", "text/html;q=2, */*;q=x", "none", "")
	header("Mcp-Session-Id", session, "", "x", strings.Repeat("x", 5000), "\x7f")
	header("Mcp-Protocol-Version", withSessions, stateless, "2024-11-05", "2025-03-26", "1999-01-01", "2999-01-01", "x", "")
	header("Origin", "http://localhost:3000", "https://evil.example", "null", "")
	if g.IntN(5) == 0 {
		header("Last-Event-ID", "1", "x_1", strings.Repeat("9", 100))
		header("Mcp-Method", "tools/list", "x", "subscriptions/listen")
		header("X-Jsbridge-Post", "1")
		if g.IntN(10) == 0 {
			header("Transfer-Encoding", "gzip")
		}
		header("Expect", "100-continue", "x")
		header("Upgrade", "websocket")
	}
	if g.IntN(30) == 0 {
		headers[0] = pick(g, "Host: evil.example", "Host: ", "Host: localhost\r\nHost: localhost", "X: y", "Host: localhost:99999", "Host: [::1]")
	}
	if g.IntN(100) == 0 {
		headers = append(headers, pick(g, "no colon", ": empty", "a b: c", "X-Long: "+strings.Repeat("x", 40<<10), "\x00: x", "X: \x01"))
	}
	// The connection ends with the answer, so that its end can be told from silence.
	return fmt.Sprintf("%s %s HTTP/1.1\r\n%s\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", method, path, strings.Join(headers, "\r\n"), len(body), body)
}
