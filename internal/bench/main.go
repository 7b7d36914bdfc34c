// Command bench measures what jsbridge costs. It runs the real binary beside
// two yardsticks, each with a scripted page of its own, and calls the page's
// one tool through all three:
//
//	jsbridge  HTTP ─▶ MCP ─▶ jsbridge ─▶ WebSocket ─▶ page, and back
//	bare      HTTP ─▶ MCP ─▶ go-sdk and nothing else ─▶ WebSocket ─▶ page, and back
//	floor     HTTP ─▶ no MCP at all ─▶ WebSocket ─▶ page, and back
//
// The yardsticks are not imitations of jsbridge: no sessions of pages, no
// checks, no limits. The floor is what the hops cost on this machine today, and
// bare is what MCP adds to it. Absolute figures depend on the machine and on
// its other users, so the three take turns and the verdict is about ratios.
//
// Beside that it has a page come and leave as a root connection of another
// jsbridge, and measures when a thousand sessions know, and what memory it takes.
//
// With -dashboard it has 500 calls a second made of many pages, without a dashboard
// and with one that reads and one that does not.
//
// Servers, pages and callers are processes of their own on one machine and
// share its processors. Figures are printed whether the targets are met or
// not; the exit code is 1 only for what went wrong.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"jsbridge/internal/rig"
)

func main() {
	if role := os.Getenv(roleVariable); role != "" {
		os.Exit(play(role, os.Args[1:]))
	}
	var o options
	flag.DurationVar(&o.duration, "duration", 3*time.Second, "how long each measurement takes")
	flag.IntVar(&o.rounds, "rounds", 3, "how often each measurement is taken")
	flag.IntVar(&o.root.sessions, "sessions", 1000, "how many sessions are told of a root connection")
	flag.IntVar(&o.root.rounds, "root-rounds", 100, "how often the root connection comes and leaves; 0 leaves it out")
	flag.IntVar(&o.board.pages, "dashboard", 0, "how many pages there are while dashboards are measured, such as 200; 0 leaves them out")
	only := flag.Bool("only-dashboard", false, "measures nothing else")
	output := flag.String("o", "", "file to write the report to, besides stdout")
	flag.Parse()
	o.changes = 20
	o.board = boardOptions{pages: o.board.pages, tools: 50, rate: 500, rounds: o.rounds, each: o.duration}
	o.onlyBoard = *only
	if flag.NArg() > 0 || o.duration < 10*time.Millisecond || o.rounds < 1 || o.root.sessions < 1 || o.root.rounds < 0 || o.board.pages < 0 || o.onlyBoard && o.board.pages == 0 {
		fmt.Fprintln(os.Stderr, "bench: -duration must be at least 10ms, -rounds and -sessions at least 1, -root-rounds and -dashboard at least 0, -only-dashboard needs -dashboard, and there are no arguments")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := bench(ctx, o, *output); err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(1)
	}
}

// bench runs everything and writes the report once it is complete.
func bench(ctx context.Context, o options, output string) error {
	res, err := run(ctx, o, os.Stderr)
	if err != nil {
		return err
	}
	var report bytes.Buffer
	res.write(&report)
	if _, err := os.Stdout.Write(report.Bytes()); err != nil {
		return err
	}
	if output == "" {
		return nil
	}
	return os.WriteFile(output, report.Bytes(), 0o644)
}

type options struct {
	duration  time.Duration // of one measurement
	rounds    int
	changes   int // of the tool list
	root      rootOptions
	board     boardOptions
	onlyBoard bool
}

// inFlight are the numbers of callers measured.
var inFlight = []int{1, 16, 64}

// run measures. Whatever it started has ended when it returns.
func run(ctx context.Context, o options, progress io.Writer) (_ *results, err error) {
	dir, err := os.MkdirTemp("", "jsbridge-bench")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	fmt.Fprintln(progress, "bench: building jsbridge")
	binary, err := rig.Build(ctx, dir)
	if err != nil {
		return nil, err
	}
	version, err := exec.CommandContext(ctx, binary, "version").Output()
	if err != nil {
		return nil, fmt.Errorf("asking jsbridge for its version: %w", err)
	}

	c := newCrew(ctx)
	defer c.stop()
	defer func() { // a process that ended is the cause of whatever failed then
		if cause := context.Cause(c.ctx); cause != nil && err != nil && !errors.Is(err, cause) {
			err = fmt.Errorf("%w (%v)", cause, err)
		}
	}()
	res := &results{options: o, version: string(bytes.TrimSpace(version)), machine: describeMachine()}
	defer func() { res.loadAfter = loadAverage() }()
	if o.board.pages > 0 {
		if res.boards, err = measureDashboard(c, binary, o.board, progress); err != nil {
			return nil, fmt.Errorf("dashboards: %w", err)
		}
	}
	if o.onlyBoard {
		return res, nil
	}
	targets, err := assemble(c, binary)
	if err != nil {
		return nil, err
	}
	for _, n := range inFlight {
		level := level{inFlight: n, samples: make(map[string][]sample)}
		for round := range o.rounds {
			fmt.Fprintf(progress, "bench: %d in flight, round %d of %d\n", n, round+1, o.rounds)
			for _, t := range targets {
				s, err := measure(c.ctx, t, n, o.duration)
				if err != nil {
					return nil, fmt.Errorf("%s, %d in flight: %w", t.name, n, err)
				}
				level.samples[t.name] = append(level.samples[t.name], s)
			}
		}
		res.levels = append(res.levels, level)
	}
	fmt.Fprintf(progress, "bench: %d changes of the tool list\n", o.changes)
	if res.changes, err = measureChanges(c.ctx, targets[0], o.changes); err != nil {
		return nil, fmt.Errorf("changes of the tool list: %w", err)
	}
	if o.root.rounds > 0 {
		fmt.Fprintf(progress, "bench: a root connection, %d sessions, %d rounds\n", o.root.sessions, o.root.rounds)
		if res.roots, err = measureRoots(c, binary, o.root); err != nil {
			return nil, fmt.Errorf("root connection: %w", err)
		}
	}
	return res, nil
}
