package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"jsbridge/tenant"
)

// posted is what came of a POST.
type posted struct {
	status   int
	kind     string // of the content
	messages []any  // decoded JSON-RPC
	text     string // what is none
}

// send posts a body in the client's session; header is pairs of name and value.
func (s *side) send(ctx context.Context, c *cl, body string, header ...string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set(sessionHeader, c.ID())
	for i := 0; i < len(header); i += 2 {
		req.Header.Del(header[i])
		if header[i+1] != "" {
			req.Header.Set(header[i], header[i+1])
		}
	}
	return http.DefaultClient.Do(req)
}

func (s *side) post(c *cl, body string, header ...string) posted {
	s.t.Helper()
	res, err := s.send(s.t.Context(), c, body, header...)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	p := posted{status: res.StatusCode, kind: strings.TrimSuffix(res.Header.Get("Content-Type"), "; charset=utf-8")}
	parts := [][]byte{raw}
	if p.kind == "text/event-stream" {
		parts = nil
		for line := range bytes.Lines(raw) {
			if data, ok := bytes.CutPrefix(line, []byte("data:")); ok && len(bytes.TrimSpace(data)) > 0 {
				parts = append(parts, data)
			}
		}
	}
	for _, part := range parts {
		var m any
		if len(part) > 0 && json.Unmarshal(part, &m) != nil {
			p.text += string(part)
		} else if m != nil {
			p.messages = append(p.messages, m)
		}
	}
	return p
}

// shapes are tools of a page, by what their function gives.
var shapes = map[string]string{
	"nothing": ``, "text": `"héllo <b>&amp;\u2028\n\"\\"`, "number": `7.50`, "null": `null`, "list": `[1,"a",null]`,
	"object": `{"a":{"b":[1,2]},"c":"<x>"}`, "escapes": `{"k\u00e9y":"\ud83d\ude00\u0000"}`,
	"picture": `"data:image/png;base64,iVBORw0KGgo="`,
	"mcp":     `{"content":[{"type":"text","text":"a"},{"type":"text","text":"b","annotations":{"priority":0.5}}],"_meta":{"x":1}}`,
	"failed":  `{"content":[{"type":"text","text":"no"}],"isError":true}`,
	"empty":   `{"content":[]}`, "data": `{"structuredContent":{"n":1}}`,
	"link":  `{"content":[{"type":"resource_link","uri":"cart","name":"c"}]}`,
	"wrong": `{"content":[{"type":"image","data":5}]}`,
	"long":  `"` + strings.Repeat("x", 3000) + `"`,
}

// shapedTools declares them, and others.
func shapedTools() string {
	var b strings.Builder
	b.WriteString(`[{"name":"thrown","description":""},{"name":"strict","description":"","inputSchema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}}` +
		`,{"name":"typed","description":"","outputSchema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}}`)
	for name := range shapes {
		fmt.Fprintf(&b, `,{"name":%q,"description":""}`, name)
	}
	return b.String() + `]`
}

func shaped(l *tenant.Link, f tenant.CallFrame) {
	switch f.Tool {
	case "thrown":
		_ = l.Answer(f.ID, tenant.Answer{Err: &tenant.PageError{Message: "thrown\x07 <b>"}})
	case "strict":
		_ = l.Answer(f.ID, tenant.Answer{Result: f.Args})
	case "typed":
		_ = l.Answer(f.ID, tenant.Answer{Result: json.RawMessage(`{"n":"no"}`)})
	default:
		_ = l.Answer(f.ID, tenant.Answer{Result: json.RawMessage(shapes[f.Tool])})
	}
}

