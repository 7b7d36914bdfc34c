package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
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
		t.Skip("starts seven processes")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	o := options{duration: 500 * time.Millisecond, rounds: 1, changes: 2, root: rootOptions{sessions: 20, rounds: 3},
		board: boardOptions{pages: 3, tools: 2, rate: 100, rounds: 1, each: time.Second}}
	res, err := run(ctx, o, t.Output())
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
	for name, changes := range map[string][]spreading{"comes": res.roots.comes, "leaves": res.roots.leaves} {
		if len(changes) != 3 {
			t.Errorf("the root connection %s %d times", name, len(changes))
		}
		for _, s := range changes {
			if s.median <= 0 || s.last < s.median {
				t.Errorf("the root connection %s: %+v", name, s)
			}
		}
	}
	if m := res.roots.memory; len(m) != 4 || runtime.GOOS == "linux" && slices.Min(m) <= 1<<20 {
		t.Errorf("memory: %d", m)
	}
	if b := res.boards; len(b.with) != 1 || len(b.without) != 1 || b.with[0].p50 <= 0 || b.without[0].p50 <= 0 || b.events < 2 {
		t.Errorf("dashboards: %+v", b)
	}
	var report bytes.Buffer
	res.write(&report)
	t.Log("\n" + report.String())
	for _, want := range []string{": p50 at most 2 x the floor", ": at 16 in flight no less than 0.9 x the bare go-sdk server",
		"Root connection: a page of 50 tools comes and leaves 3 times, seen by 20 sessions", ": a root connection's change told in under 50 ms",
		"Dashboards: 3 pages of 2 tools, 100 calls/s"} {
		if !strings.Contains(report.String(), want) {
			t.Errorf("the report lacks %q", want)
		}
	}
}

// TestAwait asserts that a change counts only if each session was told of it
// once.
func TestAwait(t *testing.T) {
	for _, tt := range []struct {
		name string
		told []int // sessions, of two
		want string
	}{
		{"once", []int{1, 0}, ""},
		{"twice at once", []int{0, 0}, "a session was told twice"},
		{"twice in the end", []int{0, 1, 0}, "1 sessions were told twice"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := &gallery{ctx: t.Context(), sessions: make([]endpoint, 2), told: make(chan telling, 3)}
			begun := time.Now()
			for i, session := range tt.told {
				g.told <- telling{session, begun.Add(time.Duration(i+1) * time.Second)}
			}
			s, err := g.await(begun)
			if got := fmt.Sprint(err); err != nil && got != tt.want || err == nil && tt.want != "" {
				t.Fatalf("error %v, want %q", err, tt.want)
			}
			if err == nil && (s.median != 1500*time.Millisecond || s.last != 2*time.Second) {
				t.Errorf("got %+v", s)
			}
		})
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
