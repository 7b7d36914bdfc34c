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

// PageCode says what becomes of code that an agent wants to run in a page.
type PageCode string

const (
	// AllowCode lets it in.
	AllowCode PageCode = "allow"
	// AskCode asks the human in the page's tab first.
	AskCode PageCode = "ask"
	// RefuseCode refuses it.
	RefuseCode PageCode = "off"
)

// The reserved names of the page protocol that its script answers itself.
const (
	registerByPath = "__register_tool_by_path__"
	registerByCode = "__register_tool_by_code__"
	unregisterTool = "__unregister_tool__"
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
	if args.Path == "" {
		return failure("register_page_tool_by_path: the path is empty: give the function's path on window, such as myApp.notes.add")
	}
	return s.register(ctx, req, args, "register_page_tool_by_path", registerByPath, &manifest.Origin{Kind: "path", Path: args.Path})
}

func registerCode(ctx context.Context, s *session, req *mcp.CallToolRequest, args registration) *mcp.CallToolResult {
	if s.h.opts.PageCode == RefuseCode {
		return failure("this jsbridge was started with --page-code off, so no code of yours runs in a page. register_page_tool_by_path still makes the page's own functions tools.")
	}
	if args.Code == "" {
		return failure("register_page_tool_by_code: the code is empty: give an async function's body, such as return document.title")
	}
	return s.register(ctx, req, args, "register_page_tool_by_code", registerByCode, &manifest.Origin{Kind: "code", Code: args.Code})
}

// register has the page add a tool, and makes sure that it is published.
func (s *session) register(ctx context.Context, req *mcp.CallToolRequest, args registration, builtinName, reserved string, origin *manifest.Origin) *mcp.CallToolResult {
	p, err := s.pageByID(args.ID)
	if err != nil {
		return failure(err.Error())
	}
	params := args.Params
	if params == nil {
		params = json.RawMessage("{}")
	}
	if err := checkTool(args.Name, args.Description, params, origin); err != nil {
		return failure(fmt.Sprintf("%s was not registered: %v", printable(args.Name), err))
	}
	for _, e := range p.Info().Tools {
		if e.Tool.Name == args.Name {
			return failure(exists(e))
		}
	}
	ask := s.h.opts.PageCode == AskCode && reserved == registerByCode
	if ask && !p.Info().Current {
		return failure("this jsbridge was started with --page-code ask, and the page's script is an older one that can't ask its user. register_page_tool_by_path needs no asking.")
	}
	confirmed, failed := s.command(ctx, req, p, builtinName, reserved, struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Path        string          `json:"path,omitempty"`
		Code        string          `json:"code,omitempty"`
		Params      json.RawMessage `json:"params"`
		Ask         bool            `json:"ask,omitempty"`
	}{args.Name, args.Description, args.Path, args.Code, params, ask})
	if failed != nil {
		return failed
	}
	info := s.view.Info(p)
	for _, e := range info.Tools {
		if e.Tool.Name == args.Name {
			s.h.log.Info("tool registered by an agent", "connection", p.ID(), "tool", e.Name, "kind", origin.Kind, "client", nameOf(agentFrom(req.ClientInfo(), can{})))
			return jsonResult(struct {
				Published    string `json:"published"`
				Name         string `json:"name"`
				Connection   string `json:"connection"`
				Confirmation string `json:"confirmation"`
			}{e.Name, args.Name, info.ID, confirmed})
		}
	}
	return failure(fmt.Sprintf("the page confirmed it (%.200q), but does not offer %q: %s", confirmed, args.Name, whyNot(info, args.Name)))
}

// checkTool refuses what would not be published, before the page has it.
func checkTool(name, description string, params json.RawMessage, origin *manifest.Origin) error {
	frame, err := json.Marshal(map[string]any{"tools": []any{map[string]any{
		"name": name, "description": description, "params": params, "source": "dynamic", "origin": origin,
	}}})
	if err != nil {
		return err
	}
	m, err := manifest.Parse(frame, manifest.Limits{})
	if err != nil {
		return err
	}
	if len(m.Problems) > 0 {
		return errors.New(m.Problems[0].Reason)
	}
	return nil
}

