package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	legacypage "jsbridge/legacy-page"
)

// autoPage is a page that connects by connect.js. It keeps its sockets in
// window.sockets and what it was told of its state in window.states.
func autoPage(base, appName, options, tools string) string {
	return fmt.Sprintf(`<!doctype html><title>Auto</title><link rel=icon href="data:,">
<script>
const Native = WebSocket;
window.sockets = [];
window.WebSocket = class extends Native { constructor(...a) { super(...a); sockets.push(this) } };
window.states = [];
window.__mcpTools = %s;
</script>
<script type="module">
const { createMcpConnect } = await import('%s/connect.js');
window.mcp = createMcpConnect({ appName: '%s', onStateChange: (state, channel, label, reason) => states.push({ state, channel, label, reason }), %s });
mcp.init();
</script>`, tools, base, appName, options)
}

// who tells the tab's loads apart.
const who = `[{name: 'who', description: 'says which load of the page this is', fn: () => String(performance.timeOrigin)}]`

func (tb *tab) state() string {
	tb.t.Helper()
	return eval[string](tb, `window.mcp ? mcp.getConnectionState().state : 'none'`)
}

func (tb *tab) waitState(want string) {
	tb.t.Helper()
	waitFor(tb.t, "state "+want, func() bool { return tb.state() == want })
}

func (tb *tab) reload() {
	tb.t.Helper()
	tb.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, page.Reload, page.ReloadParams{})
		return err
	}))
}

// openSockets counts the page's sockets that are not closed.
func (tb *tab) openSockets() int {
	tb.t.Helper()
	return eval[int](tb, `sockets.filter(s => s.readyState < 2).length`)
}

// list calls a built-in and decodes its text.
func list[T any](c *client, name string, args any) T {
	c.t.Helper()
	var v T
	if err := json.Unmarshal([]byte(c.ok(name, args)), &v); err != nil {
		c.t.Fatal(err)
	}
	return v
}

type connections struct {
	Connections []struct{ ID, Label, ToolPrefix, Scope, Origin, State string }
}

func TestRootConnection(t *testing.T) {
	s := serve(t)
	before := s.connect()
	site := newSite(t)
	tb := newTab(t).open(site.page("/", autoPage(s.base, "my-app", "", who)))
	before.waitTools("my_app__who")
	after := s.connect()
	after.waitTools("my_app__who")
	tb.waitState("connected")
	d := list[connections](before, "describe_connection", map[string]any{"name": "my-app"})
	if len(d.Connections) != 1 || d.Connections[0].ToolPrefix != "my_app" || d.Connections[0].Scope != "root" || d.Connections[0].Origin != site.URL {
		t.Errorf("described as %+v", d)
	}
	first := after.ok("my_app__who", nil)
	before.settled()
	after.settled()
	tb.reload()
	// The call waits for the page to be back.
	waitFor(t, "the reloaded page's answer", func() bool { return after.ok("my_app__who", nil) != first })
	if n := before.settled() + after.settled(); n != 0 {
		t.Errorf("the reload made %d list changes", n)
	}
	before.waitTools("my_app__who")
}

func TestTwoAppsInOneChannel(t *testing.T) {
	s := serve(t)
	in, out := s.connect(), s.connect()
	site := newSite(t)
	for _, name := range []string{"htmlpaint", "bulletino"} {
		newTab(t).open(site.page("/"+name, autoPage(s.base, name, `defaultChannel: 'bug123:`+name+`'`, who)))
	}
	waitFor(t, "the channel of two", func() bool { return strings.Count(in.ok("list_channels", nil), "toolCount") == 2 })
	if got := in.pageTools(); len(got) != 0 {
		t.Errorf("a session that did not join sees %v", got)
	}
	in.ok("join_channel", map[string]any{"channel": "bug123"})
	in.waitTools("bulletino__who", "htmlpaint__who")
	if a, b := in.ok("bulletino__who", nil), in.ok("htmlpaint__who", nil); a == b {
		t.Error("two names reached one tab")
	}
	if got := out.pageTools(); len(got) != 0 {
		t.Errorf("another session sees %v", got)
	}
	in.ok("leave_channel", map[string]any{"channel": "bug123"})
	in.waitTools()
	in.ok("join_channel", map[string]any{"channel": "bug123"})
	in.waitTools("bulletino__who", "htmlpaint__who")
	in.ok("join_channel", map[string]any{"channel": ""})
	in.waitTools()
}

