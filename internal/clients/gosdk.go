package main

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"jsbridge/internal/rig"
)

const goSDK = "github.com/modelcontextprotocol/go-sdk"

// tryGo tries the Go SDK's client, in this process.
func tryGo(ctx context.Context, e *env, r *row) error {
	ctx, cancel := context.WithTimeout(ctx, 2*rig.Patience)
	defer cancel()
	changed := make(chan struct{}, 100)
	c := mcp.NewClient(&mcp.Implementation{Name: "go-sdk", Version: "1"}, &mcp.ClientOptions{
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} },
	})
	r.done(stepVersion, moduleVersion(goSDK))
	ss, err := c.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: e.url}, nil)
	if err != nil {
		r.fail(stepConnect, err)
		return nil
	}
	r.done(stepConnect, ss.InitializeResult().ProtocolVersion)
	g := &goClient{ctx: ctx, ss: ss, e: e, changed: changed}
	for _, s := range []struct {
		step string
		run  func() (string, error)
	}{
		{stepTools, g.tools}, {stepBuiltins, g.builtins}, {stepPageTool, g.pageTool}, {stepIsError, g.isError},
		{stepChanged, g.listChanged}, {stepPrompt, g.prompt}, {stepResource, g.resource}, {stepClose, func() (string, error) { return "yes", ss.Close() }},
	} {
		if detail, err := s.run(); err != nil {
			r.fail(s.step, err)
		} else {
			r.done(s.step, detail)
		}
	}
	return nil
}

func moduleVersion(path string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == path {
				return strings.TrimPrefix(m.Version, "v")
			}
		}
	}
	return "unknown"
}

type goClient struct {
	ctx     context.Context
	ss      *mcp.ClientSession
	e       *env
	changed chan struct{}
}

func (g *goClient) call(name string, args any) (text string, isError bool, err error) {
	r, err := g.ss.CallTool(g.ctx, &mcp.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		return "", false, err
	}
	if len(r.Content) == 1 {
		if t, ok := r.Content[0].(*mcp.TextContent); ok {
			return t.Text, r.IsError, nil
		}
	}
	return "", false, fmt.Errorf("%s: the result is no text", name)
}

// wants calls a tool whose result has to contain a text.
func (g *goClient) wants(name string, args any, failing bool, part string) (string, error) {
	text, isError, err := g.call(name, args)
	if err == nil && (isError != failing || !strings.Contains(text, part)) {
		err = unexpected(text)
	}
	return "yes", err
}

func (g *goClient) tools() (string, error) {
	n, found := 0, false
	for tool, err := range g.ss.Tools(g.ctx, nil) {
		if err != nil {
			return "", err
		}
		n++
		found = found || tool.Name == "hello__insert_title"
	}
	if !found {
		return "", errors.New("the page's tools are not listed")
	}
	return fmt.Sprint(n), nil
}

func (g *goClient) builtins() (string, error) {
	if _, err := g.wants("get_embed_snippet", nil, false, `import("http`); err != nil {
		return "", err
	}
	return g.wants("describe_tools", nil, false, `"toolPrefix":"hello"`)
}

func (g *goClient) pageTool() (string, error) {
	return g.wants("hello__insert_title", map[string]any{"title": "from Go"}, false, "The heading is now: from Go")
}

func (g *goClient) isError() (string, error) {
	return g.wants("hello__run_transient", map[string]any{"code": `throw new Error("on purpose")`}, true, "on purpose")
}

func (g *goClient) listChanged() (string, error) {
	for len(g.changed) > 0 { // what came before the page
		<-g.changed
	}
	shut, err := g.e.pages.openSecond()
	if err != nil {
		return "", err
	}
	defer shut()
	select {
	case <-g.changed:
		return "yes", nil
	case <-time.After(rig.Patience):
		return "", errors.New("no list_changed")
	}
}

func (g *goClient) prompt() (string, error) {
	list, err := g.ss.ListPrompts(g.ctx, nil)
	if err != nil {
		return "", err
	}
	listed := slices.ContainsFunc(list.Prompts, func(p *mcp.Prompt) bool { return p.Name == "hello__rewrite_page" })
	r, err := g.ss.GetPrompt(g.ctx, &mcp.GetPromptParams{Name: "hello__rewrite_page", Arguments: map[string]string{"style": "formal"}})
	if err != nil {
		return "", err
	}
	if listed && len(r.Messages) == 1 {
		if t, ok := r.Messages[0].Content.(*mcp.TextContent); ok && strings.Contains(t.Text, "in a formal style") {
			return "yes", nil
		}
	}
	return "", unexpected(r)
}

func (g *goClient) resource() (string, error) {
	list, err := g.ss.ListResources(g.ctx, nil)
	if err != nil {
		return "", err
	}
	listed := slices.ContainsFunc(list.Resources, func(r *mcp.Resource) bool { return r.URI == "page://hello/text" })
	r, err := g.ss.ReadResource(g.ctx, &mcp.ReadResourceParams{URI: "page://hello/text"})
	if err != nil {
		return "", err
	}
	if !listed || len(r.Contents) != 1 || !strings.Contains(r.Contents[0].Text, "from Go") {
		return "", unexpected(r)
	}
	return "yes", nil
}
