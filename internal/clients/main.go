// Command clients tries jsbridge with MCP clients that others wrote: it runs the
// real binary, opens the example page in a real Chromium, and has each client do
// the same steps. The outcome is a Markdown table for docs/clients.md.
//
// It needs the clients installed (npm ci, in this folder; "make clients" does
// it) and a Chromium. The exit code is 1 when a step of a client failed.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"jsbridge/internal/rig"
)

// longest bounds the whole run.
const longest = 5 * time.Minute

func main() {
	rig.Main("clients", longest, func(ctx context.Context) error { return run(ctx, os.Stdout, os.Stderr) })
}

// A client is one row of the table.
type client struct {
	name string
	try  func(ctx context.Context, e *env, r *row) error
}

// env is what a client is tried with.
type env struct {
	url   string // of the MCP endpoint
	node  *node
	pages *browser
}

// clients are tried in this order. Each has its own default settings; the
// variants are clients that know both protocol eras and have to be told so.
var clients = []client{
	{"go-sdk", tryGo},
	{"TypeScript SDK v1", script("ts-v1.mjs")},
	{"TypeScript SDK v2", script("ts-v2.mjs")},
	{"TypeScript SDK v2, `versionNegotiation: {mode: 'auto'}`", script("ts-v2.mjs", "auto")},
	{"MCP Inspector CLI", inspector()},
	{"MCP Inspector CLI, `--protocol-era auto`", inspector("--protocol-era", "auto")},
}

var errFailed = errors.New("a client failed")

// run is the whole run. Whatever it started has ended when it returns.
func run(ctx context.Context, out, progress io.Writer) (err error) {
	n, err := findNode(ctx)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "jsbridge-clients")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	n.home = dir
	fmt.Fprintln(progress, "clients: building jsbridge")
	binary, err := rig.Build(ctx, dir)
	if err != nil {
		return err
	}
	s, err := rig.Start(ctx, binary, "--state", filepath.Join(dir, "state.json"), "--reconnect-grace", "10ms")
	if err != nil {
		return err
	}
	defer s.Stop()
	b, err := openBrowser(ctx, s.Base)
	if err != nil {
		return err
	}
	defer b.close()
	if err := b.openHello(); err != nil {
		return err
	}
	e := &env{url: s.Base + "/mcp", node: n, pages: b}
	var rows []*row
	for _, c := range clients {
		fmt.Fprintf(progress, "clients: %s\n", c.name)
		if err := waitPages(ctx, e.url); err != nil {
			return fmt.Errorf("waiting for the page: %w\n%s", err, s.Log)
		}
		r := &row{name: c.name, cells: make(map[string]string)}
		if err := c.try(ctx, e, r); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		rows = append(rows, r)
	}
	s.Stop()
	if !write(out, rows) {
		return fmt.Errorf("%w; jsbridge's log:\n%s", errFailed, s.Log)
	}
	if log := s.Log.String(); strings.Contains(log, "panic") || strings.Contains(log, "level=ERROR") {
		return fmt.Errorf("jsbridge's log has an error:\n%s", log)
	}
	return nil
}