func TestSwitchChannelByClick(t *testing.T) {
	s := serve(t)
	c := s.connect()
	for _, channel := range []string{"one", "two"} {
		c.ok("join_channel", map[string]any{"channel": channel})
	}
	tb := newTab(t).open(newSite(t).page("/", autoPage(s.base, "paint", "", who)))
	c.waitTools("paint__who")
	tb.waitState("connected")
	click := func(answer string) {
		tb.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`window.prompt = () => %q; mcp.handleConnectClick()`, answer)))
	}
	click("one:brush")
	c.waitTools("brush__who")
	tb.waitState("connected")
	click("two:pen")
	c.waitTools("pen__who")
	tb.waitState("connected")
	if n := tb.openSockets(); n != 1 {
		t.Errorf("%d sockets are open", n)
	}
	if got := c.ok("list_channels", nil); strings.Contains(got, `"one"`) {
		t.Errorf("the old channel is still there: %s", got)
	}
	tb.reload()
	waitFor(t, "the reloaded page", func() bool { return tb.state() == "connected" })
	c.waitTools("pen__who")
	if got := eval[string](tb, `mcp.getConnectionState().channel`); got != "two:pen" {
		t.Errorf("after the reload the page is in %q", got)
	}
	tb.do(chromedp.Evaluate[chromedp.Void](`mcp.disconnect()`))
	c.waitTools()
	if tb.state() != "disconnected" || tb.openSockets() != 0 {
		t.Errorf("disconnected: state %s, %d sockets", tb.state(), tb.openSockets())
	}
}

func TestClosedTabLeavesNothing(t *testing.T) {
	s := serve(t, "TENANT_EMPTY_TIMEOUT_MS=300", "--reconnect-grace", "200ms")
	c := s.connect()
	c.ok("join_channel", map[string]any{"channel": "room"})
	tb := newTab(t).open(newSite(t).page("/", autoPage(s.base, "app", `defaultChannel: 'room:'`, who)))
	c.waitTools("app__who")
	tb.shut()
	c.waitTools()
	waitFor(t, "the channel's end", func() bool { return c.ok("list_channels", nil) == "[]" })
	newTab(t).open(newSite(t).page("/", autoPage(s.base, "app", `defaultChannel: 'room:'`, who)))
	c.waitTools("app__who")
}

func TestServerIsKilled(t *testing.T) {
	s := serve(t)
	c := s.connect()
	c.ok("join_channel", map[string]any{"channel": "room"})
	site := newSite(t)
	root := newTab(t).open(site.page("/root", autoPage(s.base, "root-app", "", who)))
	newTab(t).open(site.page("/room", autoPage(s.base, "room-app", `defaultChannel: 'room:room-app'`, who)))
	baked := strings.ReplaceAll(c.ok("get_embed_snippet", map[string]any{"connect": "baked", "form": "script"}), "\n", "")
	newTab(t).open(site.page("/baked", `<!doctype html><title>Baked</title><link rel=icon href="data:,"><script>window.__mcpTools = `+who+`</script>`+baked))
	c.waitTools("baked__who", "room_app__who", "root_app__who")
	root.do(chromedp.Evaluate[chromedp.Void](`__mcpRename('Left tab')`)) // stays too
	all := []string{"baked__who", "left_tab__who", "room_app__who"}
	c.waitTools(all...)
	s.kill()
	root.waitState("connecting")
	s = serve(t, "--port", s.port())
	c = s.connect()
	c.ok("join_channel", map[string]any{"channel": "room"})
	c.waitTools(all...)
	root.waitState("connected")
	if d := list[connections](c, "describe_tools", nil); len(d.Connections) != 3 {
		t.Errorf("describe_tools has %+v", d)
	}
	c.ok("left_tab__who", nil)
}

func TestOneSocketWhateverIsImportedTwice(t *testing.T) {
	s := serve(t)
	c := s.connect()
	tb := newTab(t).open(newSite(t).page("/", autoPage(s.base, "app", "", who)))
	c.waitTools("app__who")
	tb.waitState("connected")
	eval[bool](tb, fmt.Sprintf(`(async () => {
		for (const n of [1, 2]) {
			const { createMcpConnect } = await import('%[1]s/connect.js?again=' + n);
			createMcpConnect({ appName: 'app' }).init();
			const { connectMcpBridge } = await import('%[1]s/client.js?again=' + n);
			connectMcpBridge({ appName: 'app' });
			await import('%[1]s/tool-bus.js?again=' + n);
		}
		await import('%[1]s/main.js?server=' + encodeURIComponent('%[1]s') + '&tenant=app&again=1');
		return true;
	})()`, s.base))
	if n := eval[int](tb, `sockets.length`); n != 1 {
		t.Errorf("%d sockets were opened", n)
	}
	c.waitTools("app__who")
	if tb.state() != "connected" {
		t.Errorf("the state is %s", tb.state())
	}
}