// Whatever a client sends, it is answered with the same messages and status by the
// shortcut as by the SDK.
func TestShortcutAnswersLikeTheSDK(t *testing.T) {
	var sides [2]*side
	var clients [2]*cl
	for i := range sides {
		sides[i] = newSide(t, Options{NoShortcut: i == 1, MaxResult: 2000, MaxBody: 1 << 20}, tenant.Options{})
		clients[i] = sides[i].connect()
		sides[i].join(sides[i].tenantOf(clients[i]), shapedTools(), shaped)
	}
	short := map[string]bool{} // by name
	type request struct {
		name, body string
		header     []string
	}
	var requests []request
	add := func(quick bool, name, body string, header ...string) {
		requests = append(requests, request{name, body, header})
		short[name] = quick
	}
	call := func(params string) string {
		return `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":` + params + `}`
	}
	for name := range shapes {
		add(true, name, call(`{"name":"p__`+name+`","arguments":{}}`))
	}
	add(true, "thrown", call(`{"name":"p__thrown"}`))
	add(true, "typed", call(`{"name":"p__typed"}`))
	add(true, "mended", call(`{"name":"p__strict","arguments":{"n":"5"}}`))
	add(false, "bad arguments", call(`{"name":"p__strict","arguments":{"n":"x"}}`))
	add(false, "arguments missing", call(`{"name":"p__strict"}`))
	add(false, "no object", call(`{"name":"p__strict","arguments":[5]}`))
	add(true, "null arguments", call(`{"name":"p__text","arguments":null}`))
	add(true, "text id", `{"jsonrpc":"2.0","id":"a<b","method":"tools/call","params":{"name":"p__text"}}`)
	add(true, "negative id", `{"jsonrpc":"2.0","id":-3,"method":"tools/call","params":{"name":"p__text"}}`)
	add(true, "white space", " \n"+call(`{ "name" : "p__text" , "arguments" : { } }`)+"\n")
	add(true, "token", call(`{"name":"p__text","_meta":{"progressToken":"t","x":{"y":1}}}`))
	add(true, "meta", call(`{"name":"p__text","_meta":{}}`))
	add(true, "twice the same", `{"jsonrpc":"2.0","id":1,"id":7,"method":"tools/call","params":{"name":"p__number"},"params":{"name":"p__text"}}`)
	add(false, "params in two", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"p__text"},"params":{"arguments":{}}}`)
	add(false, "other case", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"Name":"p__text"}}`)
	add(false, "wrong case of method", `{"jsonrpc":"2.0","id":7,"Method":"tools/call","params":{"name":"p__text"}}`)
	add(false, "escaped id", `{"jsonrpc":"2.0","id":"\u0061","method":"tools/call","params":{"name":"p__text"}}`)
	add(false, "fractional id", `{"jsonrpc":"2.0","id":1.5,"method":"tools/call","params":{"name":"p__text"}}`)
	add(false, "large id", `{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"tools/call","params":{"name":"p__text"}}`)
	add(false, "null id", `{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"p__text"}}`)
	add(false, "object id", `{"jsonrpc":"2.0","id":{},"method":"tools/call","params":{"name":"p__text"}}`)
	add(false, "no version", `{"id":7,"method":"tools/call","params":{"name":"p__text"}}`)
	add(false, "no params", `{"jsonrpc":"2.0","id":7,"method":"tools/call"}`)
	add(false, "params a list", call(`[]`))
	add(false, "name a number", call(`{"name":5}`))
	add(false, "meta a list", call(`{"name":"p__text","_meta":[]}`))
	add(false, "later version in meta", call(`{"name":"p__text","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}`))
	add(false, "token an object", call(`{"name":"p__text","_meta":{"progressToken":{}}}`))
	add(false, "state", call(`{"name":"p__text","requestState":"s"}`))
	add(false, "unknown tool", call(`{"name":"p__none"}`))
	add(false, "no name", call(`{"name":""}`))
	add(false, "built-in", call(`{"name":"list_channels"}`))
	add(false, "through a built-in", call(`{"name":"call_page_tool","arguments":{"tool":"p__text","arguments":{}}}`))
	add(false, "another method", `{"jsonrpc":"2.0","id":7,"method":"ping"}`)
	add(false, "unknown method", `{"jsonrpc":"2.0","id":7,"method":"tools/none"}`)
	add(false, "no JSON", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"p__text"}`)
	add(false, "more behind", call(`{"name":"p__text"}`)+`x`)
	add(false, "batch", `[`+call(`{"name":"p__text"}`)+`]`)
	add(false, "deep", call(`{"name":"p__text","arguments":{"a":`+strings.Repeat("[", 2000)+strings.Repeat("]", 2000)+`}}`))
	add(false, "empty body", ``)
	add(false, "too large", call(`{"name":"p__text","arguments":{"a":"`+strings.Repeat("x", 1<<20)+`"}}`))
	add(false, "wrong content type", call(`{"name":"p__text"}`), "Content-Type", "text/plain")
	add(true, "content type with charset", call(`{"name":"p__text"}`), "Content-Type", "application/json; charset=utf-8")
	add(true, "JSON only", call(`{"name":"p__text"}`), "Accept", "application/json")
	add(false, "stream only", call(`{"name":"p__text"}`), "Accept", "text/event-stream")
	add(false, "neither", call(`{"name":"p__text"}`), "Accept", "text/html")
	add(false, "not JSON", call(`{"name":"p__text"}`), "Accept", "application/json;q=0, text/event-stream")
	add(true, "anything", call(`{"name":"p__text"}`), "Accept", "*/*")
	add(false, "later version", call(`{"name":"p__text"}`), versionHeader, "2026-07-28")
	add(false, "unknown version", call(`{"name":"p__text"}`), versionHeader, "1999-01-01")
	add(false, "older version", call(`{"name":"p__text"}`), versionHeader, "2025-03-26")
	add(false, "event id", call(`{"name":"p__text"}`), "Last-Event-ID", "1")
	add(true, "our header", call(`{"name":"p__text"}`), callHeader, "7")
	add(false, "our header on another", call(`{"name":"p__strict"}`), callHeader, "7")

	for _, r := range requests {
		t.Run(r.name, func(t *testing.T) {
			a, b := sides[0].post(clients[0], r.body, r.header...), sides[1].post(clients[1], r.body, r.header...)
			if a.status != b.status || a.text != b.text || !reflect.DeepEqual(a.messages, b.messages) {
				t.Errorf("%s\nwith:    %d %s %v %s\nwithout: %d %s %v %s", r.body[:min(200, len(r.body))], a.status, a.kind, a.messages, a.text, b.status, b.kind, b.messages, b.text)
			}
			if b.kind == "text/event-stream" && (a.kind == "application/json") != short[r.name] && sides[0].opts.NoShortcut == false {
				t.Errorf("answered as %s", a.kind)
			}
		})
	}
}

// A page that says something before its result makes the answer a stream; its
// function runs once all the same.
func TestShortcutLeavesToTheSDKWhatSpeaks(t *testing.T) {
	s := newSide(t, Options{}, tenant.Options{})
	s.progressEvery = time.Hour // nor to tell
	c := s.connect()
	var calls atomic.Int32
	s.join(s.tenantOf(c), `[{"name":"a","description":""}]`, func(l *tenant.Link, f tenant.CallFrame) {
		calls.Add(1)
		for i := range 3 {
			_ = l.Say(f.ID, tenant.Event{Progress: &tenant.Progress{Progress: float64(i), Message: fmt.Sprint("step ", i)}})
		}
		_ = l.Answer(f.ID, tenant.Answer{Result: json.RawMessage(`"end"`)})
	})
	p := s.post(c, `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"p__a","_meta":{"progressToken":41}}}`)
	if p.kind != "text/event-stream" || len(p.messages) != 4 || calls.Load() != 1 {
		t.Fatalf("%s with %v; %d calls", p.kind, p.messages, calls.Load())
	}
	for i, m := range p.messages[:3] {
		params := m.(map[string]any)["params"].(map[string]any)
		if params["progressToken"] != 41.0 || params["message"] != fmt.Sprint("step ", i) {
			t.Errorf("progress %d: %v", i, params)
		}
	}
	if res := p.messages[3].(map[string]any); res["id"] != 7.0 || !strings.Contains(fmt.Sprint(res["result"]), "end") {
		t.Errorf("result: %v", res)
	}
	// Without a token, and with no level set, there is nobody to tell.
	if p := s.post(c, `{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"p__a"}}`); len(p.messages) != 1 || calls.Load() != 2 {
		t.Errorf("%v; %d calls", p.messages, calls.Load())
	}
}

// Neither what a page takes back nor what it declares anew keeps a call that runs from
// its client.
func TestShortcutsCallOutlivesItsTool(t *testing.T) {
	s := newSide(t, Options{}, tenant.Options{})
	c := s.connect()
	s.join(s.tenantOf(c), `[{"name":"a","description":""}]`, func(l *tenant.Link, f tenant.CallFrame) {
		s.register(l, `[]`)
		_ = l.Say(f.ID, tenant.Event{Progress: &tenant.Progress{Progress: 1}}) // the SDK's from here on
		_ = l.Answer(f.ID, tenant.Answer{Result: json.RawMessage(`"end"`)})
	})
	p := s.post(c, `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"p__a","_meta":{"progressToken":41}}}`)
	if len(p.messages) != 2 || !strings.Contains(fmt.Sprint(p.messages[1]), "end") {
		t.Errorf("%+v", p)
	}
}

// held is a page whose calls wait.
func (s *side) held(c *cl) (page *fakePage, calls chan tenant.CallFrame) {
	calls = make(chan tenant.CallFrame, 10)
	return s.page(s.tenantOf(c), `[{"name":"a","description":""}]`, func(_ *tenant.Link, f tenant.CallFrame) { calls <- f }), calls
}

func plainBody(id string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"p__a"}}`
}

