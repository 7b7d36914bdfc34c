package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"jsbridge/internal/rig"
)

// published is the page's tool that is waited for: all of a page's tools,
// prompts and resources come at once.
const published = "test_simple_text"

// waitPublished waits until clients of both eras see what the page declared.
func waitPublished(ctx context.Context, base string) error {
	ctx, cancel := context.WithTimeout(ctx, rig.Patience)
	defer cancel()
	for _, r := range revisions {
		if err := waitTool(ctx, base, r.name); err != nil {
			return fmt.Errorf("%s, waiting for the page's tools: %w", r.name, err)
		}
	}
	return nil
}

func waitTool(ctx context.Context, base, version string) error {
	c := mcp.NewClient(&mcp.Implementation{Name: "conformance", Version: "1"}, nil)
	ss, err := c.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: base + "/mcp", DisableStandaloneSSE: true},
		&mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		return err
	}
	defer ss.Close()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		var names []string
		for tool, err := range ss.Tools(ctx, nil) {
			if err != nil {
				return errors.Join(err, context.Cause(ctx))
			}
			names = append(names, tool.Name)
		}
		if slices.Contains(names, published) {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("no %s among: %s", published, strings.Join(names, ", "))
		}
	}
}
