package agent

import (
	"context"
	"fmt"

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
	snippet, err := s.h.Snippet(req.Extra.Header.Get(baseHeader), connect, args.Form)
	if err != nil {
		return failure(err.Error())
	}
	return textResult(snippet)
}