// A server that is down is not hammered, and everybody is back soon after it is.
func TestServerIsDownForAMinute(t *testing.T) {
	const tabs, down = 20, time.Minute
	s := serve(t)
	c := s.connect()
	site := newSite(t)
	var all []*tab
	var names []string
	for i := range tabs {
		name := fmt.Sprintf("tab%d", i)
		all = append(all, newTab(t).open(site.page("/"+name, autoPage(s.base, name, "", who))))
		names = append(names, name+"__who")
	}
	c.waitTools(names...)
	s.kill()
	for _, tb := range all {
		tb.waitState("connecting")
	}
	<-time.After(down) // this is what is tested, not a wait for something
	attempts := map[int]bool{}
	total := 0
	for i, tb := range all {
		n := eval[int](tb, `sockets.length`) - 1
		total += n
		attempts[n] = true
		// Full jitter from 0.5 to 30 s: about nine in a minute, seldom 20.
		if n > 25 {
			t.Errorf("tab %d tried %d times", i, n)
		}
		if lines := tb.lines("[jsbridge]"); len(lines) > 3 {
			t.Errorf("tab %d has %d console lines: %q", i, len(lines), lines)
		}
	}
	t.Logf("%d attempts of %d tabs in %s", total, tabs, down)
	if total > 15*tabs || len(attempts) < 3 {
		t.Errorf("%d attempts, %d different counts: want them few and spread", total, len(attempts))
	}
	s = serve(t, "--port", s.port())
	c = s.connect()
	limit := time.Now().Add(2 * patience) // the longest pause is 30 s
	for len(c.pageTools()) < tabs && time.Now().Before(limit) {
		<-time.After(100 * time.Millisecond)
	}
	c.waitTools(names...)
}

func TestAutoConnectExample(t *testing.T) {
	html, err := legacypage.Files.ReadFile("auto-connect.html")
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t)
	c := s.connect()
	url := newSite(t).page("/auto-connect.html", string(html)) + "?server=" + s.base
	tb := newTab(t).open(url)
	button := func(want string) {
		waitFor(t, "the button "+want, func() bool { return eval[string](tb, `document.querySelector('#connect').textContent`) == want })
	}
	button("🟢 connected")
	c.waitTools("notes__add_note", "notes__list_notes", "notes__remove_note")
	c.ok("notes__add_note", map[string]any{"text": "from <b>MCP</b>"})
	if got := eval[string](tb, `document.querySelector('li').textContent`); got != "from <b>MCP</b>" {
		t.Errorf("the note is %q", got)
	}
	s.kill()
	button("🟡 connecting")
	s = serve(t, "--port", s.port())
	button("🟢 connected")
	s.kill()
	// Loaded without a server, the page works, and says what to do.
	tb.open(url)
	button("⚪ disconnected")
	serve(t, "--port", s.port())
	tb.do(chromedp.Evaluate[chromedp.Void](`document.querySelector('#connect').click()`))
	button("🟢 connected")
	if got := eval[string](tb, `document.querySelector('#status').textContent`); got == "" {
		t.Error("the state has no text")
	}
}

// A named workspace's line outlives clients and servers, so a page that has it
// baked in comes back by itself.
func TestWorkspaceOutlivesClientAndServer(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state.json")
	s := serve(t, "--state", state)
	c := s.connectTo("/mcp/my-project")
	line := c.snippet()
	newTab(t).open(newSite(t).page("/", fixture("Baked", who, line)))
	c.waitTools("baked__who")
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	again := s.connectTo("/mcp/my-project")
	again.waitTools("baked__who")
	if now := again.snippet(); now != line {
		t.Errorf("the line was %s and is %s", line, now)
	}
	for _, path := range []string{"/mcp", "/mcp/other"} {
		if got := s.connectTo(path).pageTools(); len(got) != 0 {
			t.Errorf("%s sees %v", path, got)
		}
	}
	s.kill()
	s = serve(t, "--state", state, "--port", s.port())
	c = s.connectTo("/mcp/my-project")
	c.waitTools("baked__who")
	c.ok("baked__who", nil)
	if res, body := s.ask("POST", "/mcp/no%20key", initialize, asJSON); !strings.Contains(body, "letters, digits") {
		t.Errorf("a bad name: %d %s", res.StatusCode, body)
	}
}
