package e2e

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	legacypage "jsbridge/legacy-page"
)

// One bad tool hides no other: the good ones work, and of the bad ones the page's
// developer, the agent and the server's log have the reason.
func TestOneBadToolHidesNoOther(t *testing.T) {
	s := serve(t)
	c := s.connect()
	tb := newTab(t).open(newSite(t).page("/", fixture("Five", `[
		{name: 'one', description: '', fn: () => 'one'}, {name: 'nullparams', description: '', params: null, fn: () => 0},
		{name: 'rows', description: '', params: {rows: {type: 'array'}}, fn: ({rows}) => rows.length}, {name: 'nofn', description: ''},
		{name: 7, description: '', fn: () => 0}, {name: 'objectdescription', description: {a: 1}, fn: () => 0},
		{name: 'circular', description: '', get inputSchema() { return this }, fn: () => 0}, {name: 'oddtype', description: '', params: {a: {type: 'sometype'}}, fn: () => 0},
		null, {name: 'last', description: '', fn: () => 'last'}]`, ""))).paste(c.snippet())
	c.waitTools("five__last", "five__one", "five__rows")
	for name, want := range map[string]string{"one": "one", "last": "last", "rows": "2"} {
		if got := c.ok("five__"+name, map[string]any{"rows": []int{1, 2}}); got != want {
			t.Errorf("%s gave %s", name, got)
		}
	}
	d := list[struct {
		Connections []struct {
			Problems []struct {
				Name, Reason string
				Index        int
			}
		}
	}](c, "describe_tools", nil)
	var found []int
	for _, p := range d.Connections[0].Problems {
		found = append(found, p.Index)
		if p.Reason == "" {
			t.Errorf("no reason: %+v", p)
		}
		tb.waitLine(strings.Join(strings.Fields(p.Reason), " "))
		if said := fmt.Sprintf("%q", p.Reason); !strings.Contains(s.log.String(), said[1:len(said)-1]) {
			t.Errorf("the log has not %s", said)
		}
	}
	if lines := tb.lines("[jsbridge] tool"); len(lines) != len(found) {
		t.Errorf("each is to be told once, in one line: %q", lines)
	}
	if slices.Sort(found); !slices.Equal(found, []int{1, 3, 4, 5, 6, 7, 8}) {
		t.Errorf("problems: %+v", d.Connections[0].Problems)
	}
}

// What a function may give back by mistake, beside the rows of TestResults.
const oddTools = `[
	['list', () => []], ['record', () => ({})], ['func', () => function save() {}], ['symbol', () => Symbol('s')],
	['win', () => window], ['element', () => document.body], ['fibre', () => { const f = {tag: 5, stateNode: document.body}; f.alternate = {tag: 5, alternate: f}; f.child = {return: f}; return f }],
	['tojson', () => ({toJSON() { throw Error('never') }})], ['proxy', () => new Proxy({}, {ownKeys() { throw Error('mine') }})],
	['endless', () => { let n = 0; const next = () => ({n: ++n, get next() { return next() }}); return next() }],
	['later', () => new Promise(done => setTimeout(done, 300, 'later'))], ['thenable', () => ({then: (done) => setTimeout(done, 10, {a: 1})})],
	['never', () => Promise.reject(new Error('no row r9'))], ['badthen', () => ({then: (_, no) => no(new TypeError('not so'))})], ['throws', () => { throw new Error('no row r9') }],
	['generator', function* () { yield 1 }], ['response', () => new Response('{}', {status: 404})], ['nested', () => ({p: Promise.resolve(1)})],
].map(([name, fn]) => ({name, description: '', fn}))`

