package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
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

var tokenInPage = regexp.MustCompile(`<meta name="jsbridge-token" content="([^"]+)">`)

// tokened are the headers of a state change: the token is in the dashboard's page.
func (s *server) tokened() map[string]string {
	s.t.Helper()
	_, page := s.ask("GET", "/", "", nil)
	m := tokenInPage.FindStringSubmatch(page)
	if m == nil {
		s.t.Fatalf("the page has no token: %s", page)
	}
	return with(asJSON, "X-Jsbridge-Token", m[1])
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
	port := s.port()
	for _, path := range []string{"/", "/mcp", "/mcp/", "/ws", "/main.js", "/connect.js", "/extras.js", "/api/origins", "/index.js", "/healthz", "/nothing", "/.well-known/oauth-authorization-server"} {
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
	for _, path := range []string{"/.well-known/oauth-authorization-server", "/.well-known/oauth-protected-resource/mcp", "/.well-known/openid-configuration", "/register", "/mcp/other/path"} {
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

func TestListensOnLoopbackOnly(t *testing.T) {
	s := serve(t)
	port := s.port()
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
