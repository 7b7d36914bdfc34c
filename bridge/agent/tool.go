package agent

import (
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"jsbridge/tenant"
)

var emptyObject = json.RawMessage(`{"type":"object","properties":{}}`)

// toolOf is what an agent sees of a page's tool.
func toolOf(e tenant.Entry) any {
	t := &mcp.Tool{
		Name:        e.Name,
		Title:       e.Tool.Title,
		Description: describe(e),
		InputSchema: e.Tool.InputSchema,
	}
	if e.Tool.OutputSchema != nil {
		t.OutputSchema = e.Tool.OutputSchema
	}
	// The manifest has checked the shapes; what does not decode is left out.
	if e.Tool.Annotations != nil {
		var a mcp.ToolAnnotations
		if json.Unmarshal(e.Tool.Annotations, &a) == nil {
			t.Annotations = &a
		}
	}
	if e.Tool.Icons != nil {
		var icons []mcp.Icon
		if json.Unmarshal(e.Tool.Icons, &icons) == nil {
			t.Icons = icons
		}
	}
	return t
}

// describe attributes what the page says to the page, so that an agent can tell
// it from jsbridge's own words.
func describe(e tenant.Entry) string {
	origin := e.Origin
	switch origin {
	case "":
		origin = "no web origin"
	case "null":
		origin = "an opaque origin (a file or sandboxed page)"
	}
	return fmt.Sprintf("%s\n\n[Described by and run in the web page %q, %s]", e.Tool.Description, e.Label, origin)
}
