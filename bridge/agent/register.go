package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"jsbridge/manifest"
	"jsbridge/tenant"
)

// addRegistration adds the built-ins that give a running page tools.
func (m builtins) addRegistration() {
	tool := func(what, schema string) properties {
		return properties{required: []string{"name", "description", what}, schemas: map[string]string{
			"id":          idSchema,
			"name":        `{"type":"string","description":"the new tool's own name; it is published with the page's prefix in front"}`,
			"description": `{"type":"string","description":"what the tool does and when to use it"}`,
			what:          schema,
			"params":      `{"type":"object","description":"the tool's parameters by name: {\"text\":{\"type\":\"string\",\"description\":\"…\",\"optional\":true}}; types are string, number, integer, boolean, array (with items), object (with properties)","additionalProperties":true}`,
		}}
	}
	m.add("register_page_tool_by_path", "Make a page's function a tool",
		"Makes a function that the page already has a tool of it, by the path on window at which it is found, such as myApp.notes.add. It is called with one object of arguments and keeps its this. The tool is there at once, without a reload, and comes back when the tab is reloaded.",
		acts, tool("path", `{"type":"string","description":"the function's path on window, such as myApp.notes.add"}`), with(registerPath))
	m.add("register_page_tool_by_code", "Give a page a tool of your own code",
		"Compiles a JavaScript function body in the page and makes it a tool. The body gets (args, document, window), may use await, and returns the tool's result. Use it for what the page's own tools can't do, for instance to read something off the page. The tool is there at once and comes back when the tab is reloaded.",
		acts, tool("code", `{"type":"string","description":"an async function's body with the parameters args, document and window, such as: return document.title"}`), with(registerCode))
	m.add("unregister_page_tool", "Take a page's tool away",
		"Takes a tool away that was added to a page at run time. The tools that the page itself declares can't be taken away.",
		acts, properties{required: []string{"toolName"}, schemas: map[string]string{
			"id":       idSchema,
			"toolName": `{"type":"string","description":"the tool's name, as given at registration or as published"}`,
		}}, with(unregister))
}

type registration struct {
	ID          string          `json:"id"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Path        string          `json:"path"`
	Code        string          `json:"code"`
	Params      json.RawMessage `json:"params"`
}

func registerPath(ctx context.Context, s *session, req *mcp.CallToolRequest, args registration) *mcp.CallToolResult {
	return s.register(ctx, req, args, "register_page_tool_by_path", manifest.Origin{Kind: "path", Path: args.Path})
}

func registerCode(ctx context.Context, s *session, req *mcp.CallToolRequest, args registration) *mcp.CallToolResult {
	return s.register(ctx, req, args, "register_page_tool_by_code", manifest.Origin{Kind: "code", Code: args.Code})
}

// register has the page add a tool.
func (s *session) register(ctx context.Context, req *mcp.CallToolRequest, args registration, builtinName string, origin manifest.Origin) *mcp.CallToolResult {
	p, err := s.pageByID(args.ID)
	if err != nil {
		return failure(err.Error())
	}
	confirmed, err := s.command(ctx, req, p, builtinName, func(ctx context.Context, c tenant.Call) (string, error) {
		return p.AddTool(ctx, tenant.NewTool{Name: args.Name, Description: args.Description, Params: args.Params, Origin: origin}, c)
	})
	if err != nil {
		return s.notChanged(builtinName, err)
	}
	info := s.view.Info(p)
	for _, e := range info.Tools {
		if e.Tool.Name == args.Name {
			s.log().Info("tool registered by an agent", "connection", p.ID(), "tool", e.Name, "kind", origin.Kind, "client", nameOf(agentFrom(req.ClientInfo(), can{})))
			return jsonResult(struct {
				Published    string `json:"published"`
				Name         string `json:"name"`
				Connection   string `json:"connection"`
				Confirmation string `json:"confirmation"`
			}{e.Name, args.Name, info.ID, confirmed})
		}
	}
	return failure(fmt.Sprintf("the page confirmed it (%.200q), but has left this session's view since", confirmed))
}

// notChanged words why a page's tools are as they were, and what to do.
func (s *session) notChanged(builtinName string, err error) *mcp.CallToolResult {
	var te *tenant.ToolError
	if !errors.As(err, &te) {
		return s.failed(builtinName, err)
	}
	hint := ""
	switch {
	case te.Kind == tenant.ToolExists && te.Dynamic:
		hint = ", or take that one away with unregister_page_tool"
	case te.Kind == tenant.CodeRefused:
		hint = " register_page_tool_by_path still makes the page's own functions tools."
	case te.Kind == tenant.NoSuchTool:
		hint = ": describe_tools shows which it has"
	}
	return failure(te.Error() + hint)
}

func unregister(ctx context.Context, s *session, req *mcp.CallToolRequest, args struct {
	ID       string `json:"id"`
	ToolName string `json:"toolName"`
}) *mcp.CallToolResult {
	p, err := s.pageByID(args.ID)
	if err != nil {
		return failure(err.Error())
	}
	info := s.view.Info(p)
	name := args.ToolName
	// Its own name comes first: a published one may be another tool's.
	if !slices.ContainsFunc(info.Tools, func(e tenant.Entry) bool { return e.Tool.Name == name }) {
		if found := slices.IndexFunc(info.Tools, func(e tenant.Entry) bool { return e.Name == name }); found >= 0 {
			name = info.Tools[found].Tool.Name
		}
	}
	published := name
	if found := slices.IndexFunc(info.Tools, func(e tenant.Entry) bool { return e.Tool.Name == name }); found >= 0 {
		published = info.Tools[found].Name
	}
	confirmed, err := s.command(ctx, req, p, "unregister_page_tool", func(ctx context.Context, c tenant.Call) (string, error) {
		return p.RemoveTool(ctx, name, c)
	})
	if err != nil {
		return s.notChanged("unregister_page_tool", err)
	}
	s.log().Info("tool unregistered by an agent", "connection", p.ID(), "tool", published, "client", nameOf(agentFrom(req.ClientInfo(), can{})))
	return jsonResult(struct {
		Removed      string `json:"removed"`
		Connection   string `json:"connection"`
		Confirmation string `json:"confirmation"`
	}{published, info.ID, confirmed})
}

// command has a page's script do something, as a call of this session. It gives
// what the page said.
func (s *session) command(ctx context.Context, req *mcp.CallToolRequest, p *tenant.Page, builtinName string, do func(context.Context, tenant.Call) (string, error)) (said string, err error) {
	info := s.view.Info(p)
	_, err = s.watched(requestOf(ctx, req), errand{label: info.Label, origin: info.Origin, name: builtinName, quiet: true, do: func(ctx context.Context, c tenant.Call) (_ tenant.Answer, err error) {
		c.Prefix, c.Name, c.Shown = info.Prefix, builtinName, builtinName
		said, err = do(ctx, c)
		return tenant.Answer{}, err
	}})
	return said, err
}
