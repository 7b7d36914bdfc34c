package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"jsbridge/tenant"
)

// callPage runs a page's tool by its published name. Whatever goes wrong is a
// result with isError, which the agent's model sees.
func (s *session) callPage(ctx context.Context, req *mcp.CallToolRequest, name string, args json.RawMessage) *mcp.CallToolResult {
	entry, ok := s.view.Snapshot().Find(name)
	if !ok {
		return failure(s.noSuchTool(name))
	}
	checked, err := entry.Tool.CheckArguments(args)
	if err != nil {
		return failure(fmt.Sprintf("%s was not called: %v", name, err))
	}
	answer, err := s.watched(ctx, req, entry.Label, func(ctx context.Context, c tenant.Call) (tenant.Answer, error) {
		c.Args, c.Prefix = checked, prefixOf(name)
		return entry.Page.Call(ctx, entry.Tool, c)
	})
	if err != nil {
		return s.callFailed(name, err)
	}
	return s.h.result(entry, answer)
}

// watched makes a call that ends with the session too, and passes on what the
// page says meanwhile.
func (s *session) watched(ctx context.Context, req *mcp.CallToolRequest, label string, do func(context.Context, tenant.Call) (tenant.Answer, error)) (tenant.Answer, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.ctx, func() { cancel(context.Cause(s.ctx)) })()

	w := newWatch(ctx, s, req, label)
	defer w.stop()
	answer, err := do(ctx, tenant.Call{Agent: s.agent(), Progress: w.token != nil, OnEvent: w.event})
	var ce *tenant.CallError
	if err != nil && !errors.As(err, &ce) {
		err = context.Cause(ctx)
	}
	return answer, err
}

// callFailed words why a call failed other than by its function.
func (s *session) callFailed(name string, err error) *mcp.CallToolResult {
	var ce *tenant.CallError
	if !errors.As(err, &ce) { // the client cancelled: nobody reads this
		return failure(fmt.Sprintf("%s was cancelled: %v", name, err))
	}
	s.h.log.Warn("call failed", "tool", name, "err", err)
	return failure(ce.Error())
}

func prefixOf(published string) string {
	prefix, _, _ := strings.Cut(published, "__")
	return prefix
}

// noSuchTool says what became of a tool, and what there is.
func (s *session) noSuchTool(name string) string {
	var b strings.Builder
	if d, ok := s.view.Departed(name); ok {
		fmt.Fprintf(&b, "The page %q, which had the tool %q, left this session's view %s ago; nothing was called.", d.Label, name, time.Since(d.At).Round(time.Second))
	} else {
		fmt.Fprintf(&b, "There is no tool %.80q.", name)
	}
	pages := s.view.Pages()
	if len(pages) == 0 {
		b.WriteString(" No page is connected: use get_embed_snippet and have the line it gives pasted into the page's DevTools console.")
		return b.String()
	}
	b.WriteString(" Connected now:")
	for i, p := range pages {
		if i == 20 {
			fmt.Fprintf(&b, " and %d more", len(pages)-i)
			break
		}
		info := s.view.Info(p)
		fmt.Fprintf(&b, " %q (its tools start with %s__),", info.Label, info.Prefix)
	}
	return strings.TrimSuffix(b.String(), ",") + ". Use describe_tools for their tools' exact names."
}
