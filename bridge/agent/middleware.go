package agent

//lint:file-ignore SA1019 MCP logging works in all versions before 2026-07-28, which clients will speak for long.

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"jsbridge/tenant"
)

// nameKey carries the name that the client called past the SDK.
type nameKey struct{}

// middleware is everything jsbridge does to MCP, around the SDK.
func (s *session) middleware(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (res mcp.Result, err error) {
		defer func() { // the SDK lets a handler's panic end the process
			if p := recover(); p != nil {
				s.log().Error("panic in an MCP request", "method", method, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
				res, err = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error; see jsbridge's log"}
			}
		}()
		if s.shared {
			if method == "server/discover" {
				return next(ctx, method, req)
			}
			if err := s.ensureOpen(); err != nil {
				s.h.counts.refuse(tooManySessions)
				s.log().Warn("MCP request refused", "err", err)
				return nil, refusal(err)
			}
			if from, ok := req.(interface{ ClientInfo() *mcp.Implementation }); ok {
				s.met(agentFrom(from.ClientInfo(), can{}), "")
			}
		}
		switch r := req.(type) {
		case *mcp.ServerRequest[*mcp.InitializeParams]:
			if !s.shared {
				return s.initialize(ctx, next, method, req)
			}
		case *mcp.ServerRequest[*mcp.SetLoggingLevelParams]:
			s.hearsLogs.Store(true)
		case *mcp.ServerRequest[*mcp.CancelledParams]:
			s.cancelled(r.Params)
		case *mcp.ListToolsRequest:
			return s.listTools(ctx, next, method, r)
		case *mcp.ListPromptsRequest:
			return s.listPrompts(ctx, next, method, r)
		case *mcp.ListResourcesRequest:
			return s.listResources(ctx, next, method, r)
		case *mcp.ListResourceTemplatesRequest:
			return s.listTemplates(ctx, next, method, r)
		case *mcp.CallToolRequest:
			return s.call(ctx, next, method, r)
		case *mcp.GetPromptRequest:
			return s.prompt(ctx, next, method, r)
		case *mcp.ReadResourceRequest:
			return s.read(ctx, next, method, r)
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
		s.h.counts.refuse(tooManySessions)
		s.log().Warn("MCP session refused", "err", err)
		return nil, refusal(err)
	}
	res, err := next(ctx, method, req)
	if r, ok := res.(*mcp.InitializeResult); ok && err == nil {
		client := agentOf(ss.InitializeParams())
		s.met(client, r.ProtocolVersion)
		s.log().Info("session opened", "client", nameOf(client))
	}
	return res, err
}

// call renames the call to the internal tool: answering here, without next,
// would lose what the SDK adds around a call. Names that never were a tool here
// are the protocol's error, not the tool's.
func (s *session) call(ctx context.Context, next mcp.MethodHandler, method string, r *mcp.CallToolRequest) (mcp.Result, error) {
	if r.Params == nil {
		return nil, invalidParams("tools/call: params with a name are missing")
	}
	name := r.Params.Name
	if _, own := s.h.builtins[name]; !own && begunBefore(r.Extra) == "" {
		if _, ok := s.view.Snapshot().Find(name); !ok {
			if _, left := s.view.Departed(name); !left {
				s.h.counts.unknownCalls.Add(1)
				return nil, invalidParams("unknown tool %.80q: use tools/list or describe_tools to see which tools there are; names are case-sensitive", name)
			}
		}
	}
	params := *r.Params
	params.Name = internalTool
	ctx = context.WithValue(ctx, nameKey{}, name)
	return next(ctx, method, &mcp.CallToolRequest{Session: r.Session, Params: &params, Extra: r.Extra})
}

// prompt is call for a prompt.
func (s *session) prompt(ctx context.Context, next mcp.MethodHandler, method string, r *mcp.GetPromptRequest) (mcp.Result, error) {
	if r.Params == nil {
		return nil, invalidParams("prompts/get: params with a name are missing")
	}
	name := r.Params.Name
	if _, ok := s.view.Snapshot().FindPrompt(name); !ok && !s.parks(r.Params.RequestState) {
		s.h.counts.unknownCalls.Add(1)
		if d, left := s.view.Departed(name); left {
			return nil, invalidParams("the page %q, which had the prompt %.80q, left this session's view", d.Label, name)
		}
		return nil, invalidParams("unknown prompt %.80q: use prompts/list to see which prompts there are; names are case-sensitive", name)
	}
	params := *r.Params
	params.Name = internalPrompt
	ctx = context.WithValue(ctx, nameKey{}, name)
	return next(ctx, method, &mcp.GetPromptRequest{Session: r.Session, Params: &params, Extra: r.Extra})
}

// read is call for a resource.
func (s *session) read(ctx context.Context, next mcp.MethodHandler, method string, r *mcp.ReadResourceRequest) (mcp.Result, error) {
	if r.Params == nil {
		return nil, invalidParams("resources/read: params with a uri are missing")
	}
	uri := r.Params.URI
	if _, ok := s.view.Snapshot().FindResource(uri); !ok && !s.parks(r.Params.RequestState) {
		s.h.counts.unknownCalls.Add(1)
		return nil, mcp.ResourceNotFoundError(uri)
	}
	params := *r.Params
	params.URI = internalResource
	ctx = context.WithValue(ctx, nameKey{}, uri)
	return next(ctx, method, &mcp.ReadResourceRequest{Session: r.Session, Params: &params, Extra: r.Extra})
}

// listed notes which list the client has just read.
func (s *session) listed(l tenant.List, snap *tenant.Snapshot) {
	if s.teller != nil {
		s.teller.listed(l, snap)
	}
}

func invalidParams(format string, args ...any) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf(format, args...)}
}
