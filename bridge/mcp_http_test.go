package bridge

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"jsbridge/bridge/agent"
)

func TestVersionsAreNegotiated(t *testing.T) {
	e := newEdge(t, Options{})
	for asked, want := range map[string]string{
		"2024-11-05": "2024-11-05", "2025-03-26": "2025-03-26", "2025-06-18": "2025-06-18", "2025-11-25": "2025-11-25",
		// The server answers with the latest that it has, and the client decides.
		"1999-01-01": latestSessions, "2027-01-01": latestSessions, "nonsense": latestSessions, "": latestSessions,
		// The stateless version knows no initialize.
		"2026-07-28": latestSessions,
	} {
		r := e.post(initializeFor(asked))
		if got := r.field("protocolVersion"); r.StatusCode != 200 || got != want || r.Header.Get("Mcp-Session-Id") == "" {
			t.Errorf("%q: negotiated %q, want %q: %v", asked, got, want, r)
		}
	}
}

// MCP 2025-11-25, transports, "Protocol Version Header": none is taken for an
// older client; one that is unsupported must be answered 400. That it must be the
// negotiated one is said to clients only.
func TestVersionHeader(t *testing.T) {
	e := newEdge(t, Options{})
	versions := []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"}
	for _, negotiated := range versions {
		id := e.session(negotiated)
		for _, header := range append(slices.Clone(versions), "") {
			if r := e.post(toolsList, "Mcp-Session-Id", id, "Mcp-Protocol-Version", header); r.StatusCode != 200 || r.code() != 0 || !strings.Contains(r.text, `"get_embed_snippet"`) {
				t.Errorf("negotiated %s, header %q: %v", negotiated, header, r)
			}
		}
		for _, header := range []string{"1999-01-01", "2025-11-26", "latest"} {
			for _, body := range []string{toolsList, initializeFor("2025-11-25"), `{"jsonrpc":"2.0","method":"notifications/initialized"}`} {
				if r := e.post(body, "Mcp-Session-Id", id, "Mcp-Protocol-Version", header); r.StatusCode != 400 || r.code() == 0 || !strings.Contains(r.text, latestSessions) {
					t.Errorf("negotiated %s, header %q: %v; want 400 and an error that lists the versions", negotiated, header, r)
				}
			}
		}
	}
}

func TestAccept(t *testing.T) {
	e := newEdge(t, Options{})
	const stream, plain = "text/event-stream", "application/json"
	for accept, want := range map[string]string{
		"application/json, text/event-stream": stream, "text/event-stream,application/json": stream, "text/event-stream": stream, "*/*": stream, "": stream,
		"text/*": stream, "APPLICATION/JSON, TEXT/EVENT-STREAM": stream, "application/json;charset=utf-8, text/event-stream": stream,
		"application/json": plain, "application/*": plain, "application/json;q=0.9, text/html": plain,
		"application/json;q=0.5, text/event-stream;q=1": stream, "text/html, */*;q=0.1": stream,
		"application/json, text/event-stream;q=0": plain, "application/json, text/event-stream; q=0.000": plain, "application/json;q=0, text/event-stream": stream,
		"text/html": "", "application/jsonp": "", "image/png, text/html;q=0.9": "", "application/json;q=0": "", "*/*;q=0": "",
	} {
		r := e.post(initializeFor(latestSessions), "Accept", accept)
		kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
		switch {
		case want == "":
			if (r.StatusCode != 400 && r.StatusCode != 406) || kind != plain || r.code() == 0 {
				t.Errorf("Accept %q: %v; want 400 or 406 and a JSON-RPC error", accept, r)
			}
		case r.StatusCode != 200 || kind != want || r.field("protocolVersion") != latestSessions:
			t.Errorf("Accept %q: %v; want %s", accept, r, want)
		}
	}
}

func TestContentType(t *testing.T) {
	e := newEdge(t, Options{})
	for given, want := range map[string]int{
		"application/json": 200, "application/json; charset=utf-8": 200, `application/json;charset="UTF-8"`: 200, "APPLICATION/JSON": 200, "Application/Json ; Charset=UTF-8": 200, "application/json;": 200,
		"": 415, "text/plain": 415, "application/x-www-form-urlencoded": 415, "application/jsonp": 415, "text/plain, application/json": 415, "multipart/form-data; boundary=application/json": 415,
	} {
		r := e.post(initializeFor(latestSessions), "Content-Type", given)
		if r.StatusCode != want || (want == 415) != (r.code() != 0) {
			t.Errorf("Content-Type %q: %v, want %d", given, r, want)
		}
	}
}

