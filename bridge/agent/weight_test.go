package agent

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"jsbridge/tenant"
)

// objectOf is JSON of that many bytes.
func objectOf(size int) string {
	const frame = `{"a":""}`
	return strings.Replace(frame, `""`, `"`+strings.Repeat("x", size-len(frame))+`"`, 1)
}

// The limit is one of what goes out, not of each copy: the same JSON as text and as
// structured content is twice as long. Yet what is left out is said, and what an
// outputSchema promises is there: clients refuse the whole result otherwise.
func TestLimitCountsEveryCopy(t *testing.T) {
	const limit = 560 << 10
	h := &Handler{opts: Options{MaxResult: limit}}
	plain, schema := entry(t, `{"name":"x"}`), entry(t, `{"name":"x","outputSchema":{"type":"object"}}`)
	both := func(text, structured int) string {
		return fmt.Sprintf(`{"content":[{"type":"text","text":%q}],"structuredContent":%s}`, strings.Repeat("t", text), objectOf(structured))
	}
	for _, tc := range []struct {
		name       string
		of         tenant.Entry
		wire       string
		text       string // how it begins
		structured int    // bytes
		fails      bool
	}{
		{"small", plain, objectOf(1000), `{"a":"xxx`, 1000, false},
		{"large", plain, objectOf(270 << 10), `{"a":"xxx`, 0, false},
		{"larger than the limit", plain, objectOf(limit + 1), `{"a":"xxx`, 0, false},
		{"small, of a schema", schema, objectOf(1000), `{"a":"xxx`, 1000, false},
		{"large, of a schema", schema, objectOf(270 << 10), `{"a":"xxx`, 270 << 10, false},
		{"of a schema, fits once", schema, objectOf(limit - 2000), fmt.Sprintf("[%d bytes of JSON, see the structured content]", limit-2000), limit - 2000, false},
		{"of a schema, fits not at all", schema, objectOf(limit + 1), fmt.Sprintf("the page's tool \"x\" ran, but its result of %d bytes is over the limit", limit+1), 0, true},
		{"two of the page's own", plain, both(1000, 2000), "ttt", 2000, false},
		{"two of the page's own, too long together", plain, both(limit-1000, limit-1000), "ttt", limit - 1000, false},
		{"two, the structured one too long", plain, both(1000, limit+1), "ttt", 0, false},
		{"two, the structured one too long, of a schema", schema, both(1000, limit+1), `the page's tool "x" ran`, 0, true},
		{"structured content alone", plain, `{"structuredContent":` + objectOf(300<<10) + `}`, `{"a":"xxx`, 0, false},
	} {
		res := mapped(h, tc.of, tenant.Answer{Result: json.RawMessage(tc.wire)})
		structured, _ := res.StructuredContent.(json.RawMessage)
		if len(structured) != tc.structured || res.IsError != tc.fails || !strings.HasPrefix(firstText(res), tc.text) {
			t.Errorf("%s: structured content of %d bytes, error %v, text %.100q", tc.name, len(structured), res.IsError, firstText(res))
		}
		all, err := json.Marshal(res)
		if err != nil || len(all) > limit+1000 {
			t.Errorf("%s: %d bytes go out, %v", tc.name, len(all), err)
		}
		if lost := len(tc.wire) - len(all); lost > 0 && !strings.Contains(string(all), "--max-result") && !strings.Contains(string(all), "see the structured content") && !strings.Contains(tc.wire, `"structuredContent"`) {
			t.Errorf("%s: %d bytes were left out, and nobody says so", tc.name, lost)
		}
	}
	res := mapped(h, plain, tenant.Answer{Result: json.RawMessage(both(1000, limit+1))})
	if last, ok := res.Content[len(res.Content)-1].(*mcp.TextContent); !ok || !strings.Contains(last.Text, fmt.Sprintf("structured content of %d bytes left out", limit+1)) {
		t.Errorf("structured content was left out without a word: %+v", res.Content)
	}
}

// Pictures reach the model as pictures, or are named; what is none never fails a call.
func TestPicturesOfEveryKind(t *testing.T) {
	const limit = 610 << 10
	h := &Handler{opts: Options{MaxResult: limit}}
	big := pngBytes + strings.Repeat("x", limit)
	for name, tc := range map[string]struct{ wire, want string }{
		"a whole data URL of 600 KB": {`"data:image/png;base64,` + b64(pngBytes+strings.Repeat("x", 600<<10)) + `"`, "image:image/png"},
		"blanks for plus signs":      {`"data:image/png;base64,` + strings.ReplaceAll(b64(pngBytes+"\xfb\xef\xbe"), "+", " ") + `"`, "image:image/png"},
		"line ends in base64":        {`"data:image/png;base64,` + b64(pngBytes)[:8] + `\r\n` + b64(pngBytes)[8:] + `"`, "image:image/png"},
		"SVG":                        {`"data:image/svg+xml;base64,` + b64("<svg/>") + `"`, "text:[left out: data of"},
		"SVG as text":                {`"data:image/svg+xml,<svg/>"`, "text:[left out: data of"},
		"a page called a picture":    {`"data:image/png;base64,` + b64("<html>") + `"`, "text:[left out: data of"},
		"HTML":                       {`"data:text/html,<p>"`, "text:data:text/html,<p>"},
		"over the limit":             {`"data:image/png;base64,` + b64(big) + `"`, fmt.Sprintf("text:[image of %d bytes left out by jsbridge: the limit of a result is %d (--max-result)", len(big), limit)},
		"inside an object":           {`{"image":"data:image/png;base64,AA","note":"x"}`, `text:{"image":"data:image/png;base64,AA","note":"x"} structured:`},
	} {
		if got := shape(mapped(h, entry(t, `{"name":"x"}`), tenant.Answer{Result: json.RawMessage(tc.wire)})); !strings.HasPrefix(got, tc.want) || strings.HasSuffix(got, "error") {
			t.Errorf("%s: %.200s; want %s", name, got, tc.want)
		}
	}
}
