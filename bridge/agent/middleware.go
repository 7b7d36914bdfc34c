package agent

import (
	"context"
	"encoding/base64"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"jsbridge/tenant"
)

// pageSize is how many tools one tools/list gives.
const pageSize = 1000

// callNameKey carries the name that the client called past the SDK.
type callNameKey struct{}

// middleware is everything jsbridge does to MCP, around the SDK.
func (s *session) middleware(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (res mcp.Result, err error) {
		defer func() { // the SDK lets a handler's panic end the process
			if p := recover(); p != nil {
				s.h.log.Error("panic in an MCP request", "method", method, "panic", p, "stack", string(debug.Stack()))
				res, err = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error; see jsbridge's log"}
			}
		}()
		switch method {
		case "initialize":
			return s.initialize(ctx, next, method, req)
		case "tools/list":
			return s.list(ctx, next, method, req)
		case "tools/call":
			return s.call(ctx, next, method, req)
		}
		// Not declared as a capability, so not there.
		if strings.HasPrefix(method, "prompts/") || strings.HasPrefix(method, "resources/") || strings.HasPrefix(method, "completion/") {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("method not found: %s", method)}
		}
		return next(ctx, method, req)
	}
}

func (s *session) initialize(ctx context.Context, next mcp.MethodHandler, method string, req mcp.Request) (mcp.Result, error) {
	if s.view != nil { // a second initialize: the SDK's to refuse
		return next(ctx, method, req)
	}
	ss, ok := req.GetSession().(*mcp.ServerSession)
	if !ok {
		return nil, refusal(fmt.Errorf("no server session"))
	}
	if err := s.open(ss); err != nil {
		s.h.log.Warn("MCP session refused", "err", err)
		return nil, refusal(err)
	}
	res, err := next(ctx, method, req)
	if err == nil {
		s.h.log.Info("session opened", "client", s.clientName())
	}
	return res, err
}

// list answers from the snapshot: built-ins first, for clients that cut the
// list, then the pages' tools by name.
func (s *session) list(ctx context.Context, next mcp.MethodHandler, method string, req mcp.Request) (mcp.Result, error) {
	after := ""
	list, ok := req.(*mcp.ListToolsRequest)
	if ok && list.Params != nil && list.Params.Cursor != "" {
		var err error
		if after, err = decodeCursor(list.Params.Cursor); err != nil {
			return nil, err
		}
		plain := *list.Params
		plain.Cursor = "" // the SDK's own list is one tool long
		req = &mcp.ListToolsRequest{Session: list.Session, Params: &plain, Extra: list.Extra}
	}
	res, err := next(ctx, method, req) // stamps what the protocol version wants
	if err != nil {
		return nil, err
	}
	out, ok := res.(*mcp.ListToolsResult)
	if !ok {
		return nil, refusal(fmt.Errorf("unexpected list result %T", res))
	}
	snap := s.view.Snapshot()
	all := snap.Derive(s.h.publish).([]*mcp.Tool)
	start, builtinCount := 0, len(s.h.builtinTools)
	if after != "" {
		start, _ = slices.BinarySearchFunc(all[builtinCount:], after, func(t *mcp.Tool, name string) int { return strings.Compare(t.Name, name) })
		start += builtinCount
		if start < len(all) && all[start].Name == after {
			start++
		}
	}
	end := min(len(all), start+pageSize)
	out.Tools = all[start:end]
	out.NextCursor = ""
	if end < len(all) {
		out.NextCursor = encodeCursor(all[end-1].Name)
	}
	s.listed(snap)
	return out, nil
}

func encodeCursor(last string) string {
	return base64.RawURLEncoding.EncodeToString([]byte("after:" + last))
}

func decodeCursor(c string) (string, error) {
	b, err := base64.RawURLEncoding.DecodeString(c)
	last, ok := strings.CutPrefix(string(b), "after:")
	if err != nil || !ok || last == "" {
		return "", &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "invalid cursor: use the nextCursor of an earlier tools/list answer as it is"}
	}
	return last, nil
}

// call renames the call to the internal tool: answering here, without next,
// would lose what the SDK adds around a call. Names that never were a tool here
// are the protocol's error, not the tool's.
func (s *session) call(ctx context.Context, next mcp.MethodHandler, method string, req mcp.Request) (mcp.Result, error) {
	r, ok := req.(*mcp.CallToolRequest)
	if !ok || r.Params == nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "tools/call: params with a name are missing"}
	}
	name := r.Params.Name
	if _, own := s.h.builtins[name]; !own {
		if _, ok := s.view.Snapshot().Find(name); !ok {
			if _, left := s.view.Departed(name); !left {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("unknown tool %.80q: use tools/list or describe_tools to see which tools there are; names are case-sensitive", name)}
			}
		}
	}
	params := *r.Params
	params.Name = internalTool
	ctx = context.WithValue(ctx, callNameKey{}, name)
	return next(ctx, method, &mcp.CallToolRequest{Session: r.Session, Params: &params, Extra: r.Extra})
}

// callTool is the internal tool: it has the name that was called, and routes it
// by looking it up now.
func (s *session) callTool(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	name, _ := ctx.Value(callNameKey{}).(string)
	if b, ok := s.h.builtins[name]; ok {
		return b.run(ctx, s, req)
	}
	return s.callPage(ctx, req, name, req.Params.Arguments), nil
}

// publish makes the MCP tools of a snapshot, built-ins included.
func (h *Handler) publish(entries []tenant.Entry) any {
	tools := make([]*mcp.Tool, 0, len(h.builtinTools)+len(entries))
	tools = append(tools, h.builtinTools...)
	for _, e := range entries {
		tools = append(tools, e.Derive(toolOf).(*mcp.Tool))
	}
	return tools
}
