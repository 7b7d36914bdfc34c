package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// ask sends one request as nothing but net/http would.
func (s *server) ask(method, path, body string, header map[string]string) (*http.Response, string) {
	s.t.Helper()
	req, err := http.NewRequest(method, s.base+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	for k, v := range header {
		if k == "Host" {
			req.Host = v
		}
		req.Header.Set(k, v)
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	return res, string(b)
}

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`

var asJSON = map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}

func with(h map[string]string, kv ...string) map[string]string {
	m := map[string]string{}
	for k, v := range h {
		m[k] = v
	}
	for i := 0; i < len(kv); i += 2 {
		m[kv[i]] = kv[i+1]
	}
	return m
}

func TestForeignHostIsRefusedEverywhere(t *testing.T) {
	s := serve(t, "--allow-host", "bridge.test")
	port := s.base[strings.LastIndex(s.base, ":")+1:]
	for _, path := range []string{"/", "/mcp", "/mcp/", "/ws", "/main.js", "/index.js", "/healthz", "/nothing", "/.well-known/oauth-authorization-server"} {
		for _, host := range []string{"evil.example", "evil.example:" + port, "localhost.evil.example", "192.168.1.5:" + port, "0.0.0.0"} {
			for _, method := range []string{"GET", "POST", "OPTIONS", "HEAD"} {
				res, body := s.ask(method, path, "", map[string]string{"Host": host})
				if res.StatusCode != 403 || method != "HEAD" && !strings.Contains(body, "--allow-host") {
					t.Errorf("%s %s with Host %s: %d %s", method, path, host, res.StatusCode, body)
				}
			}
		}
	}
	for _, host := range []string{"localhost", "LOCALHOST:" + port, "127.0.0.1", "[::1]:" + port, "localhost.:" + port, "app.localhost", "bridge.test", "Bridge.Test:1234"} {
		if res, body := s.ask("GET", "/healthz", "", map[string]string{"Host": host}); res.StatusCode != 200 || !strings.Contains(body, "jsbridge") {
			t.Errorf("Host %s: %d %s", host, res.StatusCode, body)
		}
	}
}

func TestForeignOriginMayNotUseMCP(t *testing.T) {
	s := serve(t)
	for _, origin := range []string{"https://evil.example", "null", "http://localhost.evil.example", "http://evil.example:8766", "file://", "chrome-extension://abc", "http://localhost@evil.example", "http://127.0.0.1.evil.example"} {
		for _, ct := range []string{"application/json", "text/plain"} {
			res, body := s.ask("POST", "/mcp", initialize, with(asJSON, "Origin", origin, "Content-Type", ct))
			if res.StatusCode != 403 || res.Header.Get("Access-Control-Allow-Origin") != "" || !strings.Contains(body, "MCP endpoint") {
				t.Errorf("Origin %s as %s: %d %s", origin, ct, res.StatusCode, body)
			}
		}
		if res, _ := s.ask("OPTIONS", "/mcp", "", map[string]string{"Origin": origin, "Access-Control-Request-Method": "POST"}); res.StatusCode != 403 {
			t.Errorf("preflight from %s: %d", origin, res.StatusCode)
		}
	}
	if res, _ := s.ask("GET", "/mcp", "", map[string]string{"Sec-Fetch-Site": "cross-site"}); res.StatusCode != 403 {
		t.Errorf("cross-site without an Origin: %d", res.StatusCode)
	}
}

func TestInspectorsOriginGetsExactCORS(t *testing.T) {
	s := serve(t)
	const origin = "http://localhost:6274"
	res, _ := s.ask("OPTIONS", "/mcp/", "", map[string]string{"Origin": origin, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "mcp-protocol-version, mcp-session-id, last-event-id, authorization, content-type"})
	allowed := strings.ToLower(res.Header.Get("Access-Control-Allow-Headers"))
	for _, h := range []string{"mcp-protocol-version", "mcp-session-id", "last-event-id", "authorization", "content-type"} {
		if !strings.Contains(allowed, h) {
			t.Errorf("preflight does not allow %s", h)
		}
	}
	if res.StatusCode != 204 || !strings.Contains(res.Header.Get("Access-Control-Allow-Methods"), "DELETE") {
		t.Errorf("preflight: %d, methods %s", res.StatusCode, res.Header.Get("Access-Control-Allow-Methods"))
	}
	res, body := s.ask("POST", "/mcp", initialize, with(asJSON, "Origin", origin))
	if res.StatusCode != 200 || res.Header.Get("Access-Control-Allow-Origin") != origin || !strings.Contains(res.Header.Get("Vary"), "Origin") ||
		!strings.Contains(res.Header.Get("Access-Control-Expose-Headers"), "Mcp-Session-Id") || res.Header.Get("Mcp-Session-Id") == "" {
		t.Errorf("initialize: %d %v %s", res.StatusCode, res.Header, body)
	}
	res, _ = s.ask("POST", "/mcp", initialize, with(asJSON, "Origin", origin, "Mcp-Session-Id", "gone"))
	if res.StatusCode != 404 || res.Header.Get("Access-Control-Allow-Origin") != origin {
		t.Errorf("an error has no CORS headers: %d %v", res.StatusCode, res.Header)
	}
}

func TestNotFoundIsJSON(t *testing.T) {
	s := serve(t)
	for _, path := range []string{"/.well-known/oauth-authorization-server", "/.well-known/oauth-protected-resource/mcp", "/.well-known/openid-configuration", "/register", "/mcp/other"} {
		for _, method := range []string{"GET", "POST"} {
			res, body := s.ask(method, path, "", nil)
			if res.StatusCode != 404 || !json.Valid([]byte(body)) || !strings.Contains(res.Header.Get("Content-Type"), "json") {
				t.Errorf("%s %s: %d %s %s", method, path, res.StatusCode, res.Header.Get("Content-Type"), body)
			}
		}
	}
}

func TestUnknownSessionIs404(t *testing.T) {
	s := serve(t)
	for _, method := range []string{"POST", "GET", "DELETE"} {
		res, body := s.ask(method, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, with(asJSON, "Mcp-Session-Id", "ABCDEF"))
		if res.StatusCode != 404 || !strings.Contains(body, "initialize a new one") || !json.Valid([]byte(body)) {
			t.Errorf("%s: %d %s", method, res.StatusCode, body)
		}
	}
}

func TestAcceptVariants(t *testing.T) {
	s := serve(t)
	for accept, want := range map[string]string{
		"": "text/event-stream", "*/*": "text/event-stream", "application/json": "application/json", "text/event-stream": "text/event-stream",
		"text/event-stream;q=0.5, application/json": "text/event-stream", "application/json, text/event-stream": "text/event-stream",
	} {
		h := with(asJSON)
		delete(h, "Accept")
		if accept != "" {
			h["Accept"] = accept
		}
		res, body := s.ask("POST", "/mcp", initialize, h)
		if res.StatusCode != 200 || !strings.HasPrefix(res.Header.Get("Content-Type"), want) || !strings.Contains(body, `"serverInfo"`) {
			t.Errorf("Accept %q: %d %s %s", accept, res.StatusCode, res.Header.Get("Content-Type"), body)
		}
		if want == "application/json" && !json.Valid([]byte(body)) {
			t.Errorf("Accept %q: not JSON: %s", accept, body)
		}
	}
	if res, _ := s.ask("POST", "/mcp", initialize, with(asJSON, "Accept", "text/html")); res.StatusCode < 400 {
		t.Errorf("Accept text/html: %d", res.StatusCode)
	}
}

func TestScriptsAreServedForEveryOrigin(t *testing.T) {
	s := serve(t)
	res, body := s.ask("GET", "/main.js", "", map[string]string{"Origin": "https://any.example"})
	if res.StatusCode != 200 || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/javascript") || res.Header.Get("Access-Control-Allow-Origin") != "*" || res.Header.Get("Cache-Control") != "no-cache" {
		t.Errorf("main.js: %d %v", res.StatusCode, res.Header)
	}
	etag := res.Header.Get("ETag")
	if res, b := s.ask("GET", "/main.js", "", map[string]string{"If-None-Match": etag}); res.StatusCode != 304 || b != "" || etag == "" {
		t.Errorf("with its ETag %s: %d", etag, res.StatusCode)
	}
	if res, b := s.ask("HEAD", "/main.js", "", nil); res.StatusCode != 200 || b != "" || res.ContentLength != int64(len(body)) {
		t.Errorf("HEAD: %d, length %d", res.StatusCode, res.ContentLength)
	}
	if res, body := s.ask("GET", "/", "", nil); res.StatusCode != 200 || !strings.Contains(res.Header.Get("Content-Security-Policy"), "frame-ancestors 'none'") || !strings.Contains(body, "jsbridge") {
		t.Errorf("start page: %d %v", res.StatusCode, res.Header)
	}
}

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
	for _, tenant := range []string{"", "app", "channel:app", "00000000-0000-0000-0000-000000000000", "..", "%00"} {
		code, reason := hears(t, s.socket(tenant, "&v=1"), "names no session")
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

func TestListensOnLoopbackOnly(t *testing.T) {
	s := serve(t)
	port := s.base[strings.LastIndex(s.base, ":")+1:]
	for _, host := range []string{"127.0.0.1", "::1"} {
		if host == "::1" && !hasIPv6() {
			continue
		}
		conn, err := net.Dial("tcp", net.JoinHostPort(host, port))
		if err != nil {
			t.Errorf("%s: %v", host, err)
			continue
		}
		conn.Close()
	}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		ip := a.(*net.IPNet).IP
		if ip.IsLoopback() || ip.IsLinkLocalUnicast() {
			continue
		}
		if conn, err := net.DialTimeout("tcp", net.JoinHostPort(ip.String(), port), time.Second); err == nil {
			conn.Close()
			t.Errorf("listens on %s", ip)
		}
	}
	out, err := exec.Command(binary, "--host", "0.0.0.0", "--port", "0").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "--token") {
		t.Errorf("listening wide without a token: %v %s", err, out)
	}
}

func hasIPv6() bool {
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		return false
	}
	l.Close()
	return true
}

func TestTokenIsWantedWhenWide(t *testing.T) {
	s := serve(t, "--host", "0.0.0.0", "--token", "s3cret")
	if res, _ := s.ask("POST", "/mcp", initialize, asJSON); res.StatusCode != 401 || res.Header.Get("WWW-Authenticate") == "" {
		t.Errorf("without the token: %d", res.StatusCode)
	}
	if res, _ := s.ask("POST", "/mcp", initialize, with(asJSON, "Authorization", "Bearer wrong")); res.StatusCode != 401 {
		t.Errorf("with a wrong one: %d", res.StatusCode)
	}
	if res, _ := s.ask("POST", "/mcp", initialize, with(asJSON, "Authorization", "Bearer s3cret")); res.StatusCode != 200 {
		t.Errorf("with it: %d", res.StatusCode)
	}
	if strings.Contains(s.log.String(), "s3cret") {
		t.Error("the log has the token")
	}
}

func TestPortIsTaken(t *testing.T) {
	s := serve(t)
	port := s.base[strings.LastIndex(s.base, ":")+1:]
	begun := time.Now()
	out, err := exec.Command(binary, "--port", port).CombinedOutput()
	exit, ok := err.(*exec.ExitError)
	if !ok || exit.ExitCode() != 1 || !strings.Contains(string(out), "jsbridge") || !strings.Contains(string(out), "already running") || !strings.Contains(string(out), "--port") {
		t.Errorf("second jsbridge: %v %s", err, out)
	}
	t.Logf("refused after %s", time.Since(begun).Round(time.Millisecond))
	if res, _ := s.ask("GET", "/healthz", "", nil); res.StatusCode != 200 {
		t.Errorf("the first one: %d", res.StatusCode)
	}

	host := "127.0.0.1"
	if hasIPv6() {
		host = "::1" // the other half of localhost
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port = fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
	out, err = exec.Command(binary, "--port", port).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "port "+port) || !strings.Contains(string(out), "pid") {
		t.Errorf("port held by another program on %s: %v %s", host, err, out)
	}
}

func TestStopTellsPagesAndEndsCalls(t *testing.T) {
	s := serve(t, "--drain", "300ms")
	c := s.connect()
	ws := s.socket(tenantOf(c), "&v=1")
	say(t, ws, websocket.MessageText, []byte(`{"type":"register_tools","appLabel":"p","tools":[{"name":"x","description":"d"}]}`))
	c.waitTools("p__x")
	done := make(chan string, 1)
	go func() {
		r, err := c.CallTool(c.ctx(), &mcp.CallToolParams{Name: "p__x"})
		if err != nil || !r.IsError {
			done <- fmt.Sprint(r, err)
			return
		}
		done <- text(t, r)
	}()
	hears(t, ws, `"type":"call"`)
	stopped := make(chan struct{})
	go func() {
		s.stop()
		close(stopped)
	}()
	if code, _ := hears(t, ws, "stopping"); code != 1001 {
		t.Errorf("the page was told %d", code)
	}
	if got := <-done; !strings.Contains(got, "may have run") {
		t.Errorf("the call ended with %s", got)
	}
	<-stopped
	if code := s.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func TestOldSessionAfterRestart(t *testing.T) {
	s := serve(t)
	res, _ := s.ask("POST", "/mcp", initialize, asJSON)
	id := res.Header.Get("Mcp-Session-Id")
	port := s.base[strings.LastIndex(s.base, ":")+1:]
	_ = s.cmd.Process.Kill()
	<-s.done
	again := serve(t, "--port", port)
	res, _ = again.ask("POST", "/mcp", `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, with(asJSON, "Mcp-Session-Id", id))
	if res.StatusCode != 404 {
		t.Errorf("old session after a restart: %d, want 404", res.StatusCode)
	}
}

