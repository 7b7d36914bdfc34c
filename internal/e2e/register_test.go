package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// benchPage is a page with an object that has methods, connected under a name.
func benchPage(base, name string) string {
	return autoPage(base, name, "", `[{name: 'own', description: 'the page\'s own', fn: () => 'own'}];
window.shop = { stock: { apples: 3, count({ kind }) { return this[kind] } }, notFunction: 5 }`)
}

func add(name string, more ...string) map[string]any {
	m := map[string]any{"name": name, "description": "does " + name}
	for i := 0; i < len(more); i += 2 {
		m[more[i]] = more[i+1]
	}
	return m
}

func TestToolsAddedToARunningPage(t *testing.T) {
	s := serve(t)
	c := s.connect()
	site := newSite(t)
	tb := newTab(t).open(site.page("/", benchPage(s.base, "shop")))
	c.waitTools("shop__own")
	tb.do(chromedp.Evaluate[chromedp.Void](`window.marker = 1`))

	byPath := add("count", "path", "shop.stock.count")
	byPath["params"] = map[string]any{"kind": map[string]any{"type": "string", "description": "which fruit"}}
	if got := c.ok("register_page_tool_by_path", byPath); !strings.Contains(got, `"published":"shop__count"`) {
		t.Errorf("by path: %s", got)
	}
	byCode := add("title", "code", `await null; document.title = args.to; return window.marker + document.title`)
	byCode["params"] = map[string]any{"to": map[string]any{"type": "string"}}
	if got := c.ok("register_page_tool_by_code", byCode); !strings.Contains(got, `"published":"shop__title"`) {
		t.Errorf("by code: %s", got)
	}
	// The list has them as soon as they are confirmed.
	if got := fmt.Sprint(c.pageTools()); got != "[shop__count shop__own shop__title]" {
		t.Errorf("the list has %s", got)
	}
	if got := c.ok("shop__count", map[string]any{"kind": "apples"}); got != "3" {
		t.Errorf("by path, this is lost: %s", got)
	}
	if got := c.ok("shop__title", map[string]any{"to": "Fruit"}); got != "1Fruit" {
		t.Errorf("by code: %s", got)
	}
	if msg := c.fails("shop__count", map[string]any{"kind": []int{}}); !strings.Contains(msg, `"kind"`) {
		t.Errorf("params are not checked: %s", msg)
	}
	tb.paste(`unregister = __mcpToolBus.registerTool('pasted', ({n}) => n * 2, {description: 'doubles', params: {n: {type: 'number'}}}); 1`)
	c.waitTools("shop__count", "shop__own", "shop__pasted", "shop__title")
	if got := c.ok("shop__pasted", map[string]any{"n": 21}); got != "42" {
		t.Errorf("from the bus: %s", got)
	}
	if got := c.ok("describe_tools", nil); strings.Count(got, `"source":"dynamic"`) != 3 || !strings.Contains(got, `"origin":{"kind":"path","path":"shop.stock.count"}`) || !strings.Contains(got, `"kind":"code","code":"await null;`) {
		t.Errorf("described as %s", got)
	}

	for _, bad := range []struct {
		tool string
		args map[string]any
		want string
	}{
		{"register_page_tool_by_code", add("bad", "code", "return ("), "SyntaxError"},
		{"register_page_tool_by_path", add("bad", "path", "shop.nothing.here"), "nothing"},
		{"register_page_tool_by_path", add("bad", "path", "shop.notFunction"), "function"},
		{"register_page_tool_by_path", add("own", "path", "shop.stock.count"), "itself declares"},
		{"register_page_tool_by_code", add("title", "code", "return 1"), "unregister_page_tool"},
		{"register_page_tool_by_code", add("pasted", "code", "return 1"), "unregister_page_tool"},
		{"unregister_page_tool", map[string]any{"toolName": "own"}, "itself declares"},
		{"unregister_page_tool", map[string]any{"toolName": "never"}, "describe_tools"},
	} {
		if msg := c.fails(bad.tool, bad.args); !strings.Contains(msg, bad.want) {
			t.Errorf("%s %v: %s; want %q", bad.tool, bad.args, msg, bad.want)
		}
	}
	c.ok("unregister_page_tool", map[string]any{"toolName": "pasted"})
	c.waitTools("shop__count", "shop__own", "shop__title")

	// After a reload of the tab they are back at once, and nothing was to be told.
	c.settled()
	tb.reload()
	waitFor(t, "the reloaded page", func() bool {
		return eval[bool](tb, `window.marker === undefined && !!window.mcp && mcp.getConnectionState().state == 'connected'`)
	})
	if got, n := fmt.Sprint(c.pageTools()), c.settled(); got != "[shop__count shop__own shop__title]" || n != 0 {
		t.Errorf("after the reload: %s, %d changes", got, n)
	}
	if got := c.ok("shop__count", map[string]any{"kind": "apples"}); got != "3" {
		t.Errorf("after the reload: %s", got)
	}
	if got := c.ok("shop__title", map[string]any{"to": "Again"}); got != "undefinedAgain" {
		t.Errorf("after the reload: %s", got)
	}
	c.ok("unregister_page_tool", map[string]any{"toolName": "shop__title"})
	c.waitTools("shop__count", "shop__own")

	// Another origin in the same tab gets none of it, and on the way back they are there.
	tb.open(newSite(t).page("/", benchPage(s.base, "shop")))
	c.waitTools("shop2__own") // the name was in use when it came
	if got := c.ok("describe_tools", nil); strings.Contains(got, `"dynamic"`) {
		t.Errorf("another origin got %s", got)
	}
	tb.open(site.URL + "/")
	c.waitTools("shop__count", "shop__own")
}

