package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"jsbridge/manifest"
	"jsbridge/tenant"
)

// callTool is the internal tool: it has the name that was called, and routes it
// by looking it up now.
func (s *session) callTool(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	name, _ := ctx.Value(nameKey{}).(string)
	if b, ok := s.h.builtins[name]; ok {
		return b.run(ctx, s, req)
	}
	return s.callPage(ctx, req, name, req.Params.Arguments)
}

// callPage runs a page's tool by its published name. Whatever goes wrong is a
// result with isError, which the agent's model sees; but what only the client can
// mend is an error of the protocol.
func (s *session) callPage(ctx context.Context, req *mcp.CallToolRequest, name string, args json.RawMessage) (*mcp.CallToolResult, error) {
	r := requestOf(ctx, req).repeats(req.Params.InputResponses, req.Params.RequestState)
	c, begun, err := s.join(r)
	if err != nil {
		return nil, err
	}
	if !begun {
		var refused *refusedCall
		if c, refused = s.prepare(r, name, args); refused != nil {
			refused.count.Add(1)
			return failure(refused.why), nil
		}
	}
	out, err := s.run(r, c.errand)
	return s.conclude(r, c, out, err)
}

// pageCall is a call of a page's tool that can be made.
type pageCall struct {
	entry  tenant.Entry
	errand // its name is the published one
}

// refusedCall is one that can't be made.
type refusedCall struct {
	why   string
	count *atomic.Uint64 // of its kind
}

// prepare finds the tool and checks its arguments.
func (s *session) prepare(r *request, name string, args json.RawMessage) (c pageCall, refused *refusedCall) {
	entry, ok := s.view.Snapshot().Find(name)
	var checked json.RawMessage
	switch {
	case !ok && s.waits(r): // its page has gone, which the call that waits knows best
		entry.Tool = &manifest.Tool{Name: name}
	case !ok:
		return c, &refusedCall{s.noSuchTool(name), &s.h.counts.unknownCalls}
	default:
		var err error
		if checked, err = entry.Tool.CheckArguments(args); err != nil {
			return c, &refusedCall{fmt.Sprintf("%s was not called: %v", name, err), &s.h.counts.wrongCalls}
		}
	}
	return pageCall{entry, errand{label: entry.Label, origin: entry.Origin, kind: "tool ", name: name, do: func(ctx context.Context, c tenant.Call) (tenant.Answer, error) {
		c.Args, c.Prefix, c.Shown = checked, prefixOf(name), name
		return entry.Page.Call(ctx, entry.Tool, c)
	}}}, nil
}

// conclude makes the result of what became of a call.
func (s *session) conclude(r *request, c pageCall, out reply, err error) (*mcp.CallToolResult, error) {
	if err == nil && out.answer.Err != nil {
		err = s.thrownOn(r, out.answer.Err)
	}
	switch {
	case err != nil:
		return s.callFailed(c.name, err)
	case out.questions != nil:
		return &mcp.CallToolResult{InputRequests: out.questions.requests, RequestState: out.questions.state}, nil
	}
	res, offence := s.h.result(c.entry.Tool, out.answer)
	if offence != nil {
		c.entry.Complain("tool %q: %v", c.entry.Tool.Name, offence)
	}
	s.publicURIs(c.entry.Page, res.Content)
	return res, nil
}

// thrownOn finds that a page's function ended for what is the client's to mend: it
// lacks a capability, or it came back with what the page can't accept.
func (s *session) thrownOn(r *request, e *tenant.PageError) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.lacks != nil && e.Code == codeLacks && s.shared:
		return r.lacks
	case e.Code == codeInvalid && (r.state != "" || r.responses != nil):
		return invalidParams("%s", saidBriefly("the page's function", e))
	}
	return nil
}

// callFailed words why a call failed other than by its function.
func (s *session) callFailed(name string, err error) (*mcp.CallToolResult, error) {
	if err := s.forClient(err); err != nil {
		return nil, err
	}
	return s.failed(name, err), nil
}

// forClient gives the protocol's error, if it is one that only the client can mend.
func (s *session) forClient(err error) error {
	var rpc *jsonrpc.Error
	var lacks *lackError
	switch {
	case errors.As(err, &rpc):
		return err
	case errors.As(err, &lacks) && s.shared:
		return lacks.protocol()
	}
	return nil
}

// failed is callFailed's result.
func (s *session) failed(name string, err error) *mcp.CallToolResult {
	var ce *tenant.CallError
	switch {
	case errors.As(err, &ce):
		s.logOf(err).Warn("call failed", "tool", name, "err", err)
		return failure(ce.Error())
	case errors.Is(err, context.Canceled): // by the client: nobody reads this
		return failure(fmt.Sprintf("%s was cancelled: %v", name, err))
	}
	s.log().Warn("call failed", "tool", name, "err", manifest.Clean(err.Error(), 256, false))
	return failure(fmt.Sprintf("%s failed: %v", name, err))
}

// protocolError words likewise why a prompt or resource could not be had.
func (s *session) protocolError(name string, err error) error {
	if err := s.forClient(err); err != nil {
		return err
	}
	s.logOf(err).Warn("call failed", "name", manifest.Clean(name, 256, false), "err", manifest.Clean(err.Error(), 256, false))
	return refusal(err)
}

// prefixOf is "" for a name that goes without one.
func prefixOf(published string) string {
	prefix, _, ok := strings.Cut(published, "__")
	if !ok {
		return ""
	}
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
