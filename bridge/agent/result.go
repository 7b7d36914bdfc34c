package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"jsbridge/tenant"
)

// structuredUpTo is the size of an object's JSON, in bytes, up to which it is
// sent twice: as text and as structured content.
const structuredUpTo = 256 << 10

// failure is a result that tells the model what went wrong.
func failure(message string) *mcp.CallToolResult {
	return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: message}}}
}

func textResult(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

// result maps a page's answer to an MCP result, as PROTOCOL.md's "A result on
// the wire" says.
func (h *Handler) result(e tenant.Entry, a tenant.Answer) *mcp.CallToolResult {
	if a.Err != nil {
		message := a.Err.Message
		if message == "" {
			message = fmt.Sprintf("%s threw an error without a message", e.Tool.Name)
			if a.Err.Name != "" && a.Err.Name != "Error" {
				message += " (" + a.Err.Name + ")"
			}
		}
		return h.bounded(failure(message))
	}
	res := convert(a.Result)
	if e.Tool.OutputSchema != nil && res.StructuredContent == nil && !res.IsError {
		// Clients refuse such a result altogether (MCP, tools, output schema).
		return failure(fmt.Sprintf("the page's tool %q declares an outputSchema, so it must return an object; it returned: %.200s", e.Tool.Name, firstText(res)))
	}
	return h.bounded(res)
}

func firstText(r *mcp.CallToolResult) string {
	for _, c := range r.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			return t.Text
		}
	}
	return "nothing"
}

func convert(raw json.RawMessage) *mcp.CallToolResult {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return textResult("done (no value)")
	}
	switch raw[0] {
	case '"':
		var text string
		if json.Unmarshal(raw, &text) == nil {
			return textOrMedia(text)
		}
	case '{':
		if res, ok := passThrough(raw); ok {
			return res
		}
		res := textResult(string(raw))
		if len(raw) <= structuredUpTo {
			res.StructuredContent = json.RawMessage(raw)
		}
		return res
	}
	return textResult(string(raw))
}

// passThrough takes an object with a content array as MCP's own shape.
func passThrough(raw json.RawMessage) (*mcp.CallToolResult, bool) {
	var shape map[string]json.RawMessage
	if json.Unmarshal(raw, &shape) != nil || len(shape["content"]) == 0 || shape["content"][0] != '[' {
		return nil, false
	}
	var items []struct {
		Type *string `json:"type"`
	}
	if json.Unmarshal(shape["content"], &items) != nil {
		return nil, false // an object that happens to have a "content"
	}
	for _, i := range items {
		if i.Type == nil {
			return nil, false
		}
	}
	var res mcp.CallToolResult
	if err := json.Unmarshal(raw, &res); err != nil {
		return failure(fmt.Sprintf("the page returned MCP content that is not valid: %v", err)), true
	}
	if res.Content == nil {
		res.Content = []mcp.Content{}
	}
	if s, ok := shape["structuredContent"]; ok && len(s) > 0 && s[0] == '{' {
		res.StructuredContent = s
	} else {
		res.StructuredContent = nil // clients refuse anything but an object
	}
	for i, c := range res.Content {
		switch c := c.(type) {
		case *mcp.ImageContent:
			if res.Content[i] = media(c.Data, c.MIMEType); res.Content[i] == nil {
				res.Content[i] = unusable(c.MIMEType, len(c.Data))
			}
		case *mcp.EmbeddedResource:
			// How the page's script sends any binary value.
			if c.Resource != nil && strings.HasPrefix(c.Resource.URI, "page://blob/") {
				if item := media(c.Resource.Blob, c.Resource.MIMEType); item != nil {
					res.Content[i] = item
				}
			}
		}
	}
	return &res, true
}

// bounded cuts what is longer than the limit, and says so.
func (h *Handler) bounded(r *mcp.CallToolResult) *mcp.CallToolResult {
	limit := h.opts.MaxResult
	if s, ok := r.StructuredContent.(json.RawMessage); ok && len(s) > limit {
		r.StructuredContent = nil
	}
	left := limit
	for i, c := range r.Content {
		switch c := c.(type) {
		case *mcp.TextContent:
			if len(c.Text) > left {
				c.Text = cut(c.Text, left) + fmt.Sprintf("\n[cut by jsbridge: the full text has %d bytes, the limit is %d (--max-result); have the page return less, for example a part or a count]", len(c.Text), limit)
				left = 0
				continue
			}
			left -= len(c.Text)
		case *mcp.ImageContent:
			left = leaveOut(r, i, "image", len(c.Data), left, limit)
		case *mcp.AudioContent:
			left = leaveOut(r, i, "audio", len(c.Data), left, limit)
		case *mcp.EmbeddedResource:
			if c.Resource != nil {
				left = leaveOut(r, i, "resource", max(len(c.Resource.Blob), len(c.Resource.Text)), left, limit)
			}
		}
	}
	return r
}

func leaveOut(r *mcp.CallToolResult, i int, what string, size, left, limit int) int {
	if size <= left {
		return left - size
	}
	r.Content[i] = &mcp.TextContent{Text: fmt.Sprintf("[%s of %d bytes left out by jsbridge: the limit of a result is %d (--max-result); have the page return a smaller one]", what, size, limit)}
	return left
}

// cut shortens text to at most n bytes at a character's boundary.
func cut(text string, n int) string {
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return strings.Clone(text[:n])
}
