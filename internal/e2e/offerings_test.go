package e2e

import (
	"bytes"
	"fmt"
	"image/png"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestExampleOffers(t *testing.T) {
	s := serve(t)
	tb := newTab(t).open(demo(t)).paste(s.connectTo("/mcp/w").snippet())
	s.eras(tb, func(t *testing.T, version string) {
		c := s.connectAs(version, "/mcp/w", nil)
		c.waitTools(demoTools...)
		if got := c.promptNames() + ", " + c.resourceURIs(); got != "hello_world__rewrite_page, page://hello_world/text" {
			t.Errorf("it offers %s", got)
		}
		if got := c.suggest(promptRef("hello_world__rewrite_page"), "style", "P", nil); fmt.Sprint(got.Values) != "[pirate]" {
			t.Errorf("suggested %v", got)
		}
		c.subscribe("page://hello_world/text")
		c.ok("hello_world__insert_main", map[string]any{"main": "Seen by " + version})
		if got := take(t, c.updated); got != "page://hello_world/text" {
			t.Errorf("told of %s", got)
		}
		if got := c.readText("page://hello_world/text"); !strings.HasSuffix(got, "Seen by "+version) {
			t.Errorf("the page's text is %q", got)
		}
		if got := c.asked("hello_world__rewrite_page", map[string]string{"style": "formal"}); !strings.Contains(got, "formal style") || !strings.HasSuffix(got, "Seen by "+version) {
			t.Errorf("the prompt says %q", got)
		}
	})
}

const everyOffer = `[{name: 'who', description: '', fn: () => 'me'}];
const canvas = () => { const c = document.createElement('canvas'); c.width = 3; c.height = 2; c.getContext('2d').fillRect(0, 0, 3, 2); return c };
window.__mcpPrompts = [
	{name: 'say', title: 'Say', description: 'says it', arguments: [
		{name: 'what', description: 'what to say', required: true, complete: ['red', 'Green', 'grey']},
		{name: 'how', complete: (value, { arguments: others }) => [value + others.what, 'x']},
		{name: 'far', complete: async () => ({values: ['a', 'b'], total: 7, hasMore: true})},
		{name: 'bad', complete: () => { throw new Error('no suggestions today') }},
		{name: 'plain'},
	], fn: ({ what, how = 'so' }) => 'say ' + what + ' ' + how},
	{name: 'item', fn: () => ({type: 'text', text: 'an item'})},
	{name: 'picture', fn: canvas},
	{name: 'talk', fn: async () => ['one', {role: 'assistant', content: 'two'}, {role: 'user', content: {type: 'resource', resource: {uri: 'test://x', text: 'three'}}}]},
	{name: 'full', fn: () => ({description: 'the whole', messages: [{role: 'user', content: 'full'}], _meta: {a: 1}})},
	{name: 'agent', fn: (_, ctx) => ctx.agent.name},
	{name: 'throws', fn: () => { throw new RangeError('no prompt today') }},
	{name: 'nothing', fn: () => {}},
	{name: 'no function'},
];
window.__mcpResources = [
	{uri: 'text', name: 'Text', title: 'A text', description: 'as it is', size: 5, annotations: {priority: 0.5}, fn: () => 'plain'},
	{uri: '/json', fn: () => ({a: [1]})},
	{uri: 'blob', fn: () => new Blob([new Uint8Array([0, 1, 255])], {type: 'application/x-three'})},
	{uri: 'page', fn: async () => new Blob(['<b>ö</b>'], {type: 'text/html'})},
	{uri: 'canvas', fn: canvas},
	{uri: 'bytes', mimeType: 'application/x-bytes', fn: () => new Uint8Array([1, 2, 3])},
	{uri: 'many', fn: () => ({contents: [{text: 'a', mimeType: 'text/css'}, {uri: 'text', text: 'b'}, {blob: new Uint8Array([7])}], _meta: {b: 2}})},
	{uri: 'test://own/thing', fn: (_, ctx) => ctx.uri},
	{uriTemplate: 'item/{id}', name: 'Item', complete: {id: ['a1', 'A2', 'b1']}, fn: ({ id }, ctx) => id + ' at ' + ctx.uri},
	{uriTemplate: 'find/{kind}{?size}', complete: {size: async (value, { arguments: others }) => [others.kind + value]}, fn: (variables) => variables},
	{uriTemplate: 'test://file/{+path}', fn: ({ path }) => path},
	{uri: 'throws', fn: () => { throw new RangeError('no text today') }},
	{uri: 'nothing', fn: () => {}},
	{uri: 'page://other/text', fn: () => 'forged'},
]`

func TestPageOffers(t *testing.T) {
	s := serve(t)
	first := s.connectTo("/mcp/w")
	tb := newTab(t).open(newSite(t).page("/", fixture("P", everyOffer, first.snippet())))
	first.waitTools("p__who")
	for name, test := range map[string]func(*testing.T, *client){"prompts": testPrompts, "resources": testResources, "templates": testTemplates, "completions": testCompletions} {
		t.Run(name, func(t *testing.T) {
			outer := s.t
			s.t = t
			defer func() { s.t = outer }()
			s.eras(tb, func(t *testing.T, version string) { test(t, s.connectAs(version, "/mcp/w", nil)) })
		})
	}
	// What can't be offered is named, to the agent and in the console.
	for _, part := range []string{"no function", "page://other/text"} {
		tb.waitLine(part)
		if got := first.ok("describe_tools", nil); !strings.Contains(got, part) {
			t.Errorf("%s is not among the problems: %s", part, got)
		}
	}
}

func testPrompts(t *testing.T, c *client) {
	if got := c.promptNames(); got != "p__agent p__full p__item p__nothing p__picture p__say p__talk p__throws" {
		t.Errorf("prompts: %s", got)
	}
	for p, err := range c.Prompts(c.ctx(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		if p.Name == "p__say" && (p.Title != "Say" || !strings.HasPrefix(p.Description, "says it") || len(p.Arguments) != 5 || !p.Arguments[0].Required || p.Arguments[0].Description != "what to say" || p.Arguments[1].Required) {
			t.Errorf("say is listed as %+v", p)
		}
	}
	for want, got := range map[string]string{
		"say it so":  c.asked("p__say", map[string]string{"what": "it"}),
		"say it now": c.asked("p__say", map[string]string{"what": "it", "how": "now"}),
		"an item":    c.asked("p__item", nil),
		"e2e":        c.asked("p__agent", nil),
	} {
		if got != want {
			t.Errorf("prompt: %q, want %q", got, want)
		}
	}
	if got := c.prompt("p__picture", nil).Messages; len(got) != 1 {
		t.Errorf("picture: %d messages", len(got))
	} else if image, ok := got[0].Content.(*mcp.ImageContent); !ok || image.MIMEType != "image/png" || !isPNG(image.Data) {
		t.Errorf("picture: %+v", got[0].Content)
	}
	talk := c.prompt("p__talk", nil).Messages
	if len(talk) != 3 || talk[0].Role != "user" || talk[1].Role != "assistant" || talk[2].Role != "user" {
		t.Errorf("talk: %+v", talk)
	} else if r, ok := talk[2].Content.(*mcp.EmbeddedResource); !ok || r.Resource.Text != "three" {
		t.Errorf("talk: %+v", talk[2].Content)
	}
	if got := c.prompt("p__full", nil); got.Description != "the whole" || got.Meta["a"] != 1.0 || len(got.Messages) != 1 {
		t.Errorf("full: %+v", got)
	}
	for name, want := range map[string]string{"p__throws": "no prompt today", "p__nothing": "returned nothing"} {
		if _, err := c.GetPrompt(c.ctx(), &mcp.GetPromptParams{Name: name}); codeOf(err) != jsonrpc.CodeInternalError || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := c.GetPrompt(c.ctx(), &mcp.GetPromptParams{Name: "p__say"}); codeOf(err) != jsonrpc.CodeInvalidParams || !strings.Contains(err.Error(), "what") {
		t.Errorf("a missing argument: %v", err)
	}
}

func isPNG(data []byte) bool {
	decoded, err := png.Decode(bytes.NewReader(data))
	return err == nil && decoded.Bounds().Dx() == 3 && decoded.Bounds().Dy() == 2
}

func testResources(t *testing.T, c *client) {
	if got := c.resourceURIs(); got != "page://p/blob page://p/bytes page://p/canvas page://p/json page://p/many page://p/nothing page://p/page page://p/text page://p/throws test://own/thing" {
		t.Errorf("resources: %s", got)
	}
	for r, err := range c.Resources(c.ctx(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		if r.URI == "page://p/text" && (r.Name != "Text" || r.Title != "A text" || !strings.HasPrefix(r.Description, "as it is") || r.Size != 5 || r.Annotations == nil || r.Annotations.Priority != 0.5) {
			t.Errorf("text is listed as %+v", r)
		}
	}
	for _, want := range []struct{ uri, mime, text, blob string }{
		{"page://p/text", "text/plain", "plain", ""},
		{"page://p/json", "application/json", `{"a":[1]}`, ""},
		{"page://p/blob", "application/x-three", "", "\x00\x01\xff"},
		{"page://p/page", "text/html", "<b>ö</b>", ""},
		{"page://p/bytes", "application/x-bytes", "", "\x01\x02\x03"},
		{"test://own/thing", "text/plain", "test://own/thing", ""},
	} {
		got := c.read(want.uri)
		if len(got) != 1 || got[0].URI != want.uri || got[0].MIMEType != want.mime || got[0].Text != want.text || string(got[0].Blob) != want.blob {
			t.Errorf("%s: %+v", want.uri, got[0])
		}
	}
	if got := c.read("page://p/canvas"); len(got) != 1 || got[0].MIMEType != "image/png" || !isPNG(got[0].Blob) {
		t.Errorf("canvas: %+v", got)
	}
	many, err := c.ReadResource(c.ctx(), &mcp.ReadResourceParams{URI: "page://p/many"})
	if err != nil || len(many.Contents) != 3 || many.Meta["b"] != 2.0 {
		t.Fatalf("many: %+v, %v", many, err)
	}
	if a, b, blob := many.Contents[0], many.Contents[1], many.Contents[2]; a.URI != "page://p/many" || a.MIMEType != "text/css" || a.Text != "a" || b.URI != "page://p/text" || b.Text != "b" || string(blob.Blob) != "\x07" {
		t.Errorf("many: %+v, %+v, %+v", a, b, blob)
	}
	for uri, want := range map[string]string{"page://p/throws": "no text today", "page://p/nothing": "returned nothing"} {
		if _, err := c.ReadResource(c.ctx(), &mcp.ReadResourceParams{URI: uri}); codeOf(err) != jsonrpc.CodeInternalError || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", uri, err)
		}
	}
	for _, uri := range []string{"page://other/text", "page://p/none", "page://q/text", "text"} {
		if _, err := c.ReadResource(c.ctx(), &mcp.ReadResourceParams{URI: uri}); codeOf(err) != jsonrpc.CodeInvalidParams {
			t.Errorf("%s: %v", uri, err)
		}
	}
}

func testTemplates(t *testing.T, c *client) {
	if got := c.templateURIs(); got != "page://p/find/{kind}{?size} page://p/item/{id} test://file/{+path}" {
		t.Errorf("templates: %s", got)
	}
	for uri, want := range map[string]string{
		"page://p/item/a%20b":         "a b at item/a%20b",
		"page://p/find/shoes?size=42": `{"kind":"shoes","size":"42"}`,
		"test://file/a/b.txt":         "a/b.txt",
	} {
		if got := c.readText(uri); got != want {
			t.Errorf("%s: %q, want %q", uri, got, want)
		}
	}
}

func testCompletions(t *testing.T, c *client) {
	say := promptRef("p__say")
	if got := c.suggest(say, "what", "gr", nil); fmt.Sprint(got.Values) != "[Green grey]" {
		t.Errorf("of a list: %+v", got)
	}
	if got := c.suggest(say, "how", "v", map[string]string{"what": "it"}); fmt.Sprint(got.Values) != "[vit x]" {
		t.Errorf("of a function: %+v", got)
	}
	if got := c.suggest(say, "far", "", nil); fmt.Sprint(got.Values) != "[a b]" || got.Total != 7 || !got.HasMore {
		t.Errorf("of an async function: %+v", got)
	}
	if got := c.suggest(say, "plain", "", nil); len(got.Values) != 0 {
		t.Errorf("of nothing: %+v", got)
	}
	if got := c.suggest(templateRef("page://p/item/{id}"), "id", "a", nil); fmt.Sprint(got.Values) != "[a1 A2]" {
		t.Errorf("of a variable: %+v", got)
	}
	if got := c.suggest(templateRef("page://p/find/{kind}{?size}"), "size", "4", map[string]string{"kind": "shoes"}); fmt.Sprint(got.Values) != "[shoes4]" {
		t.Errorf("of a variable, by a function: %+v", got)
	}
	if _, err := c.Complete(c.ctx(), &mcp.CompleteParams{Ref: say, Argument: mcp.CompleteParamsArgument{Name: "bad"}}); err == nil || !strings.Contains(err.Error(), "no suggestions today") {
		t.Errorf("of one that throws: %v", err)
	}
}

// Clients of both eras that read a list only when told so follow every change.
func TestOffersChange(t *testing.T) {
	s := serve(t)
	clients := map[string]*client{withSessions: s.connectAs(withSessions, "/mcp/w", nil), stateless: s.connectAs(stateless, "/mcp/w", nil)}
	tb := newTab(t).open(newSite(t).page("/", fixture("P", `[]`, ""))).paste(clients[withSessions].snippet())
	var prompts, resources []*mirror
	for _, c := range clients {
		prompts = append(prompts, c.mirror(c.prompts, c.promptNames))
		resources = append(resources, c.mirror(c.resources, func() string { return strings.TrimSpace(c.resourceURIs() + " " + c.templateURIs()) }))
	}
	shows := func(names, uris string) {
		t.Helper()
		for i := range prompts {
			prompts[i].becomes(names)
			resources[i].becomes(uris)
		}
	}
	waitFor(t, "the bridge", func() bool { return eval[bool](tb, `!!window.__mcpToolBus`) })
	for _, step := range []struct{ js, prompts, resources string }{
		{`__mcpPrompts = [{name: 'a', fn: () => 'a'}]; 1`, "p__a", ""},
		{`__mcpResources = [{uri: 'a', fn: () => 'a'}]; 1`, "p__a", "page://p/a"},
		{`__mcpPrompts.push({name: 'b', fn: () => 'b'}); __mcpResources.push({uriTemplate: 'b/{c}', fn: () => 'b'}); 1`, "p__a p__b", "page://p/a page://p/b/{c}"},
		{`noPrompt = __mcpToolBus.registerPrompt('c', ({x}) => 'c' + x, {arguments: [{name: 'x', complete: ['xyz']}]}); 1`, "p__a p__b p__c", "page://p/a page://p/b/{c}"},
		{`noResource = __mcpToolBus.registerResource('d', () => 'd'); noTemplate = __mcpToolBus.registerResource('e/{f}', ({f}) => 'e' + f, {complete: {f: ['fgh']}}); 1`, "p__a p__b p__c", "page://p/a page://p/d page://p/b/{c} page://p/e/{f}"},
	} {
		tb.paste(step.js)
		shows(step.prompts, step.resources)
	}
	for version, c := range clients {
		if got := c.asked("p__c", map[string]string{"x": "1"}) + c.readText("page://p/d") + c.readText("page://p/e/2"); got != "c1de2" {
			t.Errorf("%s: of the bus: %s", version, got)
		}
		if got := append(c.suggest(promptRef("p__c"), "x", "x", nil).Values, c.suggest(templateRef("page://p/e/{f}"), "f", "", nil).Values...); fmt.Sprint(got) != "[xyz fgh]" {
			t.Errorf("%s: suggestions of the bus: %s", version, got)
		}
	}
	tb.paste(`noPrompt(); noResource(); noTemplate(); 1`)
	shows("p__a p__b", "page://p/a page://p/b/{c}")
	// An own one hides that of the bus.
	tb.paste(`noPrompt = __mcpToolBus.registerPrompt('a', () => 'bus'); __mcpToolBus.registerResource('a', () => 'bus'); 1`)
	for version, c := range clients {
		if got := c.asked("p__a", nil) + c.readText("page://p/a"); got != "aa" {
			t.Errorf("%s: with one of the bus: %s", version, got)
		}
	}
	tb.paste(`__mcpPrompts = __mcpResources = []; 1`)
	shows("p__a", "page://p/a")
	for version, c := range clients {
		if got := c.asked("p__a", nil) + c.readText("page://p/a"); got != "busbus" {
			t.Errorf("%s: without the own ones: %s", version, got)
		}
	}
	tb.shut()
	shows("", "")
}

const watchedPage = `[{name: 'who', description: '', fn: () => 'me'}];
window.heard = [];
const subscribe = (notify, { uri, variables }) => {
	heard.push('+' + uri + JSON.stringify(variables));
	window.notify = notify;
	return () => heard.push('-' + uri);
};
window.__mcpResources = [{uri: 'count', subscribe, fn: () => 1}, {uriTemplate: 'item/{id}', subscribe, fn: () => 2}, {uri: 'silent', fn: () => 3}]`

func TestWatchedResources(t *testing.T) {
	s := serve(t)
	one, two := s.connectAs(withSessions, "/mcp/w", nil), s.connectAs(stateless, "/mcp/w", nil)
	tb := newTab(t).open(newSite(t).page("/", fixture("P", watchedPage, one.snippet())))
	one.waitTools("p__who")
	heard := func(want string) {
		t.Helper()
		waitFor(t, "the page to have heard "+want, func() bool { return eval[string](tb, `window.heard ? heard.join(' ') : ''`) == want })
	}
	updated := func(uri string, clients ...*client) {
		t.Helper()
		for _, c := range clients {
			if got := take(t, c.updated); got != uri {
				t.Errorf("told of %s, want %s", got, uri)
			}
		}
	}
	one.subscribe("page://p/count")
	heard(`+count{}`)
	two.subscribe("page://p/count")
	two.subscribe("page://p/item/5")
	heard(`+count{} +item/5{"id":"5"}`)
	tb.paste(`notify(); 1`) // of the last one
	updated("page://p/item/5", two)
	two.unsubscribe("page://p/item/5")
	heard(`+count{} +item/5{"id":"5"} -item/5`)
	tb.paste(`__mcpResourceUpdated('item/5'); __mcpResourceUpdated('count'); 1`)
	updated("page://p/count", one, two)
	one.subscribe("page://p/silent")
	tb.paste(`__mcpToolBus.resourceUpdated('silent'); 1`)
	updated("page://p/silent", one)

	// A reload loses what the page knew of who watches, and it may have changed.
	tb.reload()
	heard(`+count{}`)
	waitFor(t, "both to be told of the reload", func() bool { return len(one.updated) == 2 && len(two.updated) == 1 })
	for len(one.updated) > 0 {
		<-one.updated
	}
	updated("page://p/count", two)
	tb.paste(`notify(); 1`)
	updated("page://p/count", one, two)

	// It is told of the end only once nobody is left.
	one.unsubscribe("page://p/count")
	tb.paste(`notify(); 1`)
	updated("page://p/count", two)
	heard(`+count{}`)
	two.unsubscribe("page://p/count")
	heard(`+count{} -count`)
	tb.paste(`__mcpResourceUpdated('count'); __mcpResourceUpdated('silent'); 1`)
	updated("page://p/silent", one)
	if len(one.updated)+len(two.updated) != 0 {
		t.Error("told of what is not watched any more")
	}
	// A client that goes away watches no longer.
	two.subscribe("page://p/count")
	heard(`+count{} -count +count{}`)
	if err := two.Close(); err != nil {
		t.Fatal(err)
	}
	heard(`+count{} -count +count{} -count`)
}

// However a page connects, it brings all it has.
func TestEveryFormBringsOffers(t *testing.T) {
	s := serve(t)
	c := s.connectAs(stateless, "/mcp/w", nil)
	prompts, resources := c.mirror(c.prompts, c.promptNames), c.mirror(c.resources, c.resourceURIs)
	site := newSite(t)
	newTab(t).open(site.page("/main", fixture("Main", offer, ""))).paste(c.snippet())
	newTab(t).open(site.page("/connect", autoPage(s.base, "connect", "", offer)))
	newTab(t).open(site.page("/inline", fixture("Inline", offer, ""))).paste(c.ok("get_embed_snippet", map[string]any{"form": "inline"}))
	script := strings.Replace(fixture("Script", offer, ""), "</script>", "</script>"+c.ok("get_embed_snippet", map[string]any{"form": "script"}), 1)
	newTab(t).open(site.page("/script", script))
	prompts.becomes("connect__say inline__say main__say script__say")
	resources.becomes("page://connect/text page://inline/text page://main/text page://script/text")
	for _, prefix := range []string{"main", "connect", "inline", "script"} {
		if got := c.asked(prefix+"__say", map[string]string{"what": prefix}) + c.readText("page://"+prefix+"/item/"+prefix); got != "say "+prefix+"item "+prefix {
			t.Errorf("%s: %s", prefix, got)
		}
	}
}
