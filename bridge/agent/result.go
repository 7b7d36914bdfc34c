package agent

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	fastjson "github.com/segmentio/encoding/json"

	"jsbridge/manifest"
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
// the wire" says. The offence is what the page's developer should hear of.
func (h *Handler) result(t *manifest.Tool, a tenant.Answer) (res *mcp.CallToolResult, offence error) {
	if a.Err != nil {
		return h.bounded(failure(said(t.Name, a.Err))), nil
	}
	res = convert(a.Result)
	if err := checkOutput(t, res); err != nil {
		return failure(fmt.Sprintf("the page's tool %q ran, but its result does not keep to the outputSchema that it declares: %v", t.Name, err)), err
	}
	return h.bounded(res), nil
}

// checkOutput finds what clients would refuse altogether (MCP, tools, output
// schema).
func checkOutput(t *manifest.Tool, res *mcp.CallToolResult) error {
	if t.OutputSchema == nil || res.IsError {
		return nil
	}
	structured, ok := res.StructuredContent.(json.RawMessage)
	if !ok {
		return fmt.Errorf("it must return an object; it returned: %.200s", firstText(res))
	}
	return t.CheckOutput(structured)
}

// saidBriefly is said for an error of the protocol.
func saidBriefly(name string, e *tenant.PageError) string {
	return manifest.Clean(said(name, e), maxMessage, true)
}

