package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"
)

// publicSite serves pages on an https origin that the test's browser, which is
// started here, takes for one of the internet: https://app.example:<port>.
func publicSite(t *testing.T) *site {
	t.Helper()
	needBrowser(t)
	l, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Skip("this system has 127.0.0.1 as its only loopback address: ", err)
	}
	s := &site{pages: map[string]string{}, head: nil}
	s.Server = httptest.NewUnstartedServer(s.handler())
	_ = s.Server.Listener.Close()
	s.Server.Listener = l
	s.StartTLS()
	t.Cleanup(s.Close)
	port := l.Addr().(*net.TCPAddr).Port
	withBrowser(t, "ignore-certificate-errors", "host-resolver-rules=MAP app.example 127.0.0.2", fmt.Sprintf("ip-address-space-overrides=127.0.0.2:%d=public", port))
	s.URL = fmt.Sprintf("https://app.example:%d", port)
	return s
}

// permit sets the browser's permission for pages of the internet to reach this
// machine.
func (tb *tab) permit(setting cdpbrowser.PermissionSetting) {
	tb.t.Helper()
	tb.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, cdpbrowser.SetPermission, cdpbrowser.SetPermissionParams{Permission: &cdpbrowser.PermissionDescriptor{Name: "loopback-network"}, Setting: setting})
		return err
	}))
}

