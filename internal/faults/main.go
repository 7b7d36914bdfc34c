// Command faults breaks things around jsbridge, one after the other, and looks
// whether it does what it promises: processes that are killed, stopped or cut off,
// peers that are slow or talk rubbish, a full disk, a clock that jumps.
//
// Each scenario has the real binary to itself, and real MCP clients over HTTP.
// Pages are scripted WebSockets, and Chromium where the browser or the page's
// script is what matters. Beside what the scenario promises, three things must hold
// after each:
//
//   - Nothing leaks: goroutines and file descriptors are no more than before, the
//     heap, after a collection, no larger but for a little.
//   - No other peer saw it: a bystander, a client with a page of its own, calls all
//     the time. No call of it may fail, its page stays connected and its list of
//     tools unchanged. Where the server itself ends, there is a new bystander.
//   - The server's log has neither a panic nor an error.
//
// The exit code is 1 when a scenario fails; one that this machine can't show does not
// count. docs/reliability.md has the outcome.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"time"

	"jsbridge/internal/rig"
)

// longest bounds the whole run.
const longest = 30 * time.Minute

func main() {
	if role := os.Getenv(roleVariable); role != "" {
		os.Exit(play(role, os.Args[1:]))
	}
	pattern := flag.String("run", "", "tries only the scenarios whose name this regular expression matches")
	list := flag.Bool("list", false, "names the scenarios and what they promise, and ends")
	flag.Parse()
	chosen, err := choose(*pattern)
	if err != nil || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "faults: there are no arguments, and -run takes a regular expression:", err)
		os.Exit(2)
	}
	if *list {
		for _, s := range chosen {
			fmt.Printf("%s\n    %s\n", s.name, s.promise)
		}
		return
	}
	rig.Main("faults", longest, func(ctx context.Context) error { return run(ctx, chosen, os.Stdout, os.Stderr) })
}

func choose(pattern string) ([]scenario, error) {
	matches, err := regexp.Compile(pattern)
	if err != nil {
		return nil, err
	}
	chosen := slices.DeleteFunc(slices.Concat(families...), func(s scenario) bool { return !matches.MatchString(s.name) })
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no scenario's name matches %q", pattern)
	}
	return chosen, nil
}

var errFailed = errors.New("a scenario failed")

// run tries the scenarios and writes the table. Whatever it started has ended when
// it returns.
func run(ctx context.Context, chosen []scenario, out, progress io.Writer) error {
	dir, err := os.MkdirTemp("", "jsbridge-faults")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	fmt.Fprintln(progress, "faults: building jsbridge")
	binary, err := rig.Build(ctx, dir)
	if err != nil {
		return err
	}
	var outcomes []outcome
	failed := false
	for _, s := range chosen {
		fmt.Fprintf(progress, "faults: %s\n", s.name)
		o := try(ctx, binary, dir, s)
		if errors.Is(o.err, errSkipped) {
			fmt.Fprintf(progress, "faults: %s was not shown: %v\n", s.name, o.err)
		} else if o.err != nil {
			fmt.Fprintf(progress, "faults: %s FAILED after %s: %v\n", s.name, o.took.Round(time.Millisecond), o.err)
			failed = true
		}
		outcomes = append(outcomes, o)
		if ctx.Err() != nil {
			break
		}
	}
	write(out, outcomes)
	if failed {
		return errFailed
	}
	return nil
}