func TestToolsSurviveServerAndReload(t *testing.T) {
	s := serve(t)
	c := s.connect()
	tb := newTab(t).open(newSite(t).page("/", benchPage(s.base, "shop")))
	c.waitTools("shop__own")
	c.ok("register_page_tool_by_code", add("extra", "code", "return 'extra'"))
	s.kill()
	tb.reload()
	s = serve(t, "--port", s.port())
	c = s.connect()
	// Without the server there was no connect.js: the page is loaded again.
	tb.reload()
	c.waitTools("shop__extra", "shop__own")
	if got := c.ok("shop__extra", nil); got != "extra" {
		t.Errorf("got %s", got)
	}
}

func TestPastedTabTakesTools(t *testing.T) {
	s := serve(t)
	c := s.connect()
	newTab(t).open(demo(t)).paste(c.snippet())
	c.waitTools(demoTools...)
	c.ok("register_page_tool_by_code", add("heading", "code", "return document.querySelector('h1').textContent"))
	if got := c.ok("hello_world__heading", nil); got == "" {
		t.Error("no heading")
	}
	msg := c.fails("register_page_tool_by_code", add("x", "code", "throw"))
	if !strings.Contains(msg, "SyntaxError") {
		t.Errorf("a compile error reads %s", msg)
	}
}

func TestPageForbidsCode(t *testing.T) {
	s := serve(t)
	c := s.connect()
	site := newSite(t)
	site.header("/", "Content-Security-Policy", "script-src 'self' 'unsafe-inline' http://localhost:*")
	newTab(t).open(site.page("/", benchPage(s.base, "shop")))
	c.waitTools("shop__own")
	if msg := c.fails("register_page_tool_by_code", add("x", "code", "return 1")); !strings.Contains(msg, "unsafe-eval") {
		t.Errorf("the page's policy is not named: %s", msg)
	}
	c.ok("register_page_tool_by_path", add("count", "path", "shop.stock.count"))
}

func TestCodeIsAskedFor(t *testing.T) {
	s := serve(t, "--page-code", "ask")
	c := s.connect()
	tb := newTab(t).open(newSite(t).page("/", benchPage(s.base, "shop")))
	c.waitTools("shop__own")
	for _, answer := range []string{"Refuse", "Allow"} {
		done := make(chan *mcp.CallToolResult, 1)
		go func() {
			r, err := c.CallTool(c.ctx(), &mcp.CallToolParams{Name: "register_page_tool_by_code", Arguments: add("x", "code", "return 'ran'")})
			if err != nil {
				t.Error(err)
			}
			done <- r
		}()
		var r *mcp.CallToolResult
		waitFor(t, "the answer to "+answer, func() bool {
			tb.press(answer) // too early a click does not count: the box might have popped up under the mouse
			select {
			case r = <-done:
				return true
			default:
				return false
			}
		})
		if r == nil || r.IsError == (answer == "Allow") {
			t.Errorf("after %s: %+v", answer, r)
		}
	}
	if got := c.ok("shop__x", nil); got != "ran" {
		t.Errorf("got %s", got)
	}
}

func TestCodeIsOff(t *testing.T) {
	s := serve(t)
	c := s.connect()
	newTab(t).open(newSite(t).page("/", benchPage(s.base, "shop")))
	c.waitTools("shop__own")
	c.ok("register_page_tool_by_code", add("x", "code", "return 1"))
	s.kill()
	// The page brings its tool back, which this server does not take.
	s = serve(t, "--port", s.port(), "--page-code", "off")
	c = s.connect()
	c.waitTools("shop__own")
	if msg := c.fails("register_page_tool_by_code", add("y", "code", "return 1")); !strings.Contains(msg, "--page-code") {
		t.Errorf("refused with %s", msg)
	}
	if got := c.ok("describe_tools", nil); !strings.Contains(got, "--page-code off") {
		t.Errorf("the tool left out is not explained: %s", got)
	}
}

func TestNoToolGoesToAnotherTab(t *testing.T) {
	s := serve(t)
	c := s.connect()
	site := newSite(t)
	tabs := []*tab{newTab(t).open(site.page("/1", benchPage(s.base, "one"))), newTab(t).open(site.page("/2", benchPage(s.base, "two")))}
	c.waitTools("one__own", "two__own")
	d := list[connections](c, "describe_tools", nil)
	for _, tool := range []string{"register_page_tool_by_code", "register_page_tool_by_path", "unregister_page_tool", "identify_connection"} {
		args := map[string]any{"name": "x", "description": "x", "code": "window.ran = 1", "path": "shop.stock.count", "toolName": "x"}
		msg := c.fails(tool, args)
		for _, conn := range d.Connections {
			if !strings.Contains(msg, conn.ID) {
				t.Errorf("%s without an id: %s does not list %s", tool, msg, conn.ID)
			}
		}
		args["id"] = "00000000-0000-4000-8000-000000000000"
		if msg := c.fails(tool, args); !strings.Contains(msg, "00000000-0000-4000-8000-000000000000") {
			t.Errorf("%s with an unknown id: %s", tool, msg)
		}
	}
	c.ok("register_page_tool_by_code", map[string]any{"id": d.Connections[1].ID, "name": "mark", "description": "marks", "code": "window.ran = 1"})
	c.ok(d.Connections[1].ToolPrefix+"__mark", nil)
	ran := 0
	for _, tb := range tabs {
		ran += eval[int](tb, `window.ran || 0`)
	}
	if ran != 1 || len(c.pageTools()) != 3 {
		t.Errorf("it ran in %d tabs, tools %v", ran, c.pageTools())
	}
}
