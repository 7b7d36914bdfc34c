package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"jsbridge/internal/rig"
)

// A scenario is one fault and what is promised about it.
type scenario struct {
	name    string
	promise string
	quick   bool     // takes less than 5 s, so it is one of the package's tests
	args    []string // further flags of the server
	// alarms: the fault is one of this machine, which the server's log may call an
	// error.
	alarms bool
	// wrap gives a program to start in place of the binary. Nil: the binary.
	wrap func(ctx context.Context, a *arena, binary string) (string, error)
	// run does it, and gives what was measured. Whatever it started has ended when it
	// returns.
	run func(ctx context.Context, a *arena) (detail string, err error)
}

// families are all scenarios, in the table's order.
var families = [][]scenario{kills, reconnects, cuts, slowPeers, pauses, disks, clocks, garbages, ports}

// An arena is what one scenario happens in.
type arena struct {
	dir    string // for the scenario alone
	binary string // as started: the scenario's wrapper, if it has one
	args   []string
	server *rig.Server
	asking *http.Client // see measure
	by     *bystander
}

// outcome is what became of a scenario.
type outcome struct {
	scenario
	detail        string
	before, after usage
	by            string // what the bystander has to tell
	took          time.Duration
	err           error
}

// errSkipped says that this machine can't show a fault.
var errSkipped = errors.New("skipped")

// try has a scenario happen.
func try(ctx context.Context, binary, dir string, s scenario) (o outcome) {
	begun := time.Now()
	o.scenario = s
	o.err = func() error {
		home, err := os.MkdirTemp(dir, "scenario")
		if err != nil {
			return err
		}
		a := &arena{dir: home, binary: binary}
		a.args = append([]string{"--state", filepath.Join(home, "state.json"), "--debug", "--reconnect-grace", "1s"}, s.args...)
		if s.wrap != nil {
			if a.binary, err = s.wrap(ctx, a, binary); err != nil {
				return err
			}
		}
		if err := a.start(ctx); err != nil {
			return err
		}
		defer func() { a.stop() }()
		return a.try(ctx, s, &o)
	}()
	o.took = time.Since(begun)
	return o
}

func (a *arena) try(ctx context.Context, s scenario, o *outcome) (err error) {
	if o.before, err = steady(ctx, a); err != nil {
		return err
	}
	a.by.resume()
	if o.detail, err = s.run(ctx, a); err != nil {
		return fmt.Errorf("%w\njsbridge's log ends with:\n%s", err, a.server.Log)
	}
	if o.by, err = a.by.verdict(ctx); err != nil {
		return fmt.Errorf("the bystander: %w\njsbridge's log ends with:\n%s", err, a.server.Log)
	}
	if o.after, err = settle(ctx, a, o.before); err != nil {
		return err
	}
	if alarms := a.server.Log.Alarms(); len(alarms) > 0 && !s.alarms {
		return fmt.Errorf("jsbridge's log has:\n%s", strings.Join(alarms, "\n"))
	}
	return nil
}

// start starts the server, with a bystander.
func (a *arena) start(ctx context.Context, more ...string) (err error) {
	if a.server, err = rig.Start(ctx, a.binary, append(a.args, more...)...); err != nil {
		return err
	}
	a.asking = &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}}
	a.by, err = newBystander(ctx, a.server.Base)
	if err != nil {
		a.server.Stop()
	}
	return err
}

// restart starts a server on the port of one that was killed.
func (a *arena) restart(ctx context.Context) error {
	a.by.leave()
	a.asking.CloseIdleConnections()
	return a.start(ctx, "--port", a.server.Port())
}

func (a *arena) stop() {
	a.by.leave()
	a.asking.CloseIdleConnections()
	a.server.Stop()
}

// write writes the table for docs/reliability.md.
func write(w io.Writer, outcomes []outcome) {
	fmt.Fprintln(w, "| scenario | promised | result | seen | goroutines | descriptors | heap MB |\n| --- | --- | --- | --- | --- | --- | --- |")
	for _, o := range outcomes {
		result, seen := "pass", o.detail
		if o.by != "" {
			seen += "; bystander: " + o.by
		}
		if errors.Is(o.err, errSkipped) {
			result, seen = "not shown", o.err.Error()
		} else if o.err != nil {
			result, seen = "**FAIL**", o.err.Error()
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s | %d → %d | %d → %d | %s → %s |\n", o.name, cell(o.promise), result, cell(seen),
			o.before.goroutines, o.after.goroutines, o.before.descriptors, o.after.descriptors, mb(o.before.heap), mb(o.after.heap))
	}
}

func cell(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return strings.ReplaceAll(s, "|", `\|`)
}

func mb(bytes int64) string { return fmt.Sprintf("%.1f", float64(bytes)/(1<<20)) }
