package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// What a page returns in MCP's own shapes.
const shapeTools = `[
	['kinds', () => ({content: [
		{type: 'text', text: 'one', annotations: {audience: ['user'], priority: 0.5}, _meta: {t: 1}},
		{type: 'image', data: png, mimeType: 'image/png', annotations: {priority: 1}},
		{type: 'audio', data: btoa('RIFF1234WAVE'), mimeType: 'audio/wav'},
		{type: 'resource', resource: {uri: 'test://text', mimeType: 'text/css', text: 'b {}'}},
		{type: 'resource', resource: {uri: 'test://blob', mimeType: 'application/x-two', blob: btoa('\x00\x01')}},
		{type: 'resource_link', uri: 'test://link', name: 'link', mimeType: 'text/plain', description: 'a link'},
	], _meta: {'test/own': {deep: [1]}, 'io.modelcontextprotocol/forged': 1}})],
	['both', () => ({content: [{type: 'text', text: 'in words'}], structuredContent: {n: 1}})],
	['structured', () => ({structuredContent: {n: 2, list: [null, 'x']}, _meta: {a: 1}})],
	['empty', () => ({content: []})],
	['failed', () => ({content: [{type: 'text', text: 'did not work'}], structuredContent: {n: 'no number'}, isError: true})],
	['unknown', () => ({content: [{type: 'smell', value: 1}]})],
	['alike', () => ({content: 'no array', n: 1})],
].map(([name, fn]) => ({name, description: '', fn})).concat([
	{name: 'keeps', fn: ({ n }) => ({n})},
	{name: 'keeps_mcp', fn: ({ n }) => ({content: [{type: 'text', text: 'in words'}], structuredContent: {n}})},
	{name: 'no_object', fn: () => 'five'},
	{name: 'throws', fn: () => { throw new Error('not today') }},
].map((tool) => ({description: '', params: {n: {type: 'integer', optional: true}}, outputSchema: {$defs: {count: {type: 'integer', minimum: 1}}, type: 'object', properties: {n: {$ref: '#/$defs/count'}}, required: ['n']}, ...tool})));
const png = (() => { const c = document.createElement('canvas'); c.width = 3; c.height = 2; c.getContext('2d').fillRect(0, 0, 3, 2); return c.toDataURL().split(',')[1] })()`

func TestResultsInMCPShapes(t *testing.T) {
	s := serve(t)
	first := s.connectTo("/mcp/w")
	tb := newTab(t).open(newSite(t).page("/", fixture("P", shapeTools, first.snippet())))
	waitFor(t, "the page", func() bool { return first.tool("p__kinds") != nil })
	s.eras(tb, func(t *testing.T, version string) {
		c := s.connectAs(version, "/mcp/w", nil)
		testKinds(t, c.call("p__kinds", nil))
		for name, want := range map[string]string{
			"both":       `{"content":[{"type":"text","text":"in words"}],"structuredContent":{"n":1}}`,
			"structured": `{"_meta":{"a":1},"content":[{"type":"text","text":"{\"n\":2,\"list\":[null,\"x\"]}"}],"structuredContent":{"list":[null,"x"],"n":2}}`,
			"empty":      `{"content":[]}`,
			"failed":     `{"content":[{"type":"text","text":"did not work"}],"structuredContent":{"n":"no number"},"isError":true}`,
			"alike":      `{"content":[{"type":"text","text":"{\"content\":\"no array\",\"n\":1}"}],"structuredContent":{"content":"no array","n":1}}`,
		} {
			if got := shapeOf(t, c.call("p__"+name, nil)); got != want {
				t.Errorf("%s: %s, want %s", name, got, want)
			}
		}
		if got := c.fails("p__unknown", nil); !strings.Contains(got, "not valid") {
			t.Errorf("an unknown kind of content: %s", got)
		}
	})
}

