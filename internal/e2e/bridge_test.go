package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	legacypage "jsbridge/legacy-page"
)

// demo is the example page on an origin of its own.
func demo(t *testing.T) string {
	t.Helper()
	html, err := legacypage.Files.ReadFile("hello-world.html")
	if err != nil {
		t.Fatal(err)
	}
	return newSite(t).page("/hello-world.html", string(html))
}

var demoTools = []string{"hello_world__insert_main", "hello_world__insert_title", "hello_world__run_transient"}

// drain counts the list changes that arrived so far.
func (c *client) drain() int {
	for n := 0; ; n++ {
		select {
		case <-c.changed:
		default:
			return n
		}
	}
}

func TestPastedSnippetMakesTools(t *testing.T) {
	s := serve(t)
	c, other := s.connect(), s.connect()
	if got := c.pageTools(); len(got) != 0 {
		t.Fatalf("a new session has page tools: %v", got)
	}
	for _, b := range []string{"call_page_tool", "describe_tools", "get_embed_snippet", "identify_connection"} {
		if c.tool(b) == nil {
			t.Errorf("built-in %s is missing", b)
		}
	}
	line := c.snippet()
	if want := `import("` + s.base + `/main.js?server=`; !strings.HasPrefix(line, want) || line != c.snippet() {
		t.Errorf("snippet %q, want one steady line that starts with %q", line, want)
	}
	tb := newTab(t).open(demo(t)).paste(line)
	<-c.changed
	c.waitTools(demoTools...)
	tb.do(chromedp.Evaluate[chromedp.Void](`window.marker = 1`))
	c.ok("hello_world__insert_title", map[string]any{"title": "Hello <b>from</b> MCP"})
	if got := eval[string](tb, `document.querySelector('h1').textContent + window.marker`); got != "Hello <b>from</b> MCP1" {
		t.Errorf("the heading and the marker are %q", got)
	}
	if got := c.ok("call_page_tool", map[string]any{"name": "hello_world__run_transient", "arguments": map[string]any{"code": "return await args.n + 1", "args": map[string]any{"n": 2}}}); got != "3" {
		t.Errorf("call_page_tool gave %q", got)
	}
	if n := c.drain(); n != 0 {
		t.Errorf("%d list changes too many", n)
	}
	if got := other.pageTools(); len(got) != 0 || other.drain() != 0 {
		t.Errorf("another session sees %v", got)
	}
}

func TestTwoTabsOfOneSnippet(t *testing.T) {
	s := serve(t)
	c := s.connect()
	url := demo(t)
	a := newTab(t).open(url).paste(c.snippet())
	c.waitTools(demoTools...)
	b := newTab(t).open(url).paste(c.snippet())
	second := []string{"hello_world2__insert_main", "hello_world2__insert_title", "hello_world2__run_transient"}
	c.waitTools(append(second, demoTools...)...)
	c.ok("hello_world__insert_title", map[string]any{"title": "first"})
	c.ok("hello_world2__insert_title", map[string]any{"title": "second"})
	for tb, want := range map[*tab]string{a: "first", b: "second"} {
		if got := eval[string](tb, `document.querySelector('h1').textContent`); got != want {
			t.Errorf("heading %q, want %q", got, want)
		}
	}
	r := c.call("describe_tools", nil)
	conns := r.StructuredContent.(map[string]any)["connections"].([]any)
	if len(conns) != 2 || conns[0].(map[string]any)["id"] == conns[1].(map[string]any)["id"] {
		t.Errorf("describe_tools lists %v", conns)
	}
	if msg := c.fails("identify_connection", nil); !strings.Contains(msg, "2 pages") {
		t.Errorf("with two tabs and no id: %s", msg)
	}
	if msg := c.fails("identify_connection", map[string]any{"id": "nonsense"}); !strings.Contains(msg, "nonsense") {
		t.Errorf("with an unknown id: %s", msg)
	}
	c.ok("identify_connection", map[string]any{"id": conns[1].(map[string]any)["id"]})
	a.shut()
	c.waitTools(second...)
	c.ok("hello_world2__insert_title", map[string]any{"title": "still second"})
	if got := eval[string](b, `document.querySelector('h1').textContent`); got != "still second" {
		t.Errorf("heading %q", got)
	}
	if msg := c.fails("hello_world__insert_title", map[string]any{"title": "x"}); !strings.Contains(msg, "left") || !strings.Contains(msg, "hello_world2__") {
		t.Errorf("tool of a tab that left: %s", msg)
	}
}