// The stream that a client lost without knowing is taken over by its new one,
// and what changed meanwhile is told on it.
func TestStreamIsTakenOver(t *testing.T) {
	s := serve(t)
	res, _ := s.ask("POST", "/mcp", initialize, asJSON)
	session := with(asJSON, "Mcp-Session-Id", res.Header.Get("Mcp-Session-Id"))
	s.ask("POST", "/mcp", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, session)
	_, list := s.ask("POST", "/mcp", `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"get_embed_snippet"}}`, session)
	_, tenant, _ := strings.Cut(list, "tenant=")
	tenant = tenant[:36]

	open := func() (*http.Response, context.CancelFunc) {
		ctx, cancel := context.WithCancel(context.Background())
		t.Cleanup(cancel)
		req, _ := http.NewRequestWithContext(ctx, "GET", s.base+"/mcp", nil)
		for k, v := range with(session, "Last-Event-ID", "x_1") {
			req.Header.Set(k, v)
		}
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil || res.StatusCode != 200 {
			t.Fatalf("GET: %v %v", res, err)
		}
		return res, cancel
	}
	first, _ := open()
	second, _ := open()
	if _, err := io.ReadAll(first.Body); err != nil {
		t.Logf("the first stream ended with %v", err)
	}
	ws := s.socket(tenant, "&v=1")
	say(t, ws, websocket.MessageText, []byte(`{"type":"register_tools","appLabel":"p","tools":[{"name":"x","description":"d"}]}`))
	lines := bufio.NewReader(second.Body)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("the second stream ended: %v", err)
		}
		if strings.Contains(line, "notifications/tools/list_changed") {
			break
		}
	}
}
