package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"jsbridge/internal/rig"
)

// The protocol's two eras: with sessions, and without.
const (
	withSessions = "2025-11-25"
	stateless    = "2026-07-28"
)

// A client is a real MCP client, in a workspace.
type client struct {
	*mcp.ClientSession
	transport *http.Transport
	changed   atomic.Int64 // how often it was told of another list of tools
}

// clientOptions says what a client is.
type clientOptions struct {
	workspace, version string
	told               chan<- string // of watched resources that changed, by URI; nil: nobody is told
	noStream           bool          // it opens no standalone stream
}

func connect(ctx context.Context, base, workspace, version string) (*client, error) {
	return connectAs(ctx, base, clientOptions{workspace: workspace, version: version})
}

func connectAs(ctx context.Context, base string, o clientOptions) (*client, error) {
	c := &client{transport: &http.Transport{MaxIdleConnsPerHost: 100}}
	sdk := mcp.NewClient(&mcp.Implementation{Name: "faults", Version: "1"}, &mcp.ClientOptions{
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { c.changed.Add(1) },
		ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) {
			if o.told != nil {
				o.told <- r.Params.URI
			}
		},
	})
	transport := &mcp.StreamableClientTransport{Endpoint: base + "/mcp/" + o.workspace, HTTPClient: &http.Client{Transport: c.transport}, DisableStandaloneSSE: o.noStream}
	// The session lives as long as this context.
	ss, err := sdk.Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: o.version})
	if err != nil {
		return nil, fmt.Errorf("an MCP client: %w", err)
	}
	c.ClientSession = ss
	return c, nil
}

// leave ends the session, and what is left of its connections.
func (c *client) leave() {
	_ = c.Close() // the server may be gone
	c.transport.CloseIdleConnections()
}

func (c *client) subscribe(ctx context.Context, uri string) error {
	return c.Subscribe(ctx, &mcp.SubscribeParams{URI: uri})
}

// call calls a tool. An error that the tool gives is failed, with its text.
func (c *client) call(ctx context.Context, tool string, args map[string]any) (text string, failed bool, err error) {
	res, err := c.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		return "", false, err
	}
	for _, part := range res.Content {
		if t, ok := part.(*mcp.TextContent); ok {
			text += t.Text
		}
	}
	return text, res.IsError, nil
}

// succeed calls a tool, which must give this text.
func (c *client) succeed(ctx context.Context, tool string, args map[string]any, want string) error {
	text, failed, err := c.call(ctx, tool, args)
	if err != nil {
		return fmt.Errorf("%s: %w", tool, err)
	}
	if failed || text != want {
		return fmt.Errorf("%s: got %.300q (failed: %v), want %.300q", tool, text, failed, want)
	}
	return nil
}

// echo has a page give a text back.
func (c *client) echo(ctx context.Context, prefix, text string) error {
	ctx, cancel := context.WithTimeout(ctx, rig.Patience)
	defer cancel()
	return c.succeed(ctx, prefix+"__echo", map[string]any{"text": text}, text)
}

// connectString is what pages join this client's workspace by.
func (c *client) connectString(ctx context.Context) (string, error) {
	text, failed, err := c.call(ctx, "get_embed_snippet", nil)
	if err != nil || failed {
		return "", fmt.Errorf("the snippet: %s %w", text, err)
	}
	_, id, found := strings.Cut(text, "tenant=")
	if !found {
		return "", fmt.Errorf("the snippet names no tenant: %q", text)
	}
	id, _, _ = strings.Cut(id, `"`)
	return id, nil
}

// answered is what became of a call.
type answered struct {
	text   string
	failed bool
	err    error
	took   time.Duration
	at     time.Time
}

// begin calls a tool meanwhile.
func (c *client) begin(ctx context.Context, tool string, args map[string]any) <-chan answered {
	done := make(chan answered, 1)
	begun := time.Now()
	go func() {
		text, failed, err := c.call(ctx, tool, args)
		done <- answered{text, failed, err, time.Since(begun), time.Now()}
	}()
	return done
}

// within waits for what must come soon enough.
func within[T any](ctx context.Context, limit time.Duration, what string, from <-chan T) (v T, err error) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case v = <-from:
		return v, nil
	case <-timer.C:
		return v, fmt.Errorf("waited %s in vain for %s", limit, what)
	case <-ctx.Done():
		return v, context.Cause(ctx)
	}
}