func TestReloadKeepsThePrefix(t *testing.T) {
	s := serve(t)
	c := s.connect()
	site := newSite(t)
	url := site.page("/", fixture("App", `[{name:'count', description:'counts', fn: () => { localStorage.n = 1 + Number(localStorage.n || 0); return localStorage.n }}]`, c.snippet()))
	tb := newTab(t).open(url)
	<-c.changed
	c.waitTools("app__count")
	for i := 1; i <= 5; i++ {
		// The call runs into the reload: before, during or after it.
		var wg sync.WaitGroup
		var got string
		wg.Go(func() { got = c.ok("app__count", nil) })
		tb.do(chromedp.Reload())
		wg.Wait()
		if got != fmt.Sprint(i) || eval[string](tb, `localStorage.n`) != fmt.Sprint(i) {
			t.Fatalf("call %d gave %s, and the page has counted %s calls", i, got, eval[string](tb, `localStorage.n`))
		}
	}
	if n := c.drain(); n != 0 {
		t.Errorf("%d list changes over reloads", n)
	}
	c.waitTools("app__count")
}

const slowTools = `[{name:'slow', description:'never ends by itself', fn: (_, ctx) => new Promise((ok, no) => { window.running = 1 + (window.running || 0); window.release = ok; ctx.signal.addEventListener('abort', () => { window.aborted = String(ctx.signal.reason); no(ctx.signal.reason) }) })},
	{name:'quick', description:'answers', fn: () => 'quick'}]`

// inFlight begins a call and waits until it runs in the page.
func inFlight(c *client, tb *tab, name string) <-chan *mcp.CallToolResult {
	done := make(chan *mcp.CallToolResult, 1)
	before := eval[int](tb, `window.running || 0`)
	go func() { done <- c.call(name, nil) }()
	waitFor(c.t, "the call to run", func() bool { return eval[int](tb, `window.running || 0`) > before })
	return done
}

func TestPageGoneInMidCall(t *testing.T) {
	s := serve(t)
	c := s.connect()
	site := newSite(t)
	url := site.page("/", fixture("Slow", slowTools, ""))
	away := site.page("/away", "<title>away</title>")
	stays := newTab(t).open(url).paste(c.snippet())
	c.waitTools("slow__quick", "slow__slow")
	other := inFlight(c, stays, "slow__slow")

	for name, leave := range map[string]func(*tab){
		"closed":    func(tb *tab) { tb.shut() },
		"navigated": func(tb *tab) { tb.open(away) },
		"reloaded":  func(tb *tab) { tb.do(chromedp.Reload()) },
	} {
		tb := newTab(t).open(url).paste(c.snippet())
		c.waitTools("slow__quick", "slow__slow", "slow2__quick", "slow2__slow")
		done := inFlight(c, tb, "slow2__slow")
		go leave(tb)
		select {
		case r := <-done:
			if msg := text(t, r); !r.IsError || !strings.Contains(msg, "may have run") || !strings.Contains(msg, "slow2") {
				t.Errorf("%s: %s", name, msg)
			}
		case <-time.After(patience):
			t.Fatalf("%s: the call hangs", name)
		}
		c.waitTools("slow__quick", "slow__slow")
	}
	select {
	case r := <-other:
		t.Fatalf("another tab's call ended: %s", text(t, r))
	default:
	}
	stays.do(chromedp.Evaluate[chromedp.Void](`release('released')`))
	if r := <-other; r.IsError || text(t, r) != "released" {
		t.Errorf("another tab's call: %s", text(t, r))
	}
}

func TestBackForwardCache(t *testing.T) {
	s := serve(t)
	c := s.connect()
	site := newSite(t)
	url := site.page("/", fixture("Cached", slowTools, ""))
	away := site.page("/away", "<title>away</title>")
	tb := newTab(t).open(url).paste(c.snippet())
	c.waitTools("cached__quick", "cached__slow")
	tb.do(chromedp.Evaluate[chromedp.Void](`window.marker = 1`))
	tb.open(away)
	c.waitTools()
	// Not chromedp.NavigateBack: a cached page comes back without a load event.
	tb.paste(`history.back()`)
	c.waitTools("cached__quick", "cached__slow")
	if got := c.ok("cached__quick", nil); got != "quick" {
		t.Errorf("after back: %s", got)
	}
	if eval[int](tb, `window.marker || 0`) != 1 {
		t.Log("the page was loaded afresh: this Chromium did not cache it")
	}
}

func lifecycle(tb *tab, state page.SetWebLifecycleStateState) {
	tb.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, page.SetWebLifecycleState, page.SetWebLifecycleStateParams{State: state})
		return err
	}))
}

func TestFrozenTab(t *testing.T) {
	s := serve(t)
	c := s.connect()
	tb := newTab(t).open(newSite(t).page("/", fixture("Frozen", slowTools, ""))).paste(c.snippet())
	c.waitTools("frozen__quick", "frozen__slow")
	lifecycle(tb, "frozen")
	begun := time.Now()
	msg := c.fails("frozen__quick", nil)
	if !strings.Contains(msg, "frozen") || !strings.Contains(msg, "Bring that tab to the front") {
		t.Errorf("message: %s", msg)
	}
	t.Logf("noticed after %s", time.Since(begun).Round(10*time.Millisecond))
	lifecycle(tb, "active")
	waitFor(t, "the page to answer again", func() bool { return !c.call("frozen__quick", nil).IsError })
	c.waitTools("frozen__quick", "frozen__slow")
}