func exists(e tenant.Entry) string {
	if e.Tool.Dynamic {
		return fmt.Sprintf("the page already has a tool %q, published as %s: unregister_page_tool takes it away, or choose another name", e.Tool.Name, e.Name)
	}
	return fmt.Sprintf("the page itself declares a tool %q, published as %s: choose another name", e.Tool.Name, e.Name)
}

func whyNot(info tenant.Info, name string) string {
	for _, p := range info.Problems {
		if p.Name == name {
			return p.Reason
		}
	}
	return "its script gave no reason"
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
	found := slices.IndexFunc(info.Tools, func(e tenant.Entry) bool { return e.Tool.Name == args.ToolName })
	if found < 0 { // its own name comes first: a published one may be another tool's
		found = slices.IndexFunc(info.Tools, func(e tenant.Entry) bool { return e.Name == args.ToolName })
	}
	if found < 0 {
		return failure(fmt.Sprintf("this page has no tool %.80q: describe_tools shows which it has", args.ToolName))
	}
	tool := info.Tools[found]
	name := tool.Tool.Name
	if !tool.Tool.Dynamic {
		return failure(fmt.Sprintf("the page itself declares %q, so it can't be taken away: only tools that were added at run time can", name))
	}
	confirmed, failed := s.command(ctx, req, p, "unregister_page_tool", unregisterTool, struct {
		ToolName string `json:"toolName"`
	}{name})
	if failed != nil {
		return failed
	}
	if slices.ContainsFunc(p.Info().Tools, func(e tenant.Entry) bool { return e.Tool == tool.Tool }) {
		return failure(fmt.Sprintf("the page confirmed it (%q), but still offers %s", confirmed, tool.Name))
	}
	s.h.log.Info("tool unregistered by an agent", "connection", p.ID(), "tool", tool.Name, "client", nameOf(agentFrom(req.ClientInfo(), can{})))
	return jsonResult(struct {
		Removed      string `json:"removed"`
		Connection   string `json:"connection"`
		Confirmation string `json:"confirmation"`
	}{tool.Name, info.ID, confirmed})
}

// maxSaid bounds what a page's script may say to confirm something, in bytes.
const maxSaid = 1 << 10

// command sends a reserved call to the page's script. It gives what the page
// answered as text, or the failed result.
func (s *session) command(ctx context.Context, req *mcp.CallToolRequest, p *tenant.Page, builtinName, reserved string, args any) (string, *mcp.CallToolResult) {
	raw, err := json.Marshal(args)
	if err != nil {
		return "", failure(err.Error())
	}
	label := s.view.Info(p)
	answer, err := s.watched(requestOf(ctx, req), errand{label: label.Label, origin: label.Origin, target: builtinName, quiet: true, do: func(ctx context.Context, c tenant.Call) (tenant.Answer, error) {
		c.Args, c.Prefix, c.Name = raw, label.Prefix, builtinName
		return p.Ask(ctx, reserved, c)
	}})
	if err != nil {
		return "", s.failed(builtinName, err)
	}
	if answer.Err != nil {
		why := answer.Err.Message
		if n := answer.Err.Name; n != "" && n != "Error" {
			why = n + ": " + why
		}
		return "", failure("the page refused: " + manifest.Clean(why, 4*maxSaid, true))
	}
	res := convert(answer.Result)
	text := manifest.Clean(firstText(res), maxSaid, true)
	if res.IsError {
		return "", failure("the page refused: " + text)
	}
	return text, nil
}

func printable(name string) string {
	if name = manifest.Clean(name, 64, false); name == "" {
		return "the tool"
	}
	return fmt.Sprintf("%q", name)
}