// said is what a page's function threw, in words.
func said(name string, e *tenant.PageError) string {
	switch {
	case e.Message != "":
		return e.Message
	case e.Name != "" && e.Name != "Error":
		return fmt.Sprintf("%s threw an error without a message (%s)", name, e.Name)
	}
	return name + " threw an error without a message"
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
		if rest, err := fastjson.Parse(raw, &text, fastjson.ZeroCopy); err == nil && len(rest) == 0 {
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

// passThrough takes an object with a content array, or with structured content, as
// MCP's own shape.
func passThrough(raw json.RawMessage) (*mcp.CallToolResult, bool) {
	var shape map[string]json.RawMessage
	if json.Unmarshal(raw, &shape) != nil {
		return nil, false
	}
	structured := shape["structuredContent"]
	if !isObject(structured) {
		structured = nil // clients refuse anything but an object
	}
	if shape["content"] == nil && structured != nil {
		shape["content"] = []byte("[]")
	}
	if len(shape["content"]) == 0 || shape["content"][0] != '[' {
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
	if err := decodeOwn(shape, []string{"content", "isError", "_meta"}, &res); err != nil {
		return failure(fmt.Sprintf("the page returned MCP content that is not valid: %v", err)), true
	}
	if res.Content == nil {
		res.Content = []mcp.Content{}
	}
	if structured != nil {
		res.StructuredContent = structured
		if len(res.Content) == 0 { // for clients that know no structured content
			res.Content = append(res.Content, &mcp.TextContent{Text: string(structured)})
		}
	}
	for i, c := range res.Content {
		res.Content[i] = usable(c)
	}
	res.Meta = ownMeta(res.Meta)
	return &res, true
}

// decodeOwn decodes those members of an MCP result that are a page's to say.
func decodeOwn(shape map[string]json.RawMessage, members []string, into any) error {
	own := make(map[string]json.RawMessage, len(members))
	for _, name := range members {
		if shape[name] != nil {
			own[name] = shape[name]
		}
	}
	raw, err := json.Marshal(own)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}

// usable makes an item of a page fit for clients, which refuse a whole result for
// one that is not.
func usable(item mcp.Content) mcp.Content {
	switch c := item.(type) {
	case *mcp.TextContent:
		c.Meta = ownMeta(c.Meta)
		return c
	case *mcp.AudioContent:
		c.Meta = ownMeta(c.Meta)
		return c
	case *mcp.ImageContent:
		found := media(c.Data, c.MIMEType)
		if image, ok := found.(*mcp.ImageContent); ok {
			image.Meta, image.Annotations = ownMeta(c.Meta), c.Annotations
		}
		if found == nil {
			return unusable(c.MIMEType, len(c.Data))
		}
		return found
	case *mcp.ResourceLink:
		if c.URI == "" {
			return &mcp.TextContent{Text: "[left out: a link to a resource without a uri]"}
		}
		c.Name, c.Meta = cmp.Or(c.Name, c.URI), ownMeta(c.Meta)
		return c
	case *mcp.EmbeddedResource:
		if c.Resource == nil || c.Resource.URI == "" {
			return &mcp.TextContent{Text: "[left out: a resource without a uri]"}
		}
		// How the page's script sends any binary value.
		if strings.HasPrefix(c.Resource.URI, "page://blob/") {
			if found := media(c.Resource.Blob, c.Resource.MIMEType); found != nil {
				return found
			}
		}
		c.Meta, c.Resource.Meta = ownMeta(c.Meta), ownMeta(c.Resource.Meta)
		return c
	}
	return &mcp.TextContent{Text: fmt.Sprintf("[left out: content of the kind %T, which is for models only]", item)}
}

// ownMeta leaves out what is not for a page to say: keys of the protocol itself,
// whose prefix has one of its names as the second label, or as the first of several
// (MCP, basic, _meta).
func ownMeta(m mcp.Meta) mcp.Meta {
	maps.DeleteFunc(m, func(key string, _ any) bool {
		prefix, _, ok := strings.Cut(key, "/")
		if !ok {
			return key == "progressToken"
		}
		labels := strings.Split(prefix, ".")
		for i, label := range labels[:min(2, len(labels))] {
			if (label == "modelcontextprotocol" || label == "mcp") && len(labels) > 1 && i <= 1 {
				return true
			}
		}
		return false
	})
	return m
}

// bounded cuts what is longer than the limit, and says so.
func (h *Handler) bounded(r *mcp.CallToolResult) *mcp.CallToolResult {
	limit := h.opts.MaxResult
	if s, ok := r.StructuredContent.(json.RawMessage); ok && len(s) > limit {
		r.StructuredContent = nil
	}
	left := limit
	for i, c := range r.Content {
		r.Content[i], left = h.bound(c, left)
	}
	return r
}

// bound cuts an item to what is left of the limit, and tells what is left then.
func (h *Handler) bound(item mcp.Content, left int) (mcp.Content, int) {
	limit := h.opts.MaxResult
	leaveOut := func(what string, size int) (mcp.Content, int) {
		if size <= left {
			return item, left - size
		}
		h.counts.cut(size)
		return &mcp.TextContent{Text: fmt.Sprintf("[%s of %d bytes left out by jsbridge: the limit of a result is %d (--max-result); have the page return a smaller one]", what, size, limit)}, left
	}
	switch c := item.(type) {
	case *mcp.TextContent:
		if len(c.Text) > left {
			h.counts.cut(len(c.Text) - left)
			c.Text = cut(c.Text, left) + fmt.Sprintf("\n[cut by jsbridge: the full text has %d bytes, the limit is %d (--max-result); have the page return less, for example a part or a count]", len(c.Text), limit)
			return c, 0
		}
		return c, left - len(c.Text)
	case *mcp.ImageContent:
		return leaveOut("image", len(c.Data))
	case *mcp.AudioContent:
		return leaveOut("audio", len(c.Data))
	case *mcp.ResourceLink:
		return leaveOut("link", len(c.URI)+len(c.Name)+len(c.Title)+len(c.Description))
	case *mcp.EmbeddedResource:
		if c.Resource != nil {
			return leaveOut("resource", len(c.Resource.URI)+max(len(c.Resource.Blob), len(c.Resource.Text)))
		}
	}
	return item, left
}

// cut shortens text to at most n bytes at a character's boundary.
func cut(text string, n int) string {
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return strings.Clone(text[:n])
}
