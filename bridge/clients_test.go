package bridge

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"jsbridge/tenant"
)

// echoing answers each call with its arguments, until the page's socket ends.
func (p *scripted) echoing() {
	for {
		_, b, err := p.Read(p.t.Context())
		if err != nil {
			return
		}
		var f struct {
			Type, ID string
			Args     json.RawMessage
		}
		if json.Unmarshal(b, &f) != nil || f.Type != "call" {
			continue
		}
		if p.Write(p.t.Context(), 1, fmt.Appendf(nil, `{"type":"call_result","id":%q,"result":%s}`, f.ID, f.Args)) != nil {
			return
		}
	}
}

func callOf(id int, tool, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q%s}}`, id, tool, params)
}

// A second client breaks nothing of the first, however it comes and goes.
func TestClientsDoNotDisturbEachOther(t *testing.T) {
	e := newEdge(t, Options{})
	page := e.page("shop")
	page.declare("x")
	go page.echoing()

	// All begin at once; two of them listen.
	var begun sync.WaitGroup
	ids := make([]string, 3)
	for i := range ids {
		begun.Go(func() { ids[i] = e.session(latestSessions) })
	}
	begun.Wait()
	stays, ends, drops := ids[0], ids[1], ids[2]
	told := tells(e.open(stays))
	gone := tells(e.open(ends))
	c, lines := e.raw("GET /mcp HTTP/1.1\r\nHost: " + e.addr + "\r\nAccept: text/event-stream\r\nMcp-Session-Id: " + drops + "\r\n\r\n")
	if res, err := http.ReadResponse(lines, nil); err != nil || res.StatusCode != 200 {
		t.Fatalf("the third's stream: %v, %v", res, err)
	}

	var calls sync.WaitGroup
	for i, id := range ids {
		for n := range 20 {
			calls.Go(func() {
				number := 100*i + n
				want := fmt.Sprintf(`{\"n\":%d}`, number)
				if r := e.post(callOf(n, "shop__x", fmt.Sprintf(`,"arguments":{"n":%d}`, number)), "Mcp-Session-Id", id); !strings.Contains(r.text, want) {
					t.Errorf("client %d: %v, want %s", i, r, want)
				}
			})
		}
	}
	// One goes in the midst of it, another's connection breaks.
	calls.Go(func() {
		c.Close()
		other := e.session(latestSessions)
		if r := e.do(http.MethodDelete, "/mcp", "", headers("Mcp-Session-Id", other)); r.StatusCode != 204 {
			t.Errorf("DELETE: %v", r)
		}
	})
	calls.Wait()
	if r := e.do(http.MethodDelete, "/mcp", "", headers("Mcp-Session-Id", ends)); r.StatusCode != 204 {
		t.Errorf("DELETE: %v", r)
	}
	if s, open := <-gone; open {
		t.Errorf("the ended client's stream told %s", s)
	}

	for _, id := range []string{stays, drops} {
		if r := e.post(callOf(99, "shop__x", `,"arguments":{"n":5}`), "Mcp-Session-Id", id); !strings.Contains(r.text, `{\"n\":5}`) {
			t.Errorf("a client that stays: %v", r)
		}
	}
	if len(told) != 0 {
		t.Errorf("the client that stays was told of the others: %s", <-told)
	}
	more := e.page("more")
	more.declare("y")
	e.wantListChanged("the client that stays", told)
}

// Clients are strict about the shape of what nobody asked for.
func TestListChangedIsWellFormed(t *testing.T) {
	e := newEdge(t, Options{})
	var told []<-chan string
	for _, version := range []string{"2024-11-05", "2025-06-18", latestSessions} {
		told = append(told, tells(e.open(e.session(version))))
	}
	e.page("shop").declare("x")
	for _, c := range told {
		line := receive(t, "the notification", c)
		data, ok := strings.CutPrefix(line, "data: ")
		var m map[string]json.RawMessage
		if !ok || json.Unmarshal([]byte(data), &m) != nil {
			t.Fatalf("it came as %q", line)
		}
		if string(m["jsonrpc"]) != `"2.0"` || string(m["method"]) != `"notifications/tools/list_changed"` || m["id"] != nil || m["params"] != nil && m["params"][0] != '{' {
			t.Errorf("it came as %s", data)
		}
	}
}