func TestShortcutIsCancelledByItsClient(t *testing.T) {
	for _, id := range []string{`7`, `"abc"`, `-12`} {
		t.Run(id, func(t *testing.T) {
			s := newSide(t, Options{}, tenant.Options{})
			c := s.connect()
			page, calls := s.held(c)
			answered := make(chan posted, 1)
			go func() { answered <- s.post(c, plainBody(id)) }()
			f := <-calls
			if p := s.post(c, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id+`,"reason":"enough"}}`); p.status != http.StatusAccepted {
				t.Errorf("cancelling: %d", p.status)
			}
			if stopped := <-page.stopped; stopped != f.ID {
				t.Errorf("the page was told to stop %s, not %s", stopped, f.ID)
			}
			if p := <-answered; len(p.messages) != 1 || !strings.Contains(fmt.Sprint(p.messages), "cancelled") {
				t.Errorf("the answer: %+v", p)
			}
		})
	}
}

func TestShortcutRefusesAnIDInFlight(t *testing.T) {
	s := newSide(t, Options{}, tenant.Options{})
	c := s.connect()
	page, calls := s.held(c)
	first := make(chan posted, 1)
	go func() { first <- s.post(c, plainBody(`7`)) }()
	f := <-calls
	if p := s.post(c, plainBody(`7`)); p.status != http.StatusBadRequest || !strings.Contains(fmt.Sprint(p.messages), "duplicate in-flight request ID 7") {
		t.Errorf("the same id: %+v", p)
	}
	_ = page.link.Answer(f.ID, tenant.Answer{Result: json.RawMessage(`"one"`)})
	if p := <-first; !strings.Contains(fmt.Sprint(p.messages), "one") {
		t.Errorf("the first: %+v", p)
	}
	go func() { first <- s.post(c, plainBody(`7`)) }()
	_ = page.link.Answer((<-calls).ID, tenant.Answer{Result: json.RawMessage(`"two"`)})
	if p := <-first; !strings.Contains(fmt.Sprint(p.messages), "two") {
		t.Errorf("the same id later: %+v", p)
	}
}

