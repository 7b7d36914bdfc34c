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

// waitPages waits until just the connection "hello" is there; all that a page
// declares comes at once.
func waitPages(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, rig.Patience)
	defer cancel()
	c := mcp.NewClient(&mcp.Implementation{Name: "clients", Version: "1"}, nil)
	ss, err := c.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: url, DisableStandaloneSSE: true}, nil)
	if err != nil {
		return err
	}
	defer ss.Close()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		var names []string
		others := false
		for tool, err := range ss.Tools(ctx, nil) {
			if err != nil {
				return errors.Join(err, context.Cause(ctx))
			}
			names = append(names, tool.Name)
			others = others || strings.HasPrefix(tool.Name, "second")
		}
		if !others && slices.Contains(names, "hello__insert_title") {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("the pages' tools are not as expected: %s", strings.Join(names, ", "))
		}
	}
}