// A list that is the same has the same bytes: what a model has cached of it stays good.
func TestListsAreByteEqual(t *testing.T) {
	list := func(names ...string) string {
		e := newEdge(t, Options{})
		for _, name := range names {
			page := e.pageOf("http://localhost:3000", name, "instance-of-"+name)
			page.say(`{"type":"register_tools","tools":[{"name":"z","description":"d","params":{"q":"string","b":"number","a":{"properties":{"y":"string","x":"string"}}}},{"name":"a","description":"d","annotations":{"readOnlyHint":true,"title":"T"}}]}`)
			page.hears("registered")
		}
		id := e.session(latestSessions)
		first := e.post(toolsList, "Mcp-Session-Id", id, "Accept", "application/json").text
		for range 50 {
			if again := e.post(toolsList, "Mcp-Session-Id", id, "Accept", "application/json").text; again != first {
				t.Fatalf("%s\n%s", first, again)
			}
		}
		return first
	}
	// After a restart the tabs come back in another order.
	first, again := list("one", "two", "three"), list("three", "one", "two")
	if first != again || strings.Count(first, `"name":"t`) != 4 || !strings.Contains(first, `"properties":{"q":{"type":"string"},"b":{"type":"number"},"a":{"type":"object","properties":{"y"`) {
		t.Errorf("%s\n%s", first, again)
	}
}

// Clients leave arguments out, or send null for none.
func TestMissingArguments(t *testing.T) {
	e := newEdge(t, Options{})
	page := e.page("shop")
	page.declare("x")
	go page.echoing()
	id := e.session(latestSessions)
	for params, want := range map[string]string{
		``: `"text":"{}"`, `,"arguments":null`: `"text":"{}"`, `,"arguments":{}`: `"text":"{}"`,
		`,"arguments":"{}"`: `"text":"{}"`, // mended, as all clear slips are
		`,"arguments":[]`:   `"isError":true`, `,"arguments":5`: `"isError":true`, `,"arguments":"x"`: `"isError":true`, `,"arguments":true`: `"isError":true`,
	} {
		for _, accept := range []string{"application/json", "application/json, text/event-stream"} {
			if r := e.post(callOf(99, "shop__x", params), "Mcp-Session-Id", id, "Accept", accept); r.StatusCode != 200 || r.code() != 0 || !strings.Contains(r.text, want) {
				t.Errorf("arguments %q: %v; want %s", params, r, want)
			}
		}
	}
}

func TestAcceptOverTwoHeaders(t *testing.T) {
	e := newEdge(t, Options{})
	for _, accept := range [][]string{{"application/json", "text/event-stream"}, {"text/event-stream", "application/json"}, {"text/html", "application/json;q=0.5, text/event-stream;q=0.1"}} {
		h := headers()
		h["Accept"] = accept
		if r := e.do(http.MethodPost, "/mcp", initializeFor(latestSessions), h); r.StatusCode != 200 || r.Header.Get("Content-Type") != "text/event-stream" {
			t.Errorf("Accept %q: %v", accept, r)
		}
	}
}

// A redirect from one form of the URL to the other would lose the body.
func TestEndpointWithASlash(t *testing.T) {
	e := newEdge(t, Options{})
	for _, path := range []string{"/mcp", "/mcp/", "/mcp?x=1", "/mcp/?x=1"} {
		r := e.do(http.MethodPost, path, initializeFor(latestSessions), headers())
		id := r.Header.Get("Mcp-Session-Id")
		if r.StatusCode != 200 || id == "" {
			t.Fatalf("POST %s: %v", path, r)
		}
		req, err := http.NewRequestWithContext(within(t), http.MethodGet, "http://"+e.addr+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header = headers("Mcp-Session-Id", id, "Accept", "text/event-stream")
		res, err := e.http.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		if res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/event-stream" || !strings.Contains(res.Header.Get("Cache-Control"), "no-store") {
			t.Errorf("GET %s: %d %v", path, res.StatusCode, res.Header)
		}
		res.Body.Close()
		if r := e.do(http.MethodOptions, path, "", headers("Origin", "http://localhost:6274", "Access-Control-Request-Method", "POST")); r.StatusCode != 204 || r.Header.Get("Access-Control-Allow-Origin") == "" {
			t.Errorf("OPTIONS %s: %v", path, r)
		}
		if r := e.do(http.MethodDelete, path, "", headers("Mcp-Session-Id", id)); r.StatusCode != 204 {
			t.Errorf("DELETE %s: %v", path, r)
		}
	}
}

