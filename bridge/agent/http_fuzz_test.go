package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

// What a request may carry, by the bits of a fuzzed number.
var (
	fuzzMethods  = []string{"POST", "GET", "DELETE", "PUT"}
	fuzzTypes    = []string{"application/json", "application/json; charset=utf-8", "text/plain", ""}
	fuzzAccepts  = []string{"application/json, text/event-stream", "application/json", "", "text/html", "text/event-stream", "*/*", "application/json;q=0", ";"}
	fuzzVersions = []string{"2025-11-25", "2026-07-28", "2025-03-26", ""}
)

// Bits of the number beside those.
const (
	fuzzInSession   = 1 << 7 // of client A, else none
	fuzzOtherID     = 1 << 8 // a session that is not there
	fuzzTellsMethod = 1 << 9 // the headers of 2026-07-28 are those of the body
	fuzzOlder       = 1 << 4 // client A is of 2025-03-26, which has batches
)

// Everything that a client may send is answered, as MCP has it, and concerns nobody
// else. A request is fuzzed against two clients with a page each, and one of the
// stateless era, on a clock that waits for nobody.
func FuzzServeHTTP(f *testing.F) {
	for _, seed := range []struct {
		choices       uint16
		version, name string
		body          string
	}{
		{0, "", "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`},
		{fuzzInSession, "", "", `{"jsonrpc":"2.0","id":"x","method":"tools/list"}`},
		{fuzzInSession, "", "", `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"p__t","arguments":{"n":1},"_meta":{"progressToken":7}}}`},
		{fuzzInSession, "", "", `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"register_page_tool_by_code","arguments":{"name":"x","description":"d","code":"return 1","params":{"a":{"type":"string"}}}}}`},
		{fuzzInSession, "", "", `{"jsonrpc":"2.0","id":4,"method":"prompts/get","params":{"name":"p__review","arguments":{"style":"s"}}}`},
		{fuzzInSession, "", "", `{"jsonrpc":"2.0","id":5,"method":"resources/read","params":{"uri":"page://p/item/5"}}`},
		{fuzzInSession, "", "", `{"jsonrpc":"2.0","id":6,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"p__review"},"argument":{"name":"style","value":""}}}`},
		{fuzzInSession, "", "", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`},
		{fuzzInSession, "", "", `{"jsonrpc":"2.0","id":7,"result":{}}`},
		{fuzzInSession | fuzzOlder | 2<<5, "", "", `[{"jsonrpc":"2.0","id":8,"method":"ping"},{"jsonrpc":"2.0","id":9,"method":"tools/list"}]`},
		{fuzzInSession | fuzzOlder | 2<<5 | 1<<10, "", "", `[{"jsonrpc":"2.0","id":"8","method":"tools/call","params":{"name":"p__t"}},{"jsonrpc":"2.0","method":"notifications/roots/list_changed"},{"jsonrpc":"2.0","id":8,"method":"nonsense"}]`},
		{fuzzInSession | 2<<5, "", "", `[{"jsonrpc":"2.0","id":8,"method":"ping"}]`},
		{fuzzInSession | 1, "", "", ``},
		{fuzzInSession | 2, "", "", ``},
		{fuzzOtherID, "", "", `{"jsonrpc":"2.0","id":1,"method":"ping"}`},
		{fuzzTellsMethod | 1<<5, "", "", `{"jsonrpc":"2.0","id":10,"method":"tools/call","params":{"name":"p__t","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`},
		{fuzzTellsMethod | 1<<5, "", "", `{"jsonrpc":"2.0","id":11,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`},
		{fuzzTellsMethod | 1<<5, "", "", `{"jsonrpc":"2.0","id":12,"method":"subscriptions/listen","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}},"notifications":{"toolsListChanged":true}}}`},
		{1 << 5, "", "tools/list", `{"jsonrpc":"2.0","id":13,"method":"tools/call","params":{"name":"p__t"}}`},
		{0, "2999-01-01", "", `{"jsonrpc":"2.0","id":14,"method":"ping"}`},
		{0, "", "", `{"jsonrpc":"2.0","id":{},"method":5}`},
		{0, "", "", `{"jsonrpc":"1.0"`},
	} {
		f.Add(seed.choices, seed.version, seed.name, []byte(seed.body))
	}
	f.Fuzz(func(t *testing.T, choices uint16, version, name string, body []byte) {
		if strings.ContainsFunc(version+name, func(c rune) bool { return c < ' ' || c == 0x7f }) {
			return // net/http takes no such header
		}
		synctest.Test(t, func(t *testing.T) {
			s := newFuzzSide(t, map[bool]string{true: "2025-03-26", false: withSessions}[choices&fuzzOlder != 0])
			defer s.end()
			req := s.request(choices, version, name, body)
			was := s.others()
			s.judge(req, body, s.serve(req))
			if now := s.others(); now != was {
				t.Errorf("another client's page heard %q", strings.TrimPrefix(now, was))
			}
			s.goesOn(req)
		})
	})
}

var fuzzStatus = []int{200, 202, 204, 400, 404, 405, 406, 413, 415}

// judge holds an answer to what MCP says of it.
func (s *fuzzSide) judge(req *http.Request, body []byte, w *httptest.ResponseRecorder) {
	t := s.t
	t.Helper()
	if !slices.Contains(fuzzStatus, w.Code) {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
	kind, _, _ := strings.Cut(w.Header().Get("Content-Type"), ";")
	messages, err := messagesOf(kind, w.Body.Bytes())
	if err != nil {
		t.Errorf("%d %s %q: %v", w.Code, kind, w.Body, err)
		return
	}
	if w.Code >= 400 && w.Code != 405 && (len(messages) != 1 || messages[0].Error == nil) {
		t.Errorf("%d without an error: %s", w.Code, w.Body)
	}
	if w.Code == 202 && w.Body.Len() > 0 {
		t.Errorf("a notification is answered: %s", w.Body)
	}
	asked, ok := askedIn(body)
	if req.Method != http.MethodPost || !ok {
		return
	}
	if req.Header.Get(methodHeader) == methodListen && w.Code == 200 {
		return // answered when it ends, if at all
	}
	if w.Code >= 400 {
		if id := messages[0].ID; string(id) != "null" && !(len(asked) == 1 && sameID(id, asked[0])) {
			t.Errorf("a refusal of %s, and %s was asked: %s", id, asked, w.Body)
		}
		return
	}
	s.judgeAnswers(asked, messages)
}

// judgeAnswers: each request has one answer, and what nobody asked for has none.
func (s *fuzzSide) judgeAnswers(asked []json.RawMessage, messages []fuzzMessage) {
	s.t.Helper()
	answers := make([]int, len(asked))
	for _, m := range messages {
		if m.Method != nil { // on the way
			continue
		}
		if m.Result == nil == (m.Error == nil) {
			s.t.Errorf("neither a result nor an error, or both: %+v", m)
		}
		i := slices.IndexFunc(asked, func(id json.RawMessage) bool { return sameID(id, m.ID) })
		if i < 0 {
			s.t.Errorf("an answer to %s, and %s was asked", m.ID, asked)
			continue
		}
		answers[i]++
	}
	for i, n := range answers {
		if n != 1 {
			s.t.Errorf("%d answers to %s", n, asked[i])
		}
	}
}

// goesOn tells whether the clients are served after that.
func (s *fuzzSide) goesOn(req *http.Request) {
	for _, id := range []string{s.a, s.b} {
		if id == s.a && req.Method == http.MethodDelete {
			continue
		}
		ping := httptest.NewRequest("POST", "/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":"last","method":"ping"}`))
		ping.Header.Set("Content-Type", "application/json")
		ping.Header.Set(sessionHeader, id)
		if w := s.serve(ping); w.Code != 200 || !strings.Contains(w.Body.String(), `"last"`) {
			s.t.Errorf("a ping afterwards: %d %s", w.Code, w.Body)
		}
	}
}

// fuzzMessage is a JSON-RPC message.
type fuzzMessage struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  *string         `json:"method"`
	Result  json.RawMessage `json:"result"`
	Error   json.RawMessage `json:"error"`
}

// messagesOf reads an answer as what it says it is.
func messagesOf(kind string, body []byte) (found []fuzzMessage, err error) {
	add := func(raw []byte) error {
		var m fuzzMessage
		if err := json.Unmarshal(raw, &m); err != nil {
			return err
		}
		if m.Version != "2.0" {
			return fmt.Errorf("no JSON-RPC: %q", raw)
		}
		found = append(found, m)
		return nil
	}
	switch {
	case len(body) == 0:
		return nil, nil
	case kind == "application/json" && body[0] == '[':
		var all []json.RawMessage
		if err := json.Unmarshal(body, &all); err != nil {
			return nil, err
		}
		for _, raw := range all {
			if err := add(raw); err != nil {
				return nil, err
			}
		}
		return found, nil
	case kind == "application/json":
		return found, add(body)
	case kind != "text/event-stream":
		return nil, fmt.Errorf("the content type is %q", kind)
	}
	for line := range bytes.Lines(body) {
		line = bytes.TrimSuffix(line, []byte("\n"))
		field, value, _ := bytes.Cut(line, []byte(":"))
		switch value = bytes.TrimPrefix(value, []byte(" ")); string(field) {
		case "data":
			if len(value) > 0 { // the SDK primes a stream with an empty one
				if err := add(value); err != nil {
					return nil, err
				}
			}
		case "", "event", "id", "retry":
		default:
			return nil, fmt.Errorf("the line %q is none of an event stream", line)
		}
	}
	return found, nil
}

// askedIn gives the ids of the requests that a body surely has, if it is nothing else
// and no two are alike.
func askedIn(body []byte) (ids []json.RawMessage, ok bool) {
	msgs := []map[string]json.RawMessage{nil}
	if json.Unmarshal(body, &msgs[0]) != nil && json.Unmarshal(body, &msgs) != nil {
		return nil, false
	}
	for _, msg := range msgs {
		var method string
		if string(msg["jsonrpc"]) != `"2.0"` || json.Unmarshal(msg["method"], &method) != nil || method == "" || method == "notifications/cancelled" {
			return nil, false
		}
		id, given := msg["id"]
		if !given {
			continue
		}
		var number int64
		var text string
		if json.Unmarshal(id, &number) != nil && json.Unmarshal(id, &text) != nil || string(id) == "null" || slices.ContainsFunc(ids, func(o json.RawMessage) bool { return sameID(o, id) }) {
			return nil, false
		}
		ids = append(ids, id)
	}
	return ids, len(ids) > 0
}

func sameID(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && x == y
}
