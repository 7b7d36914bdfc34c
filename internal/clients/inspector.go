package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"jsbridge/internal/rig"
)

// inspector tries the MCP Inspector's command line. Each step is a process of
// its own, so there is nobody to be told of a change of the list.
func inspector(flags ...string) func(context.Context, *env, *row) error {
	return func(ctx context.Context, e *env, r *row) error {
		i := &inspection{ctx: ctx, e: e, flags: flags}
		for _, s := range []struct {
			step string
			run  func() (string, error)
		}{
			{stepVersion, i.version}, {stepConnect, i.connect}, {stepTools, i.tools}, {stepBuiltins, i.builtins}, {stepPageTool, i.pageTool},
			{stepIsError, i.isError}, {stepPrompt, i.prompt}, {stepResource, i.resource}, {stepClose, func() (string, error) { return "yes", i.exit }},
		} {
			if detail, err := s.run(); err != nil {
				r.fail(s.step, err)
			} else {
				r.done(s.step, detail)
			}
		}
		return nil
	}
}

type inspection struct {
	ctx   context.Context
	e     *env
	flags []string
	exit  error // of the first process that did not end well
}

const launcher = "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"

// ask runs one method and decodes its result.
func (i *inspection) ask(result any, method string, args ...string) error {
	ctx, cancel := context.WithTimeout(i.ctx, rig.Patience)
	defer cancel()
	cmd := i.e.node.command(ctx, launcher, append(append([]string{"--cli", i.e.url, "--method", method, "--format", "json"}, i.flags...), args...)...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(out) > 0 { // so it tells a result with isError
		err = nil
	}
	if err != nil {
		i.exit = err
		return fmt.Errorf("%w: %.500s", err, errs.Bytes())
	}
	var answer struct{ Result json.RawMessage }
	if err := json.Unmarshal(out, &answer); err != nil {
		return fmt.Errorf("%.500q: %w", out, err)
	}
	return json.Unmarshal(answer.Result, result)
}

// called is a tool's result.
type called struct {
	Content []struct{ Text string }
	IsError bool
}

func (c called) text() string {
	if len(c.Content) == 0 {
		return ""
	}
	return c.Content[0].Text
}

func (i *inspection) call(name string, args ...string) (called, error) {
	var r called
	given := []string{"--tool-name", name}
	for _, a := range args {
		given = append(given, "--tool-arg", a)
	}
	err := i.ask(&r, "tools/call", given...)
	return r, err
}

func unexpected(what any) error { return fmt.Errorf("unexpected: %+v", what) }

func (i *inspection) version() (string, error) {
	out, err := i.e.node.command(i.ctx, launcher, "--cli", "--version").Output()
	return strings.TrimSpace(string(out)), err
}

func (i *inspection) connect() (string, error) {
	var r struct{ ProtocolVersion string }
	err := i.ask(&r, "initialize")
	return r.ProtocolVersion, err
}

func (i *inspection) tools() (string, error) {
	var r struct{ Tools []struct{ Name string } }
	if err := i.ask(&r, "tools/list"); err != nil {
		return "", err
	}
	for _, t := range r.Tools {
		if t.Name == "hello__insert_title" {
			return fmt.Sprint(len(r.Tools)), nil
		}
	}
	return "", unexpected(r)
}

func (i *inspection) builtins() (string, error) {
	for name, want := range map[string]string{"get_embed_snippet": `import("http`, "describe_tools": `"toolPrefix":"hello"`} {
		r, err := i.call(name)
		if err != nil {
			return "", err
		}
		if r.IsError || !strings.Contains(r.text(), want) {
			return "", unexpected(r)
		}
	}
	return "yes", nil
}

func (i *inspection) pageTool() (string, error) {
	r, err := i.call("hello__insert_title", "title=from the Inspector")
	if err == nil && (r.IsError || r.text() != "The heading is now: from the Inspector") {
		err = unexpected(r)
	}
	return "yes", err
}

func (i *inspection) isError() (string, error) {
	r, err := i.call("hello__run_transient", `code=throw new Error("on purpose")`)
	if err == nil && (!r.IsError || !strings.Contains(r.text(), "on purpose")) {
		err = unexpected(r)
	}
	return "yes", err
}

func (i *inspection) prompt() (string, error) {
	var list struct{ Prompts []struct{ Name string } }
	if err := i.ask(&list, "prompts/list"); err != nil {
		return "", err
	}
	var r struct {
		Messages []struct{ Content struct{ Text string } }
	}
	err := i.ask(&r, "prompts/get", "--prompt-name", "hello__rewrite_page", "--prompt-args", "style=formal")
	if err == nil && (len(list.Prompts) != 1 || len(r.Messages) != 1 || !strings.Contains(r.Messages[0].Content.Text, "in a formal style")) {
		err = unexpected(r)
	}
	return "yes", err
}

func (i *inspection) resource() (string, error) {
	var list struct{ Resources []struct{ URI string } }
	if err := i.ask(&list, "resources/list"); err != nil {
		return "", err
	}
	var r struct{ Contents []struct{ Text string } }
	err := i.ask(&r, "resources/read", "--uri", "page://hello/text")
	if err == nil && (len(list.Resources) != 1 || len(r.Contents) != 1 || !strings.Contains(r.Contents[0].Text, "from the Inspector")) {
		err = unexpected(r)
	}
	return "yes", err
}