func TestEndpointPaths(t *testing.T) {
	e := newEdge(t, Options{})
	for path, want := range map[string]int{
		"/mcp": 200, "/mcp/": 200, "/mcp?x=1": 200, "/mcp/?x=1": 200, "/mcp/work": 200, "/mcp/work?x=1": 200,
		"/mcp/work/": 404, "/mcp/a/b": 404, "/mcp.json": 404, "/MCP": 404, "/": 404, "/sse": 404, "/messages": 404,
	} {
		if r := e.do(http.MethodPost, path, initializeFor(latestSessions), headers()); r.StatusCode != want {
			t.Errorf("POST %s: %v, want %d", path, r, want)
		}
	}
	// A session is reached by each form of its URL, and by no other's.
	id := e.session(latestSessions)
	for path, want := range map[string]int{"/mcp": 200, "/mcp/": 200, "/mcp?x=1": 200, "/mcp/other": 404} {
		if r := e.do(http.MethodPost, path, toolsList, headers("Mcp-Session-Id", id)); r.StatusCode != want {
			t.Errorf("the session at %s: %v, want %d", path, r, want)
		}
	}
}

// Batches were in MCP up to 2025-03-26.
func TestBatches(t *testing.T) {
	e := newEdge(t, Options{})
	both := `[` + toolsList + `,{"jsonrpc":"2.0","method":"notifications/roots/list_changed"},{"jsonrpc":"2.0","id":"x","method":"ping"}]`
	answered := func(r *reply) bool {
		ids := make(map[string]int)
		for _, m := range r.messages {
			ids[string(m.ID)]++
		}
		return r.StatusCode == 200 && r.code() == 0 && len(r.messages) == 2 && ids["2"] == 1 && ids[`"x"`] == 1
	}
	for _, version := range []string{"2024-11-05", "2025-03-26"} {
		id := e.session(version)
		for _, header := range []string{"", version} {
			for _, accept := range []string{"application/json, text/event-stream", "application/json"} {
				if r := e.post(both, "Mcp-Session-Id", id, "Mcp-Protocol-Version", header, "Accept", accept); !answered(r) {
					t.Errorf("%s, header %q, Accept %q: %v", version, header, accept, r)
				}
			}
		}
		if r := e.post(`[{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}]`, "Mcp-Session-Id", id); r.StatusCode != 202 || r.text != "" {
			t.Errorf("%s, notifications only: %v", version, r)
		}
		for _, accept := range []string{"application/json, text/event-stream", "application/json"} {
			r := e.post(`[`+toolsList+`,{"jsonrpc":"2.0","id":"x","method":"tools/invent"},{"jsonrpc":"2.0","method":"invented"}]`, "Mcp-Session-Id", id, "Accept", accept)
			if len(r.messages) != 2 || string(r.messages[0].ID) != "2" || r.messages[0].Error == nil || string(r.messages[1].ID) != `"x"` || r.messages[1].Error == nil || r.messages[1].Error.Code != -32601 {
				t.Errorf("%s, an unknown method among others: %v", version, r)
			}
		}
	}
	for _, version := range []string{"2025-06-18", "2025-11-25"} {
		id := e.session(version)
		for _, header := range []string{"", version} {
			if r := e.post(both, "Mcp-Session-Id", id, "Mcp-Protocol-Version", header); r.StatusCode != 400 || r.code() != -32600 || !strings.Contains(r.text, "batch") {
				t.Errorf("%s, header %q: %v; want 400, -32600 and a word about batches", version, header, r)
			}
		}
	}
}

func TestBodies(t *testing.T) {
	const limit = 4 << 10
	e := newEdge(t, Options{Agent: agent.Options{MaxBody: limit}})
	id := e.session(latestSessions)
	for body, want := range map[string]struct{ status, code int }{
		`{`: {400, -32700}, `nonsense`: {400, -32700}, `{"jsonrpc":"2.0","id":1,"method":"ping"`: {400, -32700}, ``: {400, -32700}, " \n": {400, -32700},
		"\x00": {400, -32700},
		`null`: {400, -32600}, `5`: {400, -32600}, `"ping"`: {400, -32600}, `[]`: {400, -32600}, `{}`: {400, -32600}, `{"jsonrpc":"2.0"}`: {400, -32600},
		`{"jsonrpc":"1.0","id":1,"method":"ping"}`: {400, -32600}, `{"id":1,"method":"ping"}`: {400, -32600}, `{"jsonrpc":"2.0","id":{},"method":"ping"}`: {400, -32600},
		`{"jsonrpc":"2.0","id":1,"method":5}`:                                         {400, -32600},
		`{"jsonrpc":"2.0","id":1,"method":"tools/invent"}`:                            {200, -32601},
		`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`:                              {200, -32602},
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"no_such"}}`:  {200, -32602},
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[1]}`:                 {200, -32602},
		`{"jsonrpc":"2.0","method":"notifications/invented"}`:                         {202, 0},
		`{"jsonrpc":"2.0","id":99,"result":{}}`:                                       {202, 0}, // an answer that nobody waits for
		`{"jsonrpc":"2.0","id":1,"method":"ping"}`:                                    {200, 0},
		`{"jsonrpc":"2.0","id":"` + strings.Repeat("x", limit) + `","method":"ping"}`: {413, -32600},
	} {
		r := e.post(body, "Mcp-Session-Id", id)
		if r.StatusCode != want.status || r.code() != want.code {
			t.Errorf("%.60q: %v; want %d and %d", body, r, want.status, want.code)
		}
		if want.status == 200 && (len(r.messages) != 1 || string(r.messages[0].ID) != "1") {
			t.Errorf("%.60q: %v; want an answer to 1", body, r)
		}
	}
	// Without a Content-Length the limit shows only while the body is read.
	for _, session := range []string{"", id} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+e.addr+"/mcp", io.MultiReader(strings.NewReader(`{"x":"`+strings.Repeat("x", limit))))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = headers("Mcp-Session-Id", session)
		res, err := e.http.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		if r := readReply(t, res); r.StatusCode != 413 || r.code() != -32600 {
			t.Errorf("chunked, session %q: %v; want 413 and -32600", session, r)
		}
	}
}

