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
// its other users, so the three take turns, another one first in each round, and
// the verdict is about ratios.
// With the variable BENCH_PEER, an executable or a command line of any server
// that takes pages of the older protocol, that server takes its turn as well.
//
// Beside the calls, short and with long arguments, it measures the reading of a
// long tool list, the start of the process, the memory it takes when idle and
// after many long calls, the size of the binary, and when a thousand sessions
// know that a page has come or left as a root connection of another jsbridge,
// and what memory that takes.
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
	"cmp"
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
	o := options{inFlight: []int{1, 16, 64}, large: 100_000, largeInFlight: []int{1, 16}, changes: 20, release: true, peer: os.Getenv(peerVariable)}
	flag.DurationVar(&o.duration, "duration", 3*time.Second, "how long each measurement takes")
	flag.IntVar(&o.rounds, "rounds", 5, "how often each measurement is taken")
	flag.IntVar(&o.listed, "list", 1000, "how many tools the long list has; 0 leaves it out")
	flag.IntVar(&o.starts, "starts", 20, "how often the process is started; 0 leaves it out")
	flag.IntVar(&o.memory.calls, "memory", 1000, "how many calls memory is measured with; 0 leaves it out")
	flag.DurationVar(&o.memory.settle, "settle", 150*time.Second, "how long memory may take after the calls to be what it was") // Go collects garbage after two idle minutes
	flag.IntVar(&o.root.sessions, "sessions", 1000, "how many sessions are told of a root connection")
	flag.IntVar(&o.root.rounds, "root-rounds", 300, "how often the root connection comes and leaves; 0 leaves it out")
	flag.IntVar(&o.board.pages, "dashboard", 0, "how many pages there are while dashboards are measured, such as 200; 0 leaves them out")
	flag.BoolVar(&o.onlyBoard, "only-dashboard", false, "measures nothing else")
	output := flag.String("o", "", "file to write the report to, besides stdout")
	markdown := flag.String("markdown", "", "Markdown file in which the report replaces what is between the lines\n"+figuresBegin+" and "+figuresEnd)
	flag.Parse()
	o.memory.rounds, o.memory.still = min(o.rounds, 5), 2*time.Second // it varies little
	o.board = boardOptions{pages: o.board.pages, tools: 50, rate: 500, rounds: o.rounds, each: o.duration}
	if err := o.check(); err != nil || flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "bench: %v\n", cmp.Or(err, errors.New("there are no arguments")))
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := bench(ctx, o, *output, *markdown); err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(1)
	}
}

func (o options) check() error {
	switch {
	case o.duration < 10*time.Millisecond || o.memory.settle < 0:
		return errors.New("-duration must be at least 10ms and -settle not negative")
	case o.rounds < 1 || o.root.sessions < 1:
		return errors.New("-rounds and -sessions must be at least 1")
	case min(o.listed, o.starts, o.memory.calls, o.root.rounds, o.board.pages) < 0:
		return errors.New("-list, -starts, -memory, -root-rounds and -dashboard must be at least 0")
	case o.onlyBoard && o.board.pages == 0:
		return errors.New("-only-dashboard needs -dashboard")
	}
	return nil
}

// bench runs everything and writes the report once it is complete.
func bench(ctx context.Context, o options, output, markdown string) error {
	if markdown != "" { // better now than after the run
		if _, _, err := aroundFigures(markdown); err != nil {
			return err
		}
	}
	res, err := run(ctx, o, os.Stderr)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	report := res.report()
	report.write(&text)
	_, err = os.Stdout.Write(text.Bytes())
	if output != "" {
		err = errors.Join(err, os.WriteFile(output, text.Bytes(), 0o644))
	}
	if markdown != "" {
		err = errors.Join(err, report.replaceFigures(markdown))
	}
	return err
}

type options struct {
	duration      time.Duration // of one measurement
	rounds        int
	inFlight      []int // the numbers of callers
	large         int   // bytes of long arguments
	largeInFlight []int
	changes       int // of the tool list
	listed        int // tools of the long list; 0 leaves it out
	starts        int // 0 leaves them out
	memory        memoryOptions
	release       bool // measures what is built for release, too
	root          rootOptions
	board         boardOptions
	onlyBoard     bool
	peer          string // see peerVariable; "" for none
}

