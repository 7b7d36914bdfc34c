package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image/png"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// One tool for each row of the protocol's result table.
const resultTools = `[
	['undefined', () => undefined], ['nothing', () => {}], ['null', () => null], ['zero', () => 0], ['false', () => false], ['empty', () => ''],
	['text', () => 'plain <b>text</b>'], ['number', () => 1.5], ['object', () => ({a: 1, b: [2]})], ['array', () => [1, 'x', null]],
	['later', () => new Promise(done => queueMicrotask(() => done('later')))], ['thenable', () => ({then: done => done('then')})],
	['map', () => new Map([['a', 1]])], ['set', () => new Set([1, 2])], ['date', () => new Date(0)], ['bigint', () => 12345678901234567890n],
	['error', () => new TypeError('as a value')], ['node', () => document.querySelector('h1')],
	['circular', () => { const o = {name: 'me'}; o.self = o; return o }],
	['getter', () => ({get bad() { throw new Error('no') }, good: 1})],
	['mcp', () => ({content: [{type: 'text', text: 'one'}, {type: 'resource_link', uri: 'test://x', name: 'x'}], structuredContent: {n: 1}})],
	['mcperror', () => ({content: [{type: 'text', text: 'failed'}], isError: true})],
	['canvas', () => { const c = document.createElement('canvas'); c.width = 3; c.height = 2; c.getContext('2d').fillRect(0, 0, 3, 2); return c }],
	['dataurl', () => { const c = document.createElement('canvas'); c.width = 3; c.height = 2; return c.toDataURL() }],
	['blob', async () => { const c = new OffscreenCanvas(3, 2); c.getContext('2d'); return c.convertToBlob() }],
	['imagedata', () => new ImageData(3, 2)],
	['bitmap', () => createImageBitmap(new ImageData(3, 2))],
	['bytes', () => new Uint8Array([1, 2, 3])],
	['svg', () => 'data:image/svg+xml;base64,PHN2Zy8+'],
	['throw', () => { throw new Error('no row r9') }], ['throwtext', () => { throw 'just text' }], ['throwempty', () => { throw new Error('') }],
	['throwcause', () => { throw new Error('outer', {cause: new Error('inner')}) }], ['reject', async () => { throw new RangeError('too far') }],
	['throwundefined', () => { throw undefined }],
	['big', () => 'é'.repeat(2.5 * 1024 * 1024)], ['echo', (a) => a.text.length],
].map(([name, fn]) => ({name, description: '', fn}))`

func TestResults(t *testing.T) {
	s := serve(t)
	c := s.connect()
	newTab(t).open(newSite(t).page("/", fixture("R", resultTools, c.snippet())))
	waitFor(t, "tools", func() bool { return c.tool("r__echo") != nil })

	for name, want := range map[string]string{
		"undefined": "done (no value)", "nothing": "done (no value)", "null": "null", "zero": "0", "false": "false", "empty": "",
		"text": "plain <b>text</b>", "number": "1.5", "object": `{"a":1,"b":[2]}`, "array": `[1,"x",null]`, "later": "later", "thenable": "then",
		"map": `{"a":1}`, "set": "[1,2]", "date": "1970-01-01T00:00:00.000Z", "bigint": "12345678901234567890",
	} {
		if got := c.ok("r__"+name, nil); strings.Trim(got, `"`) != want {
			t.Errorf("%s gave %q, want %q", name, got, want)
		}
	}
	for name, parts := range map[string][]string{
		"error": {"TypeError", "as a value"}, "node": {"h1"}, "circular": {"me", "circular"}, "getter": {`"good":1`, "no"}, "svg": {"svg"},
	} {
		got := c.ok("r__"+name, nil)
		for _, p := range parts {
			if !strings.Contains(got, p) {
				t.Errorf("%s gave %q, without %q", name, got, p)
			}
		}
	}
	for name, want := range map[string]string{"throw": "no row r9", "throwtext": "just text", "throwcause": "inner", "reject": "too far", "throwempty": "", "throwundefined": "", "mcperror": "failed"} {
		if got := c.fails("r__"+name, nil); got == "" || !strings.Contains(got, want) {
			t.Errorf("%s failed with %q, want %q in it", name, got, want)
		}
	}
	if r := c.call("r__object", nil); fmt.Sprint(r.StructuredContent) != "map[a:1 b:[2]]" {
		t.Errorf("structured content %v", r.StructuredContent)
	}
	if r := c.call("r__array", nil); r.StructuredContent != nil {
		t.Errorf("an array has structured content %v, which clients refuse", r.StructuredContent)
	}
	r := c.call("r__mcp", nil)
	if len(r.Content) != 2 || fmt.Sprint(r.StructuredContent) != "map[n:1]" {
		t.Errorf("MCP content came as %v, %v", r.Content, r.StructuredContent)
	}
}

func TestImageResults(t *testing.T) {
	s := serve(t)
	c := s.connect()
	newTab(t).open(newSite(t).page("/", fixture("R", resultTools, c.snippet())))
	waitFor(t, "tools", func() bool { return c.tool("r__echo") != nil })
	for _, name := range []string{"canvas", "dataurl", "blob", "imagedata", "bitmap"} {
		r := c.call("r__"+name, nil)
		if len(r.Content) != 1 {
			t.Fatalf("%s: %d contents", name, len(r.Content))
		}
		img, ok := r.Content[0].(*mcp.ImageContent)
		if !ok {
			b, _ := json.Marshal(r.Content)
			t.Fatalf("%s: content %s", name, b)
		}
		decoded, err := png.Decode(bytes.NewReader(img.Data))
		if err != nil || img.MIMEType != "image/png" || decoded.Bounds().Dx() != 3 || decoded.Bounds().Dy() != 2 {
			t.Errorf("%s: %v, %s", name, err, img.MIMEType)
		}
	}
	if res, ok := c.call("r__bytes", nil).Content[0].(*mcp.EmbeddedResource); !ok || !bytes.Equal(res.Resource.Blob, []byte{1, 2, 3}) {
		t.Error("bytes did not come as a resource")
	}
}

func TestLargeArgumentsAndResults(t *testing.T) {
	s, small := serve(t), serve(t, "--max-result", "100000")
	c, cs := s.connect(), small.connect()
	site := newSite(t)
	newTab(t).open(site.page("/a", fixture("R", resultTools, c.snippet())))
	newTab(t).open(site.page("/b", fixture("R", resultTools, cs.snippet())))
	for _, cl := range []*client{c, cs} {
		waitFor(t, "tools", func() bool { return cl.tool("r__echo") != nil })
	}
	if got := c.ok("r__echo", map[string]any{"text": strings.Repeat("x", 40<<10)}); got != fmt.Sprint(40<<10) {
		t.Errorf("40 KB of arguments arrived as %s", got)
	}
	big := c.ok("r__big", nil)
	if len(big) != 5<<20 || strings.Trim(big, "é") != "" {
		t.Errorf("a result of 5 MB came as %d bytes", len(big))
	}
	cut := cs.ok("r__big", nil)
	if len(cut) > 100_500 || !strings.Contains(cut, "5242880 bytes") || !strings.Contains(cut, "--max-result") || strings.ContainsRune(cut, '\uFFFD') {
		t.Errorf("cut to %d bytes, ending in %q", len(cut), cut[max(0, len(cut)-200):])
	}
}