func TestCancelFiresTheSignal(t *testing.T) {
	s := serve(t, "--call-timeout", "4s")
	c := s.connect()
	tb := newTab(t).open(newSite(t).page("/", fixture("Cancel", slowTools, ""))).paste(c.snippet())
	c.waitTools("cancel__quick", "cancel__slow")
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		_, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "cancel__slow"})
		done <- err
	}()
	waitFor(t, "the call to run", func() bool { return eval[int](tb, `window.running || 0`) == 1 })
	cancel()
	if err := <-done; err == nil {
		t.Error("the cancelled call has a result")
	}
	waitFor(t, "the abort", func() bool { return strings.Contains(eval[string](tb, `window.aborted || ''`), "cancel") })

	msg := c.fails("cancel__slow", nil)
	for _, want := range []string{`"slow"`, `"Cancel"`, "4 s"} {
		if !strings.Contains(msg, want) {
			t.Errorf("%q does not name %s", msg, want)
		}
	}
}

func TestSameNamedTabs(t *testing.T) {
	s := serve(t)
	c := s.connect()
	site := newSite(t)
	tabs := map[string]*tab{}
	for i, prefix := range []string{"same", "same2", "same3"} {
		url := site.page(fmt.Sprintf("/%d", i), fixture("Same", fmt.Sprintf(`[{name:'which', description:'', fn: () => '%s'}]`, prefix), c.snippet()))
		tabs[prefix] = newTab(t).open(url)
		waitFor(t, prefix, func() bool { return c.tool(prefix+"__which") != nil })
	}
	tabs["same"].shut()
	c.waitTools("same2__which", "same3__which")
	for _, prefix := range []string{"same2", "same3"} {
		if got := c.ok(prefix+"__which", nil); got != prefix {
			t.Errorf("%s__which reached %s", prefix, got)
		}
	}
	tabs["same2"].do(chromedp.Evaluate[chromedp.Void](`window.__mcpTools = [{name:'which', description:'now better', params:{n:'number'}, fn: ({n}) => n}]; undefined`))
	waitFor(t, "the new description", func() bool {
		tool := c.tool("same2__which")
		return tool != nil && strings.HasPrefix(tool.Description, "now better") && strings.Contains(fmt.Sprint(tool.InputSchema), "number")
	})
	tabs["same2"].do(chromedp.Evaluate[chromedp.Void](`window.__mcpTools.push({name:'more', description:'', fn: () => 1}); undefined`))
	c.waitTools("same2__more", "same2__which", "same3__which")
	if got := c.ok("same2__which", map[string]any{"n": "5"}); got != "5" {
		t.Errorf("got %s", got)
	}
	if msg := c.fails("same2__which", map[string]any{"n": "12px"}); !strings.Contains(msg, `"n"`) {
		t.Errorf("a bad argument is not named: %s", msg)
	}
}

func TestContentSecurityPolicy(t *testing.T) {
	s := serve(t)
	c := s.connect()
	site := newSite(t)
	url := site.page("/", fixture("CSP", `[{name:'x', description:'', fn: () => 1}]`, ""))
	site.header("/", "Content-Security-Policy", "connect-src 'self'")
	tb := newTab(t).open(url).paste(c.snippet())
	tb.waitLine("[jsbridge]")
	want := strings.Replace(s.base, "http", "ws", 1)
	lines := tb.lines("[jsbridge]")
	if len(lines) != 1 || !strings.Contains(lines[0], want) {
		t.Errorf("console: %q, want one line that says to add %s", lines, want)
	}
	attempts := eval[int](tb, `new Promise(done => { let n = 0; document.addEventListener('securitypolicyviolation', () => n++); setTimeout(() => done(n), 2500) })`)
	if attempts != 0 {
		t.Errorf("%d more attempts", attempts)
	}
}

func TestParallelCallsAnsweredInReverse(t *testing.T) {
	s := serve(t)
	clients := []*client{s.connect()}
	// Three sessions reach one tab: each pastes its own snippet into a frame.
	site := newSite(t)
	const each = 67
	tools := fmt.Sprintf(`[{name:'late', description:'', params:{n:'number'}, fn: ({n}) => new Promise(done => {
		const all = parent.waiting || (parent.waiting = []);
		all.push(() => done(n));
		if (all.length === %d) for (const f of all.reverse()) f();
	})}]`, 3*each)
	clients = append(clients, s.connect(), s.connect())
	frames := ""
	for i, c := range clients {
		frames += `<iframe src="` + site.page(fmt.Sprintf("/frame%d", i), fixture("Late", tools, c.snippet())) + `"></iframe>`
	}
	newTab(t).open(site.page("/", "<title>frames</title>"+frames))
	var wg sync.WaitGroup
	for i, c := range clients {
		c.waitTools("late__late")
		for n := range each {
			wg.Go(func() {
				want := i*1000 + n
				if got := c.ok("late__late", map[string]any{"n": want}); got != fmt.Sprint(want) {
					t.Errorf("asked for %d, got %s", want, got)
				}
			})
		}
	}
	wg.Wait()
}