// run measures. Whatever it started has ended when it returns.
func run(ctx context.Context, o options, progress io.Writer) (_ *results, err error) {
	dir, err := os.MkdirTemp("", "jsbridge-bench")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	loadBefore := loadAverage() // before the compiler's
	fmt.Fprintln(progress, "bench: building jsbridge")
	binary, err := rig.Build(ctx, dir)
	if err != nil {
		return nil, err
	}
	version, err := exec.CommandContext(ctx, binary, "version").Output()
	if err != nil {
		return nil, fmt.Errorf("asking jsbridge for its version: %w", err)
	}

	c := newCrew(ctx, dir)
	defer c.stop()
	defer func() { // a process that ended is the cause of whatever failed then
		if cause := context.Cause(c.ctx); cause != nil && err != nil && !errors.Is(err, cause) {
			err = fmt.Errorf("%w (%v)", cause, err)
		}
	}()
	res := &results{options: o, date: time.Now(), version: string(bytes.TrimSpace(version)), machine: describeMachine(), loadBefore: loadBefore}
	if o.board.pages > 0 {
		if res.boards, err = measureDashboard(c, binary, o.board, progress); err != nil {
			return nil, fmt.Errorf("dashboards: %w", err)
		}
	}
	if !o.onlyBoard {
		err = res.measure(c, field{binary, o.peer}, progress)
	}
	res.loadAfter = loadAverage()
	return res, err
}

// measure takes all that is measured without dashboards, one after the other.
func (r *results) measure(c *crew, f field, progress io.Writer) error {
	for _, step := range []struct {
		what string
		of   int // 0 leaves it out
		take func() error
	}{
		{"calls", 1, func() error { return r.measureCalls(c, f, progress) }},
		{"a long tool list", r.listed, func() (err error) { r.lists, err = measureLists(c, f, r.options, progress); return }},
		{"starts", r.options.starts, func() (err error) { r.starts, err = measureStarts(c, f, r.options.starts, progress); return }},
		{"memory", r.options.memory.calls, func() (err error) { r.memory, err = measureMemory(c, f, r.options, progress); return }},
		{"size", 1, func() (err error) { r.sizes, err = measureSizes(c.ctx, f.binary, c.dir, r.release); return }},
		{"root connection", r.options.root.rounds, func() (err error) {
			fmt.Fprintf(progress, "bench: a root connection, %d sessions, %d rounds\n", r.options.root.sessions, r.options.root.rounds)
			r.roots, err = measureRoots(c, f.binary, r.options.root)
			return
		}},
	} {
		if step.of == 0 {
			continue
		}
		if err := step.take(); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	return nil
}

// measureCalls has the one tool called, with short and with long arguments, and then
// changed.
func (r *results) measureCalls(c *crew, f field, progress io.Writer) error {
	targets, err := f.openAll(c, f.names(floor, bare))
	if err != nil {
		return err
	}
	for _, t := range targets {
		if t.name == peer {
			r.peerName = t.endpoint.server
		}
	}
	measureLevel := func(n, bytes int) error {
		l := level{inFlight: n, bytes: bytes, samples: make(map[string][]sample)}
		for round := range r.rounds {
			fmt.Fprintf(progress, "bench: %s, round %d of %d\n", l.label(), round+1, r.rounds)
			for _, t := range inTurn(targets, round) {
				s, err := measure(c.ctx, t, n, r.duration, calling(t.tool, bytes))
				if err != nil {
					return fmt.Errorf("%s, %s: %w", t.name, l.label(), err)
				}
				l.samples[t.name] = append(l.samples[t.name], s)
			}
		}
		r.levels = append(r.levels, l)
		return nil
	}
	for _, n := range r.inFlight {
		if err := measureLevel(n, 0); err != nil {
			return err
		}
	}
	for _, n := range r.largeInFlight {
		if err := measureLevel(n, r.large); err != nil {
			return err
		}
	}
	fmt.Fprintf(progress, "bench: %d changes of the tool list\n", r.options.changes)
	if r.changes, err = measureChanges(c.ctx, targets[0], r.options.changes); err != nil {
		return fmt.Errorf("changes of the tool list: %w", err)
	}
	for _, t := range targets {
		t.stop()
	}
	return nil
}