// What has no session is told so in a way that clients can read.
func TestMethodsAndMissingSessions(t *testing.T) {
	e := newEdge(t, Options{})
	for _, row := range []struct {
		method, body string
		status, code int
	}{
		{http.MethodPost, toolsList, 400, -32600},
		{http.MethodPost, ping, 200, 0}, // may be sent before initialize
		{http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, 400, -32600},
		{http.MethodGet, "", 400, -32600},
		{http.MethodDelete, "", 400, -32600},
		{http.MethodPut, toolsList, 405, -32600},
		{http.MethodPatch, toolsList, 405, -32600},
		{http.MethodHead, "", 405, 0}, // HEAD has no body
	} {
		r := e.do(row.method, "/mcp", row.body, headers())
		if r.StatusCode != row.status || r.code() != row.code {
			t.Errorf("%s %s: %v; want %d and %d", row.method, row.body, r, row.status, row.code)
		}
		if allow := r.Header.Get("Allow"); row.status == 405 && allow != "GET, POST, DELETE" {
			t.Errorf("%s: Allow %q", row.method, allow)
		}
	}
	if n := e.agents.Sessions(); n != 0 {
		t.Errorf("%d sessions were opened", n)
	}
}

func TestHTTP10(t *testing.T) {
	e := newEdge(t, Options{})
	_, lines := e.raw(e.request("HTTP/1.0", initializeFor(latestSessions)))
	res, err := http.ReadResponse(lines, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(res.TransferEncoding) != 0 {
		t.Errorf("transfer encoding %v, which HTTP/1.0 does not know", res.TransferEncoding)
	}
	r := readReply(t, res) // ends where the connection does
	if r.StatusCode != 200 || r.field("protocolVersion") != latestSessions {
		t.Fatalf("initialize: %v", r)
	}
	_, lines = e.raw(e.request("HTTP/1.0", toolsList, "Mcp-Session-Id: "+r.Header.Get("Mcp-Session-Id"), "Connection: keep-alive"))
	if res, err = http.ReadResponse(lines, nil); err != nil {
		t.Fatal(err)
	}
	if r := readReply(t, res); r.StatusCode != 200 || !strings.Contains(r.text, `"get_embed_snippet"`) {
		t.Errorf("tools/list: %v", r)
	}
}

// Whatever a request is answered, its connection serves the next one.
func TestConnectionsAreReused(t *testing.T) {
	e := newEdge(t, Options{})
	id := "Mcp-Session-Id: " + e.session(latestSessions)
	c, lines := e.raw("")
	for _, row := range []struct {
		request string
		want    int
	}{
		{e.request("HTTP/1.1", toolsList, id), 200}, // an event stream
		{e.request("HTTP/1.1", toolsList, id, "Accept: application/json"), 200},
		{e.request("HTTP/1.1", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, id), 202},
		{e.request("HTTP/1.1", toolsList, "Mcp-Session-Id: unknown"), 404},
		{e.request("HTTP/1.1", `{`, id), 400},
		{e.request("HTTP/1.1", toolsList, id, "MCP-Protocol-Version: 1999-01-01"), 400},
		{"GET /mcp HTTP/1.1\r\nHost: " + e.addr + "\r\n\r\n", 400},
		{"PUT /mcp HTTP/1.1\r\nHost: " + e.addr + "\r\nContent-Length: 2\r\n\r\n{}", 405},
		{e.request("HTTP/1.1", ping, id), 200},
	} {
		e.write(c, row.request)
		res, err := http.ReadResponse(lines, nil)
		if err != nil {
			t.Fatalf("%s: %v", row.request, err)
		}
		if r := readReply(t, res); r.StatusCode != row.want || res.Close {
			t.Errorf("%s: %v, close %v; want %d", row.request, r, res.Close, row.want)
		}
	}
	// Two requests may be on their way at once.
	e.write(c, e.request("HTTP/1.1", toolsList, id)+e.request("HTTP/1.1", getSnippet, id))
	for _, want := range []string{`"id":2`, `"id":3`} {
		res, err := http.ReadResponse(lines, nil)
		if err != nil {
			t.Fatal(err)
		}
		if r := readReply(t, res); r.StatusCode != 200 || !strings.Contains(r.text, want) {
			t.Errorf("%v, want %s", r, want)
		}
	}
}
