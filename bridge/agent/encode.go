package agent

import (
	stdjson "encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/segmentio/encoding/json"
)

// appendResult appends the result as JSON. The usual one has a text, and what a page
// gave as structured content, which passes as it is.
func appendResult(b []byte, r *mcp.CallToolResult) ([]byte, error) {
	text, structured, ok := usual(r)
	if !ok {
		raw, err := stdjson.Marshal(r) // as the SDK does
		return append(b, raw...), err
	}
	b = append(b, `{"content":[{"type":"text","text":`...)
	b = json.AppendEscape(b, text, 0)
	b = append(b, `}]`...)
	if structured != nil {
		b = append(b, `,"structuredContent":`...)
		b = append(b, structured...)
	}
	if r.IsError {
		b = append(b, `,"isError":true`...)
	}
	return append(b, '}'), nil
}

// usual takes the result apart if there is nothing in it but what appendResult
// writes.
func usual(r *mcp.CallToolResult) (text string, structured stdjson.RawMessage, ok bool) {
	if len(r.Content) != 1 || r.Meta != nil || r.InputRequests != nil || r.RequestState != "" {
		return "", nil, false
	}
	t, ok := r.Content[0].(*mcp.TextContent)
	if !ok || t.Meta != nil || t.Annotations != nil {
		return "", nil, false
	}
	if r.StructuredContent != nil {
		if structured, ok = r.StructuredContent.(stdjson.RawMessage); !ok {
			return "", nil, false
		}
	}
	return t.Text, structured, true
}

// roomFor guesses how many bytes a result takes, for the usual one.
func roomFor(r *mcp.CallToolResult) int {
	if r == nil {
		return 0
	}
	text, structured, _ := usual(r)
	return len(text) + len(text)/16 + len(structured)
}