// shapeOf is a result as MCP writes it, without what the protocol itself adds.
func shapeOf(t *testing.T, r *mcp.CallToolResult) string {
	t.Helper()
	for key := range r.Meta {
		if strings.HasPrefix(key, "io.modelcontextprotocol/") {
			delete(r.Meta, key)
		}
	}
	if len(r.Meta) == 0 {
		r.Meta = nil
	}
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var shape struct {
		Meta       any             `json:"_meta,omitempty"`
		Content    json.RawMessage `json:"content"`
		Structured any             `json:"structuredContent,omitempty"`
		IsError    bool            `json:"isError,omitempty"`
	}
	if err := json.Unmarshal(b, &shape); err != nil {
		t.Fatal(err)
	}
	if b, err = json.Marshal(shape); err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func testKinds(t *testing.T, r *mcp.CallToolResult) {
	t.Helper()
	if r.Meta["io.modelcontextprotocol/forged"] != nil || fmt.Sprint(r.Meta["test/own"]) != "map[deep:[1]]" {
		t.Errorf("_meta: %v", r.Meta)
	}
	if len(r.Content) != 6 || r.IsError || r.StructuredContent != nil {
		t.Fatalf("%+v", r)
	}
	if c, ok := r.Content[0].(*mcp.TextContent); !ok || c.Text != "one" || c.Meta["t"] != 1.0 || c.Annotations == nil || c.Annotations.Priority != 0.5 || len(c.Annotations.Audience) != 1 {
		t.Errorf("text: %+v", r.Content[0])
	}
	if c, ok := r.Content[1].(*mcp.ImageContent); !ok || c.MIMEType != "image/png" || !isPNG(c.Data) || c.Annotations == nil {
		t.Errorf("image: %+v", r.Content[1])
	}
	if c, ok := r.Content[2].(*mcp.AudioContent); !ok || c.MIMEType != "audio/wav" || string(c.Data) != "RIFF1234WAVE" {
		t.Errorf("audio: %+v", r.Content[2])
	}
	if c, ok := r.Content[3].(*mcp.EmbeddedResource); !ok || c.Resource.URI != "test://text" || c.Resource.MIMEType != "text/css" || c.Resource.Text != "b {}" {
		t.Errorf("resource: %+v", r.Content[3])
	}
	if c, ok := r.Content[4].(*mcp.EmbeddedResource); !ok || c.Resource.URI != "test://blob" || string(c.Resource.Blob) != "\x00\x01" {
		t.Errorf("binary resource: %+v", r.Content[4])
	}
	if c, ok := r.Content[5].(*mcp.ResourceLink); !ok || c.URI != "test://link" || c.Name != "link" || c.Description != "a link" {
		t.Errorf("link: %+v", r.Content[5])
	}
}

func TestOutputSchemaIsKept(t *testing.T) {
	s := serve(t)
	first := s.connectTo("/mcp/w")
	tb := newTab(t).open(newSite(t).page("/", fixture("P", shapeTools, first.snippet())))
	waitFor(t, "the page", func() bool { return first.tool("p__keeps") != nil })
	s.eras(tb, func(t *testing.T, version string) {
		c := s.connectAs(version, "/mcp/w", nil)
		if got := fmt.Sprint(c.tool("p__keeps").OutputSchema); !strings.Contains(got, "$ref:#/$defs/count") {
			t.Errorf("the schema is listed as %s", got)
		}
		for _, name := range []string{"p__keeps", "p__keeps_mcp"} {
			if got := fmt.Sprint(c.call(name, map[string]any{"n": 5}).StructuredContent); got != "map[n:5]" {
				t.Errorf("%s: %s", name, got)
			}
			if got := c.fails(name, map[string]any{"n": 0}); !strings.Contains(got, "outputSchema") || !strings.Contains(got, "n") || !strings.Contains(got, "minimum") {
				t.Errorf("%s, too small: %s", name, got)
			}
			if got := c.fails(name, nil); !strings.Contains(got, "outputSchema") || !strings.Contains(got, "required") {
				t.Errorf("%s, without what is required: %s", name, got)
			}
		}
		if got := c.fails("p__no_object", nil); !strings.Contains(got, "must return an object; it returned: five") {
			t.Errorf("a text: %s", got)
		}
		if got := c.fails("p__throws", nil); got != "not today" {
			t.Errorf("a thrown error: %s", got)
		}
	})
	for _, part := range []string{`tool "keeps": `, `tool "keeps_mcp": `, `tool "no_object": it must return an object`} {
		tb.waitLine(part)
	}
	if lines := tb.lines(`tool "throws"`); len(lines) != 0 {
		t.Errorf("a thrown error is held against the schema: %q", lines)
	}
}
