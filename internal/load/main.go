// Command load shows how jsbridge behaves when there is much of everything. It starts
// the real binary once for each number of pages, opens MCP sessions with their streams
// open, has the pages come, each with five tools, spread over the sessions' tenants,
// and prints a table:
//
//	memory        of a page and of a session, after garbage collection and as RSS
//	pages/s       how fast pages connect and register
//	change        a page registers other tools → its session has been told; the same
//	              of a root connection, which all sessions see
//	calls         in one second, p50 and p99, while all pages stay and while 1% of
//	              them leave and come back each second
//
// Every answer is checked, and each session's list must be right in the end.
//
// With -soak it instead calls at a steady pace while pages come and go, samples heap
// and RSS, fits a line through the samples, and says whether memory grows.
//
// Server, pages and callers are processes of their own on one machine and share its
// processors. Figures are printed whether the targets are met or not; the exit code is
// 1 for what went wrong, and for a soak whose memory grows.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"jsbridge/internal/rig"
)

// patience bounds every wait for something that should happen at once.
const patience = 30 * time.Second

type options struct {
	pages       []int
	sessions    int
	callers     int
	duration    time.Duration // of one measurement of calls
	changes     int           // of pages' tools
	rootChanges int
	rest        time.Duration // before the memory is read
	soak        time.Duration // 0: none
	soakPages   int
	soakRate    int // calls in one second
	binary      string
	profiles    string // directory for profiles, "" for none
}

func main() {
	if os.Getenv(roleVariable) == rolePages {
		if err := playPages(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	o := options{changes: 100, rootChanges: 10, rest: restTime}
	pages := flag.String("pages", "100,1000,10000", "how many pages, one row of the table for each")
	flag.IntVar(&o.sessions, "sessions", 1000, "how many MCP sessions")
	flag.IntVar(&o.callers, "callers", 16, "how many call at the same time")
	flag.DurationVar(&o.duration, "duration", 5*time.Second, "how long calls are made, once with all pages staying and once with some coming and going")
	flag.DurationVar(&o.soak, "soak", 0, "makes calls at a steady pace for so long and watches the memory, instead of the table")
	flag.IntVar(&o.soakPages, "soak-pages", 1000, "how many pages the soak has")
	flag.IntVar(&o.soakRate, "soak-rate", 300, "calls in one second of the soak")
	flag.StringVar(&o.binary, "binary", "", "a built jsbridge to measure instead of this source's")
	flag.StringVar(&o.profiles, "profiles", "", "directory to save heap and goroutine profiles of each row to")
	flag.Parse()
	err := o.parsePages(*pages)
	if err == nil && (flag.NArg() > 0 || o.sessions < 1 || o.callers < 1 || o.duration < 100*time.Millisecond || o.soak < 0 || o.soakPages < 2 || o.soakRate < 1) {
		err = errors.New("-sessions, -callers and -soak-rate must be at least 1, -soak-pages 2, -duration 100ms, and there are no arguments")
	}
	if err == nil {
		err = o.checkFiles()
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "load: %v\n", err)
		os.Exit(2)
	}
	rig.Main("load", o.soak+time.Hour, func(ctx context.Context) error { return run(ctx, o) })
}

// parsePages reads -pages.
func (o *options) parsePages(list string) error {
	for part := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || n < 2 {
			return fmt.Errorf("-pages %q: must be numbers from 2 on, with commas in between", list)
		}
		o.pages = append(o.pages, n)
	}
	return nil
}

// checkFiles makes sure that a process may have so many connections. Go programs,
// jsbridge among them, raise the limit by themselves as far as the system lets them.
func (o *options) checkFiles() error {
	need := uint64(o.soakPages)
	for _, n := range o.pages {
		need = max(need, uint64(n))
	}
	need += uint64(o.sessions+o.callers) + 200
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err == nil && limit.Cur < need {
		return fmt.Errorf("a process may have %d files open here, and this takes %d: raise the hard limit (ulimit -Hn), or have fewer -pages", limit.Cur, need)
	}
	return nil
}

func run(ctx context.Context, o options) error {
	if o.binary == "" {
		dir, err := os.MkdirTemp("", "jsbridge-load")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		fmt.Fprintln(os.Stderr, "load: building jsbridge")
		if o.binary, err = rig.Build(ctx, dir); err != nil {
			return err
		}
	}
	if o.soak > 0 {
		return runSoak(ctx, o, os.Stdout, os.Stderr)
	}
	var rows []*row
	for _, n := range o.pages {
		r, err := measureRow(ctx, o.binary, n, o, os.Stderr)
		if err != nil {
			return err
		}
		rows = append(rows, r)
	}
	return report(os.Stdout, rows)
}
