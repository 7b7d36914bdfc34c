package agent

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"jsbridge/manifest"
	"jsbridge/tenant"
)

// describedConnection and describedTool are what describe_tools and its kin
// give.
type describedConnection struct {
	ID         string `json:"id"`
	Label      string `json:"label"`
	ToolPrefix string `json:"toolPrefix"`
	Summary    string `json:"summary"`
	Kind       string `json:"kind"`
	// Scope says who sees it: "session", "workspace", "channel" or "root".
	Scope   string          `json:"scope"`
	Channel string          `json:"channel,omitempty"`
	Origin  string          `json:"origin"`
	URL     string          `json:"url"`
	State   tenant.State    `json:"state"`
	Tools   []describedTool `json:"tools"`
	// Left out when there are none.
	Prompts   []describedPrompt   `json:"prompts,omitempty"`
	Resources []describedResource `json:"resources,omitempty"`
	Problems  []manifest.Problem  `json:"problems,omitempty"`
}

type describedTool struct {
	Name        string           `json:"name"`
	PageName    string           `json:"pageName"`
	Description string           `json:"description"`
	InputSchema json.RawMessage  `json:"inputSchema"`
	Source      string           `json:"source"`
	Example     json.RawMessage  `json:"example,omitempty"`
	Origin      *manifest.Origin `json:"origin,omitempty"`
}

type describedPrompt struct {
	Name        string   `json:"name"`
	PageName    string   `json:"pageName"`
	Description string   `json:"description"`
	Arguments   []string `json:"arguments,omitempty"`
}

// describedResource has a URI or a template of one.
type describedResource struct {
	URI         string `json:"uri,omitempty"`
	URITemplate string `json:"uriTemplate,omitempty"`
	Name        string `json:"name"`
	Description string `json:"description"`
	MIMEType    string `json:"mimeType,omitempty"`
}

type description struct {
	Connections []describedConnection `json:"connections"`
}

func describeTools(_ context.Context, s *session, _ *mcp.CallToolRequest, _ json.RawMessage) *mcp.CallToolResult {
	out := description{[]describedConnection{}}
	for _, p := range s.view.Pages() {
		out.Connections = append(out.Connections, describePage(s.view.Info(p)))
	}
	return jsonResult(out)
}

var scopes = map[tenant.Kind]string{tenant.Session: "session", tenant.Workspace: "workspace", tenant.Channel: "channel", tenant.Roots: "root"}

func describePage(i tenant.Info) describedConnection {
	c := describedConnection{ID: i.ID, Label: i.Label, ToolPrefix: i.Prefix, Summary: i.Summary, Kind: "browser",
		Scope: scopes[i.Kind], Channel: i.Channel, Origin: i.Origin, URL: i.URL, State: i.State, Tools: []describedTool{}, Problems: i.Problems}
	for _, e := range i.Tools {
		d := describedTool{Name: e.Name, PageName: e.Tool.Name, Description: e.Tool.Description, InputSchema: e.Tool.InputSchema, Source: "host", Example: e.Tool.Example, Origin: e.Tool.Origin}
		if e.Tool.Dynamic {
			d.Source = "dynamic"
		}
		if why := e.Tool.SchemaProblem(); why != "" {
			c.Problems = append(slices.Clip(c.Problems), manifest.Problem{Name: e.Tool.Name, Index: -1, Reason: why})
		}
		c.Tools = append(c.Tools, d)
	}
	for _, e := range i.Prompts {
		d := describedPrompt{Name: e.Name, PageName: e.Prompt.Name, Description: e.Prompt.Description}
		for _, a := range e.Prompt.Arguments {
			d.Arguments = append(d.Arguments, a.Name)
		}
		c.Prompts = append(c.Prompts, d)
	}
	for _, e := range i.Resources {
		d := describedResource{Name: e.Resource.Name, Description: e.Resource.Description, MIMEType: e.Resource.MIMEType}
		if e.Resource.Template {
			d.URITemplate = e.URI
		} else {
			d.URI = e.URI
		}
		c.Resources = append(c.Resources, d)
	}
	return c
}