// A client whose connection breaks has not cancelled its call (MCP 2025-11-25,
// transports): the page's function goes on, once.
func TestShortcutOutlivesItsConnection(t *testing.T) {
	s := newSide(t, Options{}, tenant.Options{})
	c := s.connect()
	page, calls := s.held(c)
	ctx, leave := context.WithCancel(t.Context())
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if res, err := s.send(ctx, c, plainBody(`7`), "X-Test", "1"); err == nil {
			res.Body.Close()
		}
	}()
	f := <-calls
	leave()
	<-gone
	<-(<-s.requests).Context().Done()
	select {
	case id := <-page.stopped:
		t.Fatalf("the page was told to stop %s", id)
	default:
	}
	if n := s.registry.Running(); n != 1 {
		t.Errorf("%d calls run", n)
	}
	if err := page.link.Answer(f.ID, tenant.Answer{}); err != nil {
		t.Errorf("the answer: %v", err)
	}
	waitUntil(t, "the call's end", func() bool { return s.registry.Running() == 0 })
	// Nothing is left of it, so that the id can be used again.
	waitUntil(t, "the id", func() bool {
		answered := make(chan posted, 1)
		go func() { answered <- s.post(c, plainBody(`7`)) }()
		select {
		case f := <-calls:
			_ = page.link.Answer(f.ID, tenant.Answer{Result: json.RawMessage(`"again"`)})
			return strings.Contains(fmt.Sprint((<-answered).messages), "again")
		case p := <-answered:
			return p.status == http.StatusOK
		}
	})
	if len(calls) != 0 {
		t.Errorf("%d calls too many", len(calls))
	}
}