// Clients send the version they would like in the header already, or ask first which
// ones there are.
func TestInitializeWhateverWentBefore(t *testing.T) {
	e := newEdge(t, Options{})
	r := e.post(initializeFor("2025-03-26"), "Mcp-Protocol-Version", latestSessions)
	if r.StatusCode != 200 || r.field("protocolVersion") != "2025-03-26" {
		t.Errorf("another version in the header: %v", r)
	}
	before := e.agents.Sessions()
	for range 20 {
		for _, pairs := range [][]string{{"Mcp-Protocol-Version", stateless, "Mcp-Method", "server/discover"}, nil} {
			r := e.post(statelessBody(stateless, "server/discover", ""), pairs...)
			if pairs != nil && (r.StatusCode != 200 || r.code() != 0) || r.StatusCode >= 500 || len(r.messages) != 1 {
				t.Errorf("server/discover with %q: %v", pairs, r)
			}
		}
	}
	// What is left is what all clients without sessions share.
	if n := e.agents.Sessions(); n > before+1 {
		t.Errorf("asking left %d sessions behind", n-before)
	}
	if r := e.post(toolsList, "Mcp-Session-Id", e.session(latestSessions)); !strings.Contains(r.text, `"get_embed_snippet"`) {
		t.Errorf("initialized after that: %v", r)
	}
}

// Browsers and clients resolve localhost to either family, as they like.
func TestEachLoopbackAddressServes(t *testing.T) {
	e := newEdge(t, Options{})
	hosts := []string{"127.0.0.1", "localhost"}
	if len(e.listeners) == 2 {
		hosts = append(hosts, "::1")
	} else {
		t.Log("this machine has no IPv6")
	}
	for _, host := range hosts {
		at := &edge{t: t, Server: e.Server, addr: net.JoinHostPort(host, fmt.Sprint(e.Port()))}
		defer at.http.CloseIdleConnections()
		page := at.page("shop")
		page.declare("x")
		if r := at.post(toolsList, "Mcp-Session-Id", at.session(latestSessions)); !strings.Contains(r.text, `"shop__x"`) {
			t.Errorf("%s: %v", host, r)
		}
		page.say(`{"type":"leave_channel"}`)
		_, _, _ = page.Read(within(t))
	}
}

// While a tab reloads, its old socket and its new one are there at once.
func TestNoNameIsTwiceInAListWhileATabReloads(t *testing.T) {
	e := newEdge(t, Options{Tenant: tenant.Options{ReconnectGrace: time.Minute}})
	join := func() *scripted {
		page := e.pageOf("http://localhost:3000", "shop", "instance-of-one-tab")
		page.say(`{"type":"register_tools","tools":[{"name":"x","description":"d"},{"name":"x","description":"d"},{"name":"X","description":"d"}]}`)
		page.hears("registered")
		return page
	}
	page := join()
	id := e.session(latestSessions)
	stop, reloads := make(chan struct{}), make(chan int, 1)
	go func() {
		n := 0
		defer func() { reloads <- n }()
		for ; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			next := join()
			_ = page.CloseNow()
			page = next
		}
	}()
	for range 100 {
		r := e.post(toolsList, "Mcp-Session-Id", id, "Accept", "application/json")
		var result struct{ Tools []struct{ Name string } }
		if len(r.messages) != 1 || json.Unmarshal(r.messages[0].Result, &result) != nil {
			t.Fatalf("tools/list: %v", r)
		}
		seen := make(map[string]int)
		for _, tool := range result.Tools {
			seen[strings.ToLower(tool.Name)]++
		}
		pages := 0
		for name, n := range seen {
			if n > 1 {
				t.Errorf("%s is listed %d times", name, n)
			}
			if strings.Contains(name, "__") {
				pages++
			}
		}
		if pages != 2 {
			t.Errorf("%d tools of the tab, want 2: %v", pages, seen)
		}
	}
	close(stop)
	if n := receive(t, "the reloads", reloads); n == 0 {
		t.Error("the tab was never reloaded")
	}
}

// The WebSocket library closes at 32 KiB unless it is told otherwise.
func TestMessagesOverThirtyTwoKilobytes(t *testing.T) {
	e := newEdge(t, Options{})
	page := e.page("shop")
	var tools bytes.Buffer
	for i := range 120 {
		fmt.Fprintf(&tools, `{"name":"tool%d","description":"%0300d"},`, i, i)
	}
	page.say(`{"type":"register_tools","tools":[` + strings.TrimSuffix(tools.String(), ",") + `]}`)
	page.hears("registered")
	c := e.client()
	if n := len(published(t, c)); n != 120 || tools.Len() < 32<<10 {
		t.Errorf("%d tools of %d bytes are published", n, tools.Len())
	}
	answer := e.call(e.session(latestSessions), "shop__tool119")
	result := strings.Repeat("x", 40<<10)
	page.say(`{"type":"call_result","id":"` + page.hears("call").ID + `","result":"` + result + `"}`)
	if r := receive(t, "the result", answer); !strings.Contains(r.text, `"`+result+`"`) {
		t.Errorf("the result came as %.200s", r.text)
	}
}
