package e2e

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// polyfill is the script of @mcp-b/global.
func polyfill(t *testing.T) string {
	t.Helper()
	js, err := os.ReadFile("../../web/node_modules/@mcp-b/global/dist/index.iife.js")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	return string(js)
}

const webMCPPage = `<!doctype html><title>Shop</title><link rel=icon href="data:,">
<script src="/polyfill.js"></script>
<form toolname="search" tooldescription="searches" toolautosubmit><input name="query" required></form>
<form toolname="order" tooldescription="orders" toolautosubmit action="/ordered"><input name="item" required></form>
<script>
document.forms[0].onsubmit = (e) => { e.preventDefault(); e.respondWith(Promise.resolve({found: new FormData(e.target).get('query')})) };
window.__mcpTools = [{name: 'both', description: 'declared', fn: () => 'declared'}];
const register = (name, execute, more) => document.modelContext.registerTool({name, description: name, execute, ...more});
register('both', () => 'registered');
register('add', ({a, b}) => ({sum: a + b}), {
	title: 'Add', annotations: {readOnlyHint: true},
	inputSchema: {type: 'object', properties: {a: {type: 'number'}, b: {type: 'number'}}, required: ['a', 'b']},
});
register('wait', (_, options) => new Promise(() => {
	window.running = 1 + (window.running || 0);
	options?.signal?.addEventListener('abort', () => window.aborted = true);
}));
</script>`

// shop opens that page, and gives the tools it has.
func shop(t *testing.T, c *client, polyfill string) (*tab, []string) {
	site := newSite(t)
	site.page("/polyfill.js", polyfill)
	site.page("/ordered", "<title>ordered</title>")
	tb := newTab(t).open(site.page("/", webMCPPage))
	if !eval[bool](tb, `!!document.modelContext`) {
		t.Skip("this Chromium has no document.modelContext")
	}
	tb.paste(c.snippet())
	tools := []string{"shop__add", "shop__both", "shop__order", "shop__search", "shop__wait"}
	c.waitTools(tools...)
	return tb, tools
}

func TestWebMCP(t *testing.T) {
	for name, setup := range map[string]func(*testing.T) string{
		"browser":  func(t *testing.T) string { withBrowser(t, "enable-features=WebMCP"); return "" },
		"polyfill": polyfill,
	} {
		t.Run(name, func(t *testing.T) {
			script := setup(t)
			t.Run("calls", func(t *testing.T) { testWebMCPCalls(t, script) })
			t.Run("changes", func(t *testing.T) { testWebMCPChanges(t, script) })
			t.Run("cancel", func(t *testing.T) { testWebMCPCancel(t, script) })
			t.Run("forms", func(t *testing.T) { testWebMCPForms(t, script) })
			t.Run("first", func(t *testing.T) { testWebMCPFirst(t, script) })
		})
	}
}

func testWebMCPCalls(t *testing.T, script string) {
	c := serve(t).connect()
	shop(t, c, script)
	add := c.tool("shop__add")
	schema, _ := add.InputSchema.(map[string]any)
	if add.Title != "Add" || add.Annotations == nil || !add.Annotations.ReadOnlyHint || schema["type"] != "object" || len(schema["required"].([]any)) != 2 {
		t.Errorf("add is published as %+v with schema %v and annotations %+v", add, schema, add.Annotations)
	}
	r := c.call("shop__add", map[string]any{"a": 2, "b": "3"})
	if sum, _ := r.StructuredContent.(map[string]any); r.IsError || sum["sum"] != 5.0 {
		t.Errorf("add: %s, %v", text(t, r), r.StructuredContent)
	}
	if msg := c.fails("shop__add", map[string]any{"a": 2}); !strings.Contains(msg, `"b"`) {
		t.Errorf("a missing argument is not named: %s", msg)
	}
	if got := c.ok("shop__both", nil); got != "declared" {
		t.Errorf("a name that __mcpTools has too ran %q", got)
	}
	if got := c.ok("shop__search", map[string]any{"query": "tea"}); got != `{"found":"tea"}` {
		t.Errorf("search: %s", got)
	}
}

func testWebMCPChanges(t *testing.T, script string) {
	c := serve(t).connect()
	tb, tools := shop(t, c, script)
	tb.paste(`const registration = new AbortController(); document.modelContext.registerTool({name: 'late', description: 'late', execute() { throw new TypeError('out of stock') }}, registration); 1`)
	c.waitTools(append([]string{"shop__late"}, tools...)...)
	// main.js came before this tool, so it knows what the browser hides.
	if msg := c.fails("shop__late", nil); !strings.Contains(msg, "out of stock") {
		t.Errorf("what the tool threw is lost: %s", msg)
	}
	tb.paste(`registration.abort(); document.forms[0].remove()`)
	c.waitTools("shop__add", "shop__both", "shop__order", "shop__wait")
}

func testWebMCPCancel(t *testing.T, script string) {
	c := serve(t).connect()
	tb, _ := shop(t, c, script)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "shop__wait"})
		done <- err
	}()
	waitFor(t, "the call to run", func() bool { return eval[int](tb, `window.running || 0`) == 1 })
	cancel()
	if err := <-done; err == nil {
		t.Error("the cancelled call has a result")
	}
	if script == "" { // the polyfill gives tools no signal
		waitFor(t, "the abort", func() bool { return eval[bool](tb, `!!window.aborted`) })
	}
	if got := c.ok("shop__both", nil); got != "declared" {
		t.Errorf("afterwards: %q", got)
	}
}

func testWebMCPForms(t *testing.T, script string) {
	c := serve(t, "--reconnect-grace", "100ms").connect()
	tb, _ := shop(t, c, script)
	if got := c.ok("shop__order", map[string]any{"item": "tea"}); !strings.Contains(got, "submitted") {
		t.Errorf("a form that leads elsewhere: %s", got)
	}
	waitFor(t, "the next page", func() bool { return eval[string](tb, `document.title`) == "ordered" })
	c.waitTools()
}

// testWebMCPFirst: what a tool throws reaches the agent when main.js came before
// it was registered, however soon after.
func testWebMCPFirst(t *testing.T, script string) {
	c := serve(t).connect()
	snippet := c.ok("get_embed_snippet", map[string]any{"form": "script"})
	site := newSite(t)
	site.page("/polyfill.js", script)
	site.header("/polyfill.js", "Content-Type", "text/javascript")
	newTab(t).open(site.page("/", `<!doctype html><title>First</title><link rel=icon href="data:,"><script src="/polyfill.js"></script>`+snippet+`
<script type="module">document.modelContext.registerTool({name: 'fails', description: 'fails', execute() { throw new RangeError('out of stock') }})</script>`))
	c.waitTools("first__fails")
	if msg := c.fails("first__fails", nil); !strings.Contains(msg, "out of stock") {
		t.Errorf("what the tool threw is lost: %s", msg)
	}
}