// A question of the page goes to the client on the call's own stream.
func TestShortcutLeavesQuestionsToTheSDK(t *testing.T) {
	s := newSide(t, Options{}, tenant.Options{})
	s.progressEvery = time.Hour // it must not take a sign of life to ask
	asked := make(chan string, 1)
	c := s.connectAs("2025-11-25", "", func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		asked <- r.Params.Message
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ann"}}, nil
	})
	page, calls := s.held(c)
	answered := make(chan *mcp.CallToolResult, 1)
	go func() {
		r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "p__a"})
		if err != nil {
			t.Error(err)
		}
		answered <- r
	}()
	f := <-calls
	if err := page.link.Ask(f.ID, "q1", tenant.Elicit, json.RawMessage(`{"message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}`)); err != nil {
		t.Fatal(err)
	}
	if message := <-asked; !strings.Contains(message, "Who?") {
		t.Errorf("asked %q", message)
	}
	reply := <-page.answers
	if !strings.Contains(string(reply.Result), "Ann") {
		t.Errorf("the page was answered %s %v", reply.Result, reply.Err)
	}
	_ = page.link.Answer(f.ID, tenant.Answer{Result: reply.Result})
	if r := <-answered; r == nil || !strings.Contains(r.Content[0].(*mcp.TextContent).Text, "Ann") {
		t.Errorf("the result: %+v", r)
	}
	if len(calls) != 0 {
		t.Error("the page was called again")
	}
}

// A call that has become the SDK's knows best what became of its page.
func TestShortcutsCallKnowsThatItsPageLeft(t *testing.T) {
	s := newSide(t, Options{}, tenant.Options{})
	s.progressEvery = time.Millisecond
	c := s.connect()
	page, calls := s.held(c)
	res, err := s.send(t.Context(), c, plainBody(`7`)) // the head comes with the first comment
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if kind := res.Header.Get("Content-Type"); kind != "text/event-stream" {
		t.Errorf("answered as %s", kind)
	}
	<-calls
	page.link.Closed(tenant.Departure{})
	rest, err := io.ReadAll(res.Body)
	if err != nil || !strings.Contains(string(rest), "may have run") || len(calls) != 0 {
		t.Errorf("%s, %v; %d further calls", rest, err, len(calls))
	}
}

// A call's name is kept for long, and must not keep the whole request.
func TestPlainCallsNameIsItsOwn(t *testing.T) {
	body := []byte(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"p__a","arguments":{"a":"` + strings.Repeat("x", 1<<10) + `"}}}`)
	p, ok := parsePlain(body)
	if !ok || p.name != "p__a" {
		t.Fatalf("%+v %t", p, ok)
	}
	at, begin := uintptr(unsafe.Pointer(unsafe.StringData(p.name))), uintptr(unsafe.Pointer(&body[0]))
	if at >= begin && at < begin+uintptr(len(body)) {
		t.Error("the name is part of the body")
	}
}
