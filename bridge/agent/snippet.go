package agent

import (
	"context"
	"fmt"
	"html"
	"net/url"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"jsbridge/tenant"
)

type snippetArgs struct {
	Connect *string `json:"connect"`
	Form    string  `json:"form"`
}

// embedSnippet gives the line that connects a page, with the address that the
// client itself used.
func embedSnippet(_ context.Context, s *session, req *mcp.CallToolRequest, args snippetArgs) *mcp.CallToolResult {
	connect := s.view.Own().ID()
	if args.Connect != nil && *args.Connect != "" {
		c := tenant.ParseConnect(*args.Connect)
		if connect = c.String(); connect == "" {
			return failure(fmt.Sprintf("the connect string %.80q names nothing: use \"name\" for a root connection or \"channel:name\" for a channel, of letters, digits, - and _", *args.Connect))
		}
	}
	base := req.Extra.Header.Get(baseHeader)
	script := fmt.Sprintf("%s/main.js?server=%s&tenant=%s", base, url.QueryEscape(base), url.QueryEscape(connect))
	switch args.Form {
	case "script":
		return textResult(fmt.Sprintf(`<script type="module" src="%s"></script>`, html.EscapeString(script)))
	case "inline":
		if s.h.opts.Inline == "" {
			return failure("this jsbridge has no inline form of its script: use the form import or script")
		}
		return textResult(fmt.Sprintf("%s(%q,%q);", s.h.opts.Inline, base, connect))
	}
	return textResult(fmt.Sprintf(`import("%s");`, script))
}