func TestOddReturnValues(t *testing.T) {
	s := serve(t)
	c := s.connect()
	newTab(t).open(newSite(t).page("/", fixture("Odd", oddTools, c.snippet())))
	waitFor(t, "tools", func() bool { return c.tool("odd__nested") != nil })
	for name, want := range map[string]string{
		"list": "[]", "record": "{}", "func": "[function save]", "symbol": "Symbol(s)", "later": "later", "thenable": `{"a":1}`,
		"generator": "[Generator]", "response": "[Response]", "nested": `{"p":"[Promise]"}`,
	} {
		if got := c.ok("odd__"+name, nil); got != want {
			t.Errorf("%s gave %s, want %s", name, got, want)
		}
	}
	for name, part := range map[string]string{"win": "Window", "element": "BODY", "fibre": "circular", "tojson": "never", "proxy": "mine", "endless": "too deep"} {
		if got := c.ok("odd__"+name, nil); !strings.Contains(got, part) || len(got) > 10<<20 {
			t.Errorf("%s gave %d bytes: %.300s; want %s in it", name, len(got), got, part)
		}
	}
	// The message alone: no stack, and with it no path.
	for name, want := range map[string]string{"never": "no row r9", "throws": "no row r9", "badthen": "not so"} {
		if got := c.fails("odd__"+name, nil); got != want {
			t.Errorf("%s failed with %q, want %q", name, got, want)
		}
	}
}

// A tool may leave its own page. The call ends at once, with the answer if that was
// out before, and what the next page offers is there.
func TestToolNavigatesItsOwnPage(t *testing.T) {
	s := serve(t)
	c := s.connect()
	site := newSite(t)
	next := site.page("/next", fixture("Next", `[{name: 'here', description: '', fn: () => location.pathname}]`, c.snippet()))
	start := site.page("/start", fixture("Start", fmt.Sprintf(`[
		{name: 'answers', description: '', fn: () => { setTimeout(() => { location.href = %[1]q }, 100); return 'going' }},
		{name: 'assigns', description: '', fn: () => { location.href = %[1]q; return 'going' }},
		{name: 'waits', description: '', async fn() { location.href = %[1]q; await new Promise(() => {}) }},
		{name: 'submits', description: '', fn: () => { const f = document.createElement('form'); f.action = %[1]q; document.body.append(f); f.submit(); return new Promise(() => {}) }},
		{name: 'reloads', description: '', fn: () => { location.reload(); return new Promise(() => {}) }}]`, next), c.snippet()))
	tb := newTab(t)
	for _, name := range []string{"answers", "assigns", "waits", "submits", "reloads"} {
		tb.open(start)
		c.waitTools("start__answers", "start__assigns", "start__reloads", "start__submits", "start__waits")
		r := c.call("start__"+name, nil)
		delivered, gone := !r.IsError && text(t, r) == "going", r.IsError && strings.Contains(text(t, r), "may have run")
		switch name {
		case "answers":
			gone = delivered
		case "assigns": // whether the answer is out before the page is left is the browser's affair
			gone = gone || delivered
		}
		if !gone {
			t.Errorf("%s: error %v, %s", name, r.IsError, text(t, r))
		}
		if name == "reloads" {
			continue
		}
		// The tab keeps its prefix.
		c.waitTools("start__here")
		if got := c.ok("start__here", nil); got != "/next" {
			t.Errorf("after %s the next page said %s", name, got)
		}
	}
	c.waitTools("start__answers", "start__assigns", "start__reloads", "start__submits", "start__waits")
}

// A page that allows nothing but its own: the line can't load there, all of the script
// pasted runs, and says what the page would have to allow.
func TestPolicyThatAllowsNothing(t *testing.T) {
	s := serve(t)
	c := s.connect()
	site := newSite(t)
	url := site.page("/", "<title>Strict</title>")
	site.header("/", "Content-Security-Policy", "default-src 'self'")
	tb := newTab(t).open(url)
	tb.do(chromedp.Evaluate[chromedp.Void](`import("` + s.base + `/main.js").catch(() => {}); undefined`))
	tb.waitLine("script-src")
	tb.paste(c.ok("get_embed_snippet", map[string]any{"form": "inline"}))
	tb.waitLine("[jsbridge]")
	if lines := tb.lines("[jsbridge]"); len(lines) != 1 || !strings.Contains(lines[0], "connect-src") || !strings.Contains(lines[0], strings.Replace(s.base, "http", "ws", 1)) {
		t.Errorf("console: %q", lines)
	}
}

