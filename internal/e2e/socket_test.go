package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"
)

// socket dials /ws as a raw client.
func (s *server) socket(tenant, query string) *websocket.Conn {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ws, _, err := websocket.Dial(ctx, s.base+"/ws?tenant="+tenant+query, &websocket.DialOptions{HTTPHeader: http.Header{"Origin": {"https://evil.example"}}})
	if err != nil {
		s.t.Fatalf("dial: %v", err)
	}
	ws.SetReadLimit(1 << 20)
	s.t.Cleanup(func() { _ = ws.CloseNow() })
	return ws
}

// hears reads until a message or the close reason contains part.
func hears(t *testing.T, ws *websocket.Conn, part string) (websocket.StatusCode, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		_, msg, err := ws.Read(ctx)
		if err != nil {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("the socket ended with %v, want %q", err, part)
			}
			return websocket.CloseStatus(err), err.Error()
		}
		if strings.Contains(string(msg), part) {
			return 0, string(msg)
		}
	}
}

func say(t *testing.T, ws *websocket.Conn, typ websocket.MessageType, msg []byte) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_ = ws.Write(ctx, typ, msg) // the server may have hung up in the middle
}

func tenantOf(c *client) string {
	_, id, _ := strings.Cut(c.snippet(), "tenant=")
	return strings.TrimSuffix(id, `");`)
}

func TestHostilePage(t *testing.T) {
	s := serve(t)
	c := s.connect()
	tenant := tenantOf(c)
	// An innocent page, with a call of its own in flight.
	good := s.socket(tenant, "&v=1&instance=aaaaaaaaaaaaaaaaaaaa")
	say(t, good, websocket.MessageText, []byte(`{"type":"register_tools","appLabel":"good","tools":[{"name":"x","description":"d"}]}`))
	c.waitTools("good__x")
	answered := make(chan string, 1)
	go func() { answered <- c.ok("good__x", nil) }()
	_, call := hears(t, good, `"type":"call"`)
	var frame struct{ ID string }
	if err := json.Unmarshal([]byte(call), &frame); err != nil {
		t.Fatal(err)
	}

	for name, bad := range map[string]struct {
		typ  websocket.MessageType
		msg  []byte
		part string
		code websocket.StatusCode // 0: the socket lives
	}{
		"null":            {websocket.MessageText, []byte(`null`), "one JSON object", 1003},
		"not JSON":        {websocket.MessageText, []byte(`hello`), "one JSON object", 1003},
		"array":           {websocket.MessageText, []byte(`[]`), "one JSON object", 1003},
		"binary":          {websocket.MessageBinary, []byte(`{"type":"alive"}`), "one JSON object", 1003},
		"invalid UTF-8":   {websocket.MessageText, []byte("{\"type\":\"\xff\"}"), "UTF-8", 1003},
		"20 MB":           {websocket.MessageText, bytes.Repeat([]byte(" "), 20<<20), "16777217", 1009},
		"no type":         {websocket.MessageText, []byte(`{}`), "missing", 0},
		"type no text":    {websocket.MessageText, []byte(`{"type":5}`), "must be text", 0},
		"unknown type":    {websocket.MessageText, []byte(`{"type":"take_over"}`), "take_over", 0},
		"no tools":        {websocket.MessageText, []byte(`{"type":"register_tools"}`), "tools", 0},
		"tools no array":  {websocket.MessageText, []byte(`{"type":"register_tools","tools":{}}`), "tools", 0},
		"another's call":  {websocket.MessageText, []byte(`{"type":"call_result","id":"` + frame.ID + `","result":"forged"}`), "not sent to this connection", 0},
		"answer no id":    {websocket.MessageText, []byte(`{"type":"call_result","result":1}`), "id", 0},
		"progress no id":  {websocket.MessageText, []byte(`{"type":"progress","progress":1}`), "id", 0},
		"progress text":   {websocket.MessageText, []byte(`{"type":"progress","id":"1-1","progress":"a lot"}`), "must be a number", 0},
		"log level":       {websocket.MessageText, []byte(`{"type":"log","level":"shout"}`), "no level", 0},
		"rename to blank": {websocket.MessageText, []byte(`{"type":"rename_connection","appLabel":"  "}`), "empty", 0},
	} {
		ws := s.socket(tenant, "&v=1")
		say(t, ws, bad.typ, bad.msg)
		code, heard := hears(t, ws, bad.part)
		if bad.code != 0 && code != bad.code {
			t.Errorf("%s: close code %d (%s), want %d", name, code, heard, bad.code)
		}
		if bad.code == 0 {
			say(t, ws, websocket.MessageText, []byte(`{"type":"register_tools","appLabel":"`+strings.ReplaceAll(name, " ", "")+`","tools":[]}`))
			hears(t, ws, `"registered"`)
		}
		_ = ws.CloseNow()
	}
	say(t, good, websocket.MessageText, []byte(`{"type":"call_result","id":"`+frame.ID+`","result":"own"}`))
	if got := <-answered; got != "own" {
		t.Errorf("the innocent page's call was answered with %q", got)
	}
}

func TestConnectStringThatNamesNothing(t *testing.T) {
	s := serve(t)
	const session, empty = "names no session", "the connect string is empty"
	for tenant, want := range map[string]string{"": empty, "..": empty, "%00": empty, ":app": empty, "00000000-0000-0000-0000-000000000000": session, "%22AAAAAAAA-0000-0000-0000-000000000000%22": session} {
		code, reason := hears(t, s.socket(tenant, "&v=1"), want)
		if code != 4404 {
			t.Errorf("%q: closed with %d %s", tenant, code, reason)
		}
	}
	tb := newTab(t).open(newSite(t).page("/", fixture("Lost", "[]", "")))
	tb.paste(fmt.Sprintf(`import("%s/main.js?tenant=00000000-0000-0000-0000-000000000000")`, s.base))
	tb.waitLine("names no session")
}

func TestOlderScriptConnects(t *testing.T) {
	s := serve(t)
	c := s.connect()
	ws := s.socket(tenantOf(c), "")
	hears(t, ws, `"type":"init"`)
	say(t, ws, websocket.MessageText, []byte(`{"type":"register_tools","appLabel":"Old page","tools":[{"name":"x","description":"d","params":{"n":{"type":"number"}}}]}`))
	c.waitTools("old_page__x")
	done := make(chan string, 1)
	go func() { done <- c.ok("old_page__x", map[string]any{"n": 1}) }()
	_, call := hears(t, ws, `"call"`)
	var frame map[string]any
	if err := json.Unmarshal([]byte(call), &frame); err != nil || len(frame) != 4 {
		t.Fatalf("an older page was sent %s", call)
	}
	say(t, ws, websocket.MessageText, []byte(fmt.Sprintf(`{"type":"call_result","id":%q,"result":{"ok":true}}`, frame["id"])))
	if got := <-done; got != `{"ok":true}` {
		t.Errorf("got %s", got)
	}
	say(t, ws, websocket.MessageText, []byte(`{"type":"leave_channel"}`))
	if code, _ := hears(t, ws, "left"); code != 1000 {
		t.Errorf("after leaving: %d", code)
	}
	c.waitTools()
}
