package agent

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"jsbridge/manifest"
	"jsbridge/tenant"
)

const (
	pngBytes  = "\x89PNG\r\n\x1a\n and more"
	jpegBytes = "\xff\xd8\xff\xe0 and more"
	wavBytes  = "RIFF\x00\x00\x00\x00WAVEfmt "
)

func b64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

// shape is a result as text: kinds, types and structured content.
func shape(r *mcp.CallToolResult) string {
	var parts []string
	for _, c := range r.Content {
		switch c := c.(type) {
		case *mcp.TextContent:
			parts = append(parts, "text:"+c.Text)
		case *mcp.ImageContent:
			parts = append(parts, "image:"+c.MIMEType)
		case *mcp.AudioContent:
			parts = append(parts, "audio:"+c.MIMEType)
		case *mcp.EmbeddedResource:
			parts = append(parts, "resource:"+c.Resource.URI)
		default:
			parts = append(parts, fmt.Sprintf("%T", c))
		}
	}
	if s, ok := r.StructuredContent.(json.RawMessage); ok {
		parts = append(parts, "structured:"+string(s))
	}
	if r.IsError {
		parts = append(parts, "error")
	}
	return strings.Join(parts, " ")
}

func TestConvert(t *testing.T) {
	for _, tc := range []struct{ name, wire, want string }{
		{"nothing", ``, "text:done (no value)"},
		{"null", `null`, "text:null"},
		{"zero", `0`, "text:0"},
		{"false", `false`, "text:false"},
		{"empty text", `""`, "text:"},
		{"text", `"a \u003c b"`, "text:a < b"},
		{"array", `[1,2]`, "text:[1,2]"},
		{"object", `{"a":1.10}`, `text:{"a":1.10} structured:{"a":1.10}`},
		{"MCP content", `{"content":[{"type":"text","text":"x"}],"structuredContent":{"n":1}}`, `text:x structured:{"n":1}`},
		{"structured content that is no object", `{"content":[{"type":"text","text":"x"}],"structuredContent":[1]}`, `text:x`},
		{"MCP error", `{"content":[{"type":"text","text":"x"}],"isError":true}`, "text:x error"},
		{"an object with a content of its own", `{"content":["a"]}`, `text:{"content":["a"]} structured:{"content":["a"]}`},
		{"an object with a content text", `{"content":"a"}`, `text:{"content":"a"} structured:{"content":"a"}`},
		{"image URL", `"data:image/png;base64,` + b64(pngBytes) + `"`, "image:image/png"},
		{"JPEG that is called PNG", `"data:image/png;base64,` + b64(jpegBytes) + `"`, "image:image/jpeg"},
		{"audio URL", `"data:audio/x-wav;base64,` + b64(wavBytes) + `"`, "audio:audio/wav"},
		{"image in MCP content, wrong type", `{"content":[{"type":"image","mimeType":"image/gif","data":"` + b64(pngBytes) + `"}]}`, "image:image/png"},
		{"binary that is an image", `{"content":[{"type":"resource","resource":{"uri":"page://blob/1","blob":"` + b64(pngBytes) + `"}}]}`, "image:image/png"},
		{"binary that is not", `{"content":[{"type":"resource","resource":{"uri":"page://blob/1","blob":"AQID"}}]}`, "resource:page://blob/1"},
		{"a page's own resource stays one", `{"content":[{"type":"resource","resource":{"uri":"x://1","blob":"` + b64(pngBytes) + `"}}]}`, "resource:x://1"},
	} {
		if got := shape(convert(json.RawMessage(tc.wire))); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
}

func TestUselessMediaIsNamedNotShown(t *testing.T) {
	for name, wire := range map[string]string{
		"svg": `"data:image/svg+xml;base64,PHN2Zy8+"`, "no base64": `"data:image/png,hello"`, "broken": `"data:image/png;base64,!!!"`, "text as image": `"data:image/png;base64,aGVsbG8="`,
	} {
		if got := shape(convert(json.RawMessage(wire))); !strings.HasPrefix(got, "text:[left out") {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got := shape(convert(json.RawMessage(`"data:text/html,hello"`))); got != "text:data:text/html,hello" {
		t.Errorf("another data URL: %s", got)
	}
	if got := shape(convert(json.RawMessage(`{"content":[{"type":"nonsense"}]}`))); !strings.Contains(got, "not valid") || !strings.HasSuffix(got, "error") {
		t.Errorf("unknown content: %s", got)
	}
}

func entry(t *testing.T, tool string) tenant.Entry {
	t.Helper()
	m, err := manifest.Parse([]byte(`{"tools":[`+tool+`]}`), manifest.Limits{})
	if err != nil || len(m.Tools) != 1 {
		t.Fatalf("%v %v", m, err)
	}
	return tenant.Entry{Name: "p__x", Tool: m.Tools[0]}
}

func TestLimitOfAResult(t *testing.T) {
	h := &Handler{opts: Options{MaxResult: 20}}
	e := entry(t, `{"name":"x"}`)
	got := shape(mapped(h, e, tenant.Answer{Result: json.RawMessage(`"` + strings.Repeat("é", 50) + `"`)}))
	if !strings.HasPrefix(got, "text:"+strings.Repeat("é", 10)+"\n[cut") || !strings.Contains(got, "100 bytes") {
		t.Errorf("cut text: %q", got)
	}
	got = shape(mapped(h, e, tenant.Answer{Result: json.RawMessage(`{"content":[{"type":"image","mimeType":"image/png","data":"` + b64(pngBytes+strings.Repeat("x", 50)) + `"}]}`)}))
	if !strings.HasPrefix(got, "text:[image of") {
		t.Errorf("large image: %q", got)
	}
	got = shape(mapped(h, e, tenant.Answer{Err: &tenant.PageError{Message: strings.Repeat("x", 50)}}))
	if !strings.Contains(got, "[cut") || !strings.HasSuffix(got, "error") {
		t.Errorf("long error: %q", got)
	}
}

func mapped(h *Handler, e tenant.Entry, a tenant.Answer) *mcp.CallToolResult {
	res, _ := h.result(e.Tool, a)
	return res
}

func TestErrorsAndOutputSchema(t *testing.T) {
	h := &Handler{opts: Options{MaxResult: 1000}}
	if got := shape(mapped(h, entry(t, `{"name":"x"}`), tenant.Answer{Err: &tenant.PageError{}})); got == "text: error" || !strings.HasSuffix(got, "error") {
		t.Errorf("an error without a message: %q", got)
	}
	out := entry(t, `{"name":"x","outputSchema":{"type":"object"}}`)
	if got := shape(mapped(h, out, tenant.Answer{Result: json.RawMessage(`"text"`)})); !strings.Contains(got, "outputSchema") || !strings.HasSuffix(got, "error") {
		t.Errorf("text against an outputSchema: %q", got)
	}
	if got := shape(mapped(h, out, tenant.Answer{Result: json.RawMessage(`{"a":1}`)})); got != `text:{"a":1} structured:{"a":1}` {
		t.Errorf("an object against it: %q", got)
	}
}
