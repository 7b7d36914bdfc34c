package agent

//lint:file-ignore SA1019 MCP logging works in all versions before 2026-07-28, which clients will speak for long.

import (
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// What the SDK knows of: every call of a tool or prompt and every reading of a
// resource is turned into one of these.
const (
	internalTool     = "_"
	internalPrompt   = "_"
	internalResource = "jsbridge:_"
)

var emptyObject = json.RawMessage(`{"type":"object","properties":{}}`)

// newServer makes a server whose requests s serves. A page may come at any time
// and have prompts and resources, so that all of it is declared always.
func (s *session) newServer(m mcp.Middleware) *mcp.Server {
	server := mcp.NewServer(s.h.implementation(), &mcp.ServerOptions{
		Instructions: instructions,
		Capabilities: &mcp.ServerCapabilities{
			Tools:       &mcp.ToolCapabilities{ListChanged: true},
			Prompts:     &mcp.PromptCapabilities{ListChanged: true},
			Resources:   &mcp.ResourceCapabilities{ListChanged: true, Subscribe: true},
			Completions: &mcp.CompletionCapabilities{},
			Logging:     &mcp.LoggingCapabilities{},
		},
		SetCacheable:       func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.CacheScope = "private" },
		CompletionHandler:  s.complete,
		SubscribeHandler:   s.subscribe,
		UnsubscribeHandler: s.unsubscribe,
	})
	s.addTool(server)
	s.addPrompt(server)
	s.addResource(server)
	server.AddReceivingMiddleware(m)
	return server
}

func (s *session) addTool(server *mcp.Server) {
	server.AddTool(&mcp.Tool{Name: internalTool, InputSchema: emptyObject}, s.callTool)
}

func (s *session) addPrompt(server *mcp.Server) {
	server.AddPrompt(&mcp.Prompt{Name: internalPrompt}, s.getPrompt)
}

func (s *session) addResource(server *mcp.Server) {
	server.AddResource(&mcp.Resource{URI: internalResource, Name: internalResource}, s.readResource)
}
