package tenant

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"jsbridge/manifest"
)

// PageCode says what becomes of code that is to become a page's tool.
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

// maxSaid bounds what a page's script may say to confirm something, in bytes.
const maxSaid = 1 << 10

// NewTool is a tool to be added to a running page.
type NewTool struct {
	Name, Description string
	// Params as in a page's own declaration, nil for none.
	Params json.RawMessage
	// Origin is the code, or the path on window, that it is made from.
	Origin manifest.Origin
}

// ToolErrorKind says why a page's tools were not changed.
type ToolErrorKind int

const (
	// BadTool is one that can't be published.
	BadTool ToolErrorKind = iota + 1
	// ToolExists: the page has one of that name.
	ToolExists
	// NoSuchTool: it has none.
	NoSuchTool
	// HostTool: the page itself declares it, so it can't be taken away.
	HostTool
	// CodeRefused: [Options.PageCode] forbids it.
	CodeRefused
	// PageRefused: the page's script would not, or did not do what it said.
	PageRefused
)

// ToolError is why a tool was not added to a page, or not taken away, other than
// that the page could not be reached.
type ToolError struct {
	Kind ToolErrorKind
	// Dynamic tells of ToolExists that the other one was added at run time too.
	Dynamic bool
	text    string
}

func (e *ToolError) Error() string { return e.text }

func toolErrorf(kind ToolErrorKind, format string, args ...any) *ToolError {
	return &ToolError{Kind: kind, text: fmt.Sprintf(format, args...)}
}

// AddTool has the page make a tool of a path on its window, or of code, and makes
// sure that it is published. It gives what the page's script said to confirm it,
// cleaned. The error is a [*ToolError], a [*CallError] or the context's.
func (p *Page) AddTool(ctx context.Context, n NewTool, c Call) (confirmation string, err error) {
	info := p.Info()
	ask, err := p.mayAdd(n, info)
	if err != nil {
		return "", err
	}
	params, reserved := n.Params, registerByPath
	if params == nil {
		params = json.RawMessage("{}")
	}
	if n.Origin.Kind == "code" {
		reserved = registerByCode
	}
	confirmation, err = p.command(ctx, reserved, struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Path        string          `json:"path,omitempty"`
		Code        string          `json:"code,omitempty"`
		Params      json.RawMessage `json:"params"`
		Ask         bool            `json:"ask,omitempty"`
	}{n.Name, n.Description, n.Origin.Path, n.Origin.Code, params, ask}, c)
	if err != nil {
		return "", err
	}
	info = p.Info()
	added, ok := info.tool(n.Name)
	if !ok {
		why := "its script gave no reason"
		for _, problem := range info.Problems {
			if problem.Name == n.Name {
				why = problem.Reason
			}
		}
		return "", toolErrorf(PageRefused, "the page confirmed it (%.200q), but does not offer %q: %s", confirmation, n.Name, why)
	}
	p.tellTool(ctx, ToolChange{Label: info.Label, Entry: added, Agent: c.Agent})
	return confirmation, nil
}

// mayAdd refuses what would not be published, before the page has it. It tells
// whether the human in the tab is to be asked.
func (p *Page) mayAdd(n NewTool, info Info) (ask bool, err error) {
	code := n.Origin.Kind == "code"
	policy := p.tenant.reg.opts.PageCode
	switch {
	case code && policy == RefuseCode:
		return false, toolErrorf(CodeRefused, "this jsbridge was started with --page-code off, so no code becomes a page's tool.")
	case code && n.Origin.Code == "":
		return false, toolErrorf(BadTool, "the code is empty: give an async function's body, such as return document.title")
	case !code && n.Origin.Path == "":
		return false, toolErrorf(BadTool, "the path is empty: give the function's path on window, such as myApp.notes.add")
	}
	if err := manifest.CheckDynamic(n.Name, n.Description, n.Params, &n.Origin); err != nil {
		return false, toolErrorf(BadTool, "%s was not registered: %v", printable(n.Name), err)
	}
	if e, ok := info.tool(n.Name); ok {
		how := "the page itself declares"
		if e.Tool.Dynamic {
			how = "the page already has"
		}
		err := toolErrorf(ToolExists, "%s a tool %q, published as %s: choose another name", how, e.Tool.Name, e.Name)
		err.Dynamic = e.Tool.Dynamic
		return false, err
	}
	ask = code && policy == AskCode
	if ask && !info.Current {
		return false, toolErrorf(CodeRefused, "this jsbridge was started with --page-code ask, and the page's script is an older one that can't ask its user.")
	}
	return ask, nil
}

// RemoveTool takes a tool away that was added at run time, by the page's own name
// of it. Its errors are those of [Page.AddTool].
func (p *Page) RemoveTool(ctx context.Context, name string, c Call) (confirmation string, err error) {
	info := p.Info()
	before, ok := info.tool(name)
	switch {
	case !ok:
		return "", toolErrorf(NoSuchTool, "this page has no tool %.80q", name)
	case !before.Tool.Dynamic:
		return "", toolErrorf(HostTool, "the page itself declares %q, so it can't be taken away: only tools that were added at run time can", name)
	}
	confirmation, err = p.command(ctx, unregisterTool, struct {
		ToolName string `json:"toolName"`
	}{name}, c)
	if err != nil {
		return "", err
	}
	if after, ok := p.Info().tool(name); ok && after.Tool == before.Tool {
		return "", toolErrorf(PageRefused, "the page confirmed it (%q), but still offers %s", confirmation, before.Name)
	}
	p.tellTool(ctx, ToolChange{Label: info.Label, Removed: true, Entry: before, Agent: c.Agent})
	return confirmation, nil
}

func (p *Page) tellTool(ctx context.Context, c ToolChange) {
	if o := p.tenant.reg.opts.Observer; o != nil {
		c.Page = p.id
		o.Tool(ctx, c)
	}
}

// tool finds a tool by the page's own name of it.
func (i Info) tool(name string) (Entry, bool) {
	for _, e := range i.Tools {
		if e.Tool.Name == name {
			return e, true
		}
	}
	return Entry{}, false
}

// command sends a reserved call to the page's script. It gives what the page
// answered as text.
func (p *Page) command(ctx context.Context, reserved string, args any, c Call) (string, error) {
	raw, err := json.Marshal(args)
	if err != nil {
		return "", err
	}
	c.Args = raw
	answer, err := p.Ask(ctx, reserved, c)
	if err != nil {
		return "", err
	}
	if answer.Err != nil {
		why := answer.Err.Message
		if n := answer.Err.Name; n != "" && n != "Error" {
			why = n + ": " + why
		}
		return "", toolErrorf(PageRefused, "the page refused: %s", manifest.Clean(why, 4*maxSaid, true))
	}
	text, failed := saidIn(answer.Result)
	if text = manifest.Clean(text, maxSaid, true); failed {
		return "", toolErrorf(PageRefused, "the page refused: %s", text)
	}
	return text, nil
}

// saidIn reads a script's answer: a text, or the text in MCP's own shape of a
// result.
func saidIn(raw json.RawMessage) (text string, failed bool) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return "done (no value)", false
	}
	if json.Unmarshal(raw, &text) == nil {
		return text, false
	}
	var shape struct {
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
		IsError bool `json:"isError"`
	}
	if json.Unmarshal(raw, &shape) == nil && len(shape.Content) > 0 {
		return shape.Content[0].Text, shape.IsError
	}
	return string(raw), false
}

func printable(name string) string {
	if name = manifest.Clean(name, 64, false); name == "" {
		return "the tool"
	}
	return fmt.Sprintf("%q", name)
}