// allow runs "jsbridge allow" as a user does, beside the running server.
func allow(t *testing.T, state string, args ...string) string {
	t.Helper()
	out, err := exec.Command(binary, append([]string{"allow", "--state", state}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("jsbridge allow %v: %v\n%s", args, err, out)
	}
	return string(out)
}

func TestPublicOriginWaitsForApproval(t *testing.T) {
	public := publicSite(t)
	state := filepath.Join(t.TempDir(), "state.json")
	s := serve(t, "--state", state)
	c := s.connect()
	url := public.page("/", autoPage(s.base, "far", "", who))
	tb := newTab(t)
	tb.permit(cdpbrowser.PermissionSettingGranted)
	tb.open(url)
	tb.waitState("pending")
	if reason := eval[string](tb, `mcp.getConnectionState().reason`); !strings.Contains(reason, "jsbridge allow "+public.URL) {
		t.Errorf("the page was told: %s", reason)
	}
	if got := c.pageTools(); len(got) != 0 {
		t.Errorf("a waiting page's tools are listed: %v", got)
	}
	if d := list[connections](c, "describe_tools", nil); len(d.Connections) != 0 {
		t.Errorf("a waiting page is described: %+v", d)
	}
	if _, body := s.ask("GET", "/api/origins", "", nil); !strings.Contains(body, `"waiting":[{"origin":"`+public.URL+`","pages":1`) {
		t.Errorf("the API lists %s", body)
	}

	if out := allow(t, state, public.URL+"/some/page"); !strings.Contains(out, "allowed "+public.URL) {
		t.Errorf("jsbridge allow says %s", out)
	}
	c.waitTools("far__who")
	tb.waitState("connected")
	c.ok("far__who", nil)

	// Approved is approved, also by a server that starts later.
	s.kill()
	tb.waitState("connecting")
	tb.do(chromedp.Evaluate[chromedp.Void](`states.length = 0`))
	s = serve(t, "--state", state, "--port", s.port())
	c = s.connect()
	c.waitTools("far__who")
	tb.waitState("connected")
	if eval[bool](tb, `states.some(s => s.state == 'pending')`) {
		t.Error("the page waited again after a restart")
	}

	allow(t, state, "--remove", public.URL)
	c.waitTools()
	tb.waitState("disconnected")
	if reason := eval[string](tb, `mcp.getConnectionState().reason`); !strings.Contains(reason, "refused") {
		t.Errorf("the page was told: %s", reason)
	}
}

func TestOriginIsApprovedByFlag(t *testing.T) {
	public := publicSite(t)
	s := serve(t, "--allow-origin", public.URL)
	c := s.connect()
	tb := newTab(t)
	tb.permit(cdpbrowser.PermissionSettingGranted)
	tb.open(public.page("/", autoPage(s.base, "far", `defaultChannel: 'room:far'`, who)))
	c.ok("join_channel", map[string]any{"channel": "room"})
	c.waitTools("far__who")
}

// A page from disk has no origin to approve, and says what to do.
func TestPageWithoutOrigin(t *testing.T) {
	s := serve(t)
	site := newSite(t)
	const tell = `onStateChange: (...said) => parent.postMessage(said, '*')`
	site.page("/inner", autoPage(s.base, "sandboxed", tell, who))
	tb := newTab(t).open(site.page("/", `<!doctype html><title>Outer</title><link rel=icon href="data:,">
<script>window.said = []; onmessage = ({ data }) => said.push(data)</script><iframe sandbox="allow-scripts" src="/inner"></iframe>`))
	waitFor(t, "what to do for pages without an origin", func() bool {
		return eval[bool](tb, `said.some(([state,,, reason]) => state == 'pending' && /--allow-origin null/.test(reason))`)
	})
	if res, body := s.ask("POST", "/api/origins", `{"origin":"null"}`, s.tokened()); res.StatusCode != 400 || !strings.Contains(body, "--allow-origin null") {
		t.Errorf("approving null: %d %s", res.StatusCode, body)
	}
	s = serve(t, "--allow-origin", "null")
	c := s.connect()
	site.page("/inner", autoPage(s.base, "sandboxed", "", who))
	newTab(t).open(site.URL + "/")
	c.waitTools("sandboxed__who")
}

func TestOriginsAPI(t *testing.T) {
	s := serve(t)
	post := func(origin string, header map[string]string) (int, string) {
		res, body := s.ask("POST", "/api/origins", fmt.Sprintf(`{"origin":%q}`, origin), header)
		return res.StatusCode, body
	}
	own := with(s.tokened(), "Origin", s.base, "Sec-Fetch-Site", "same-origin")
	for name, header := range map[string]map[string]string{
		"a foreign origin":      with(own, "Origin", "https://evil.example"),
		"a loopback page":       with(own, "Origin", "http://localhost:3000"),
		"no origin of its own":  with(own, "Origin", "null"),
		"a cross-site request":  with(own, "Sec-Fetch-Site", "cross-site"),
		"a same-site request":   with(own, "Sec-Fetch-Site", "same-site"),
		"a form's content type": with(own, "Content-Type", "text/plain"),
		"no content type":       {},
		"no token":              asJSON,
	} {
		if code, body := post("https://evil.example", header); code != 403 && code != 415 {
			t.Errorf("%s: %d %s", name, code, body)
		}
	}
	if _, body := s.ask("GET", "/api/origins", "", nil); body != `{"approved":[],"waiting":[]}`+"\n" {
		t.Errorf("something was approved: %s", body)
	}
	if code, body := post("https://App.example:443/page", own); code != 200 || !strings.Contains(body, `"origin":"https://app.example","added":true`) {
		t.Errorf("approving: %d %s", code, body)
	}
	for bad, want := range map[string]string{"": "https://", "http://localhost:1": "need no approval", "null": "--allow-origin", "https://*.example": "", "javascript:alert(1)": ""} {
		if code, body := post(bad, own); code != 400 || !strings.Contains(body, want) {
			t.Errorf("approving %q: %d %s", bad, code, body)
		}
	}
	if res, body := s.ask("DELETE", "/api/origins", `{"origin":"https://app.example"}`, own); res.StatusCode != 200 || !strings.Contains(body, `"removed":true`) {
		t.Errorf("removing: %d %s", res.StatusCode, body)
	}
	if res, _ := s.ask("DELETE", "/api/origins", `{"origin":"https://app.example"}`, own); res.StatusCode != 404 {
		t.Errorf("removing again: %d", res.StatusCode)
	}
	if res, _ := s.ask("PUT", "/api/origins", `{}`, own); res.StatusCode != 405 {
		t.Errorf("PUT: %d", res.StatusCode)
	}
	if res, _ := s.ask("GET", "/api/nothing", "", nil); res.StatusCode != 404 {
		t.Errorf("an unknown path: %d", res.StatusCode)
	}
}

// While the browser would ask the user, nothing is tried: each try asks again.
func TestNoRetryWhileTheBrowserAsks(t *testing.T) {
	public := publicSite(t)
	s := serve(t)
	c := s.connect()
	tb := newTab(t).open(public.page("/", fixture("Far", who, `window.tries = 0; const Native = WebSocket;
		window.WebSocket = class extends Native { constructor(...a) { super(...a); tries++ } }`)))
	tb.permit(cdpbrowser.PermissionSettingPrompt)
	tb.paste(c.ok("get_embed_snippet", map[string]any{"form": "inline"}))
	tb.waitLine("Allow it in the browser's prompt")
	if n := eval[int](tb, `new Promise(done => setTimeout(() => done(tries), 3000))`); n != 1 {
		t.Errorf("%d attempts", n)
	}
	tb.permit(cdpbrowser.PermissionSettingGranted)
	c.waitTools("far__who")
}
