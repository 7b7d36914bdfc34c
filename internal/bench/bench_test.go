package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"
)

// TestMain lets the test's binary play the roles that bench's binary plays.
func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		os.Exit(play(role, os.Args[1:]))
	}
	os.Exit(m.Run())
}

// TestRun is about the answers and the report, never about speed.
func TestRun(t *testing.T) {
	if testing.Short() {
		t.Skip("starts six processes")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	res, err := run(ctx, options{duration: 200 * time.Millisecond, rounds: 1, changes: 2}, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range res.levels {
		for _, name := range []string{jsbridge, floor, bare} {
			if s := l.samples[name]; len(s) != 1 || s[0].p50 <= 0 || s[0].p99 < s[0].p50 || s[0].rate <= 0 {
				t.Errorf("%s, %d in flight: %+v", name, l.inFlight, s)
			}
		}
	}
	if res.changes.count != 2 || res.changes.median <= 0 {
		t.Errorf("changes: %+v", res.changes)
	}
	var report bytes.Buffer
	res.write(&report)
	t.Log("\n" + report.String())
	for _, want := range []string{": p50 at most 2 x the floor", ": at 16 in flight no less than 0.9 x the bare go-sdk server"} {
		if !strings.Contains(report.String(), want) {
			t.Errorf("the report lacks %q", want)
		}
	}
}

// TestRunEnds asserts that a process which ends by itself ends the run, with
// its last words.
func TestRunEnds(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a process")
	}
	c := newCrew(context.Background())
	defer c.stop()
	if _, err := c.start("nobody", "", "no such role"); err != nil {
		t.Fatal(err)
	}
	<-c.ctx.Done()
	if got := context.Cause(c.ctx).Error(); !strings.Contains(got, "nobody ended too early") || !strings.Contains(got, "is no role") {
		t.Errorf("cause: %s", got)
	}
}
