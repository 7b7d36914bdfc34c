// Command conformance runs the official MCP conformance suite against jsbridge
// with a page in a real browser: the page declares what the suite asks a server
// for, so everything that is checked goes through the tab and back.
//
// It needs the suite installed (npm ci, in this folder; "make conformance" does
// it) and a Chromium. The exit code is 0 only when 2025-11-25 has no failure,
// every scored scenario of 2026-07-28 passes, and whatever else fails is in
// baseline.yml, which lists nothing that passes.
package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"jsbridge/internal/rig"
)

// longest bounds the whole run. One takes 20 seconds on an idle machine.
const longest = 5 * time.Minute

//go:embed baseline.yml
var baselineFile string

//go:embed baseline-sdk.yml
var baselineSDKFile string

func main() {
	rig.Main("conformance", longest, func(ctx context.Context) error { return run(ctx, os.Stdout, os.Stderr) })
}

// baseline is what need not pass, with jsbridge's shortcut or without it.
func baseline(withoutShortcut bool) ([]*acceptance, error) {
	accepted, err := parseBaseline(baselineFile)
	if err != nil {
		return nil, fmt.Errorf("baseline.yml: %w", err)
	}
	if !withoutShortcut {
		return accepted, nil
	}
	more, err := parseBaseline(baselineSDKFile)
	if err != nil {
		return nil, fmt.Errorf("baseline-sdk.yml: %w", err)
	}
	return append(accepted, more...), nil
}

var errFailed = errors.New("the suite does not pass")

// run is the whole run. Whatever it started has ended when it returns.
func run(ctx context.Context, out, progress io.Writer) (err error) {
	accepted, err := baseline(os.Getenv("JSBRIDGE_NO_SHORTCUT") != "")
	if err != nil {
		return err
	}
	su, err := findSuite(ctx)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "jsbridge-conformance")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	fmt.Fprintln(progress, "conformance: building jsbridge")
	binary, err := rig.Build(ctx, dir)
	if err != nil {
		return err
	}
	s, err := rig.Start(ctx, binary, "--state", filepath.Join(dir, "state.json"), "--bare", "conformance")
	if err != nil {
		return err
	}
	defer s.Stop()
	t, err := openPage(ctx, s.Base)
	if err != nil {
		return err
	}
	defer t.close()
	defer func() {
		if err != nil {
			fmt.Fprintf(progress, "The page's console:\n%s\njsbridge's log:\n%s\n", t.console, s.Log)
		}
	}()
	if err := waitPublished(ctx, s.Base); err != nil {
		return err
	}
	v := &verdict{accepted: accepted}
	for _, r := range revisions {
		fmt.Fprintf(progress, "conformance: %s\n", r.name)
		if err := v.judge(ctx, su, r, s.Base+"/mcp", dir, progress); err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
	}
	s.Stop()
	for _, bad := range []string{"panic", "level=ERROR"} {
		if strings.Contains(s.Log.String(), bad) {
			v.problem("jsbridge's log has %q", bad)
		}
	}
	if !v.write(out) {
		return errFailed
	}
	return nil
}