// A page that was opened from disk has no origin. A session's line is enough for it; a
// name it gets only if --allow-origin null says so, and it is told that.
func TestPageFromDisk(t *testing.T) {
	html, err := legacypage.Files.ReadFile("hello-world.html")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "hello-world.html")
	if err := os.WriteFile(file, html, 0o600); err != nil {
		t.Fatal(err)
	}
	page := (&url.URL{Scheme: "file", Path: filepath.ToSlash(file)}).String()
	s := serve(t)
	c := s.connect()
	tb := newTab(t).open(page).paste(c.snippet())
	c.waitTools(demoTools...)
	c.ok("hello_world__insert_title", map[string]any{"title": "From disk"})
	if got := eval[string](tb, `document.querySelector('h1').textContent`); got != "From disk" {
		t.Errorf("the heading is %q", got)
	}
	var d connections
	if err := json.Unmarshal([]byte(c.ok("describe_tools", nil)), &d); err != nil || d.Connections[0].Origin != "null" {
		t.Errorf("described as %+v, %v", d, err)
	}
	if tool := c.tool("hello_world__insert_title"); !strings.Contains(tool.Description, "opaque origin") {
		t.Errorf("attributed as %q", tool.Description)
	}
	named := newTab(t).open(page).paste(c.ok("get_embed_snippet", map[string]any{"connect": "disk"}))
	named.waitLine("--allow-origin null")
	c.waitTools(demoTools...)
}

// An MCP client may be a page on a loopback origin, as the Inspector's is. What the
// browser lets it do is up to the headers.
func TestBrowserClientOnALoopbackOrigin(t *testing.T) {
	s := serve(t)
	tb := newTab(t).open(newSite(t).page("/", "<title>Client</title><link rel=icon href='data:,'>"))
	got := eval[[]any](tb, `(async () => {
		const url = '`+s.base+`/mcp';
		const post = (body, headers) => fetch(url, { method: 'POST', body: JSON.stringify({ jsonrpc: '2.0', id: 1, ...body }),
			headers: { 'Content-Type': 'application/json', Accept: 'application/json', ...headers } });
		const begun = await post({ method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'page', version: '1' } } });
		const session = { 'Mcp-Session-Id': begun.headers.get('Mcp-Session-Id'), 'MCP-Protocol-Version': '2025-11-25', Authorization: 'Bearer any' };
		const list = await (await post({ method: 'tools/list' }, session)).json();
		const stream = await fetch(url, { headers: { ...session, Accept: 'text/event-stream', 'Last-Event-ID': 'x_1' } });
		const first = new TextDecoder().decode((await stream.body.getReader().read()).value);
		const ended = await fetch(url, { method: 'DELETE', headers: session });
		const after = await post({ method: 'tools/list' }, session);
		return [list.result.tools.some((t) => t.name == 'call_page_tool'), stream.status, first.includes('retry:'), ended.status, after.status, (await after.json()).error.message];
	})()`)
	if want := []any{true, 200.0, true, 204.0, 404.0}; len(got) != 6 || !slices.Equal(got[:5], want) || !strings.Contains(fmt.Sprint(got[5]), "initialize a new one") {
		t.Errorf("the page got %v, want %v", got, want)
	}
}

// A hot update loads the scripts and the page's own module again. A call runs once all
// the same, and in the newest function.
func TestHotUpdateRunsEachCallOnce(t *testing.T) {
	s := serve(t)
	c := s.connect()
	const module = `
		const { connectMcpBridge, defineTool } = await import(base + '/client.js?t=' + version);
		defineTool('count', () => { ran.push(version); return version }, { description: 'says which version this is' });
		connectMcpBridge({ appName: 'hot', server: base });
		await import(base + '/main.js?server=' + encodeURIComponent(base) + '&tenant=hot&t=' + version);`
	tb := newTab(t).open(newSite(t).page("/", `<!doctype html><title>Hot</title><link rel=icon href="data:,"><script>
		window.ran = [];
		window.load = new (async () => {}).constructor('base', 'version', `+fmt.Sprintf("%q", module)+`);
	</script>`))
	for version := range 4 {
		eval[bool](tb, fmt.Sprintf(`load(%q, %d).then(() => true)`, s.base, version))
		c.waitTools("hot__count")
		waitFor(t, "the newest function", func() bool {
			tb.do(chromedp.Evaluate[chromedp.Void](`ran.length = 0`))
			return c.ok("hot__count", nil) == fmt.Sprint(version)
		})
		if got := eval[string](tb, `ran.join()`); got != fmt.Sprint(version) {
			t.Errorf("one call of version %d ran in %s", version, got)
		}
	}
}
