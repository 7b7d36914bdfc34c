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
	if os.Getenv(fakePeerVariable) != "" {
		fmt.Fprintln(os.Stderr, serveFakePeer())
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// TestRun is about the answers and the report, never about speed.
func TestRun(t *testing.T) {
	if testing.Short() {
		t.Skip("starts many processes")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	o := options{duration: 150 * time.Millisecond, rounds: 1, inFlight: []int{1, 16}, large: 20_000, largeInFlight: []int{1},
		changes: 2, listed: 60, starts: 1, memory: memoryOptions{calls: 40, rounds: 1, settle: 300 * time.Millisecond},
		root:  rootOptions{sessions: 20, rounds: 3},
		board: boardOptions{pages: 3, tools: 2, rate: 100, rounds: 1, each: 500 * time.Millisecond},
		peer:  "env " + fakePeerVariable + "=1 '" + self + "'"}
	res, err := run(ctx, o, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range res.levels {
		checkSamples(t, l.label(), l.samples, jsbridge, floor, bare, peer)
	}
	if len(res.levels) != 3 {
		t.Errorf("%d levels", len(res.levels))
	}
	checkSamples(t, "a list", res.lists.samples, jsbridge, bare, peer)
	for _, name := range []string{jsbridge, bare, peer} {
		if s := res.starts[name]; len(s) != 1 || s[0] <= 0 {
			t.Errorf("start of %s: %v", name, s)
		}
		f := res.memory[name]
		if runtime.GOOS == "linux" && (len(f) != 1 || f[0].idle <= 1<<20 || f[0].peak < f[0].idle || f[0].settled <= 1<<20 || !f[0].back && f[0].took < o.memory.settle) {
			t.Errorf("memory of %s: %+v", name, f)
		}
	}
	if len(res.sizes) != 1 || res.sizes[0].bytes <= 1<<20 {
		t.Errorf("sizes: %+v", res.sizes)
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
	var text, markdown bytes.Buffer
	res.report().write(&text)
	res.report().writeMarkdown(&markdown)
	t.Log("\n" + text.String())
	for _, want := range []string{"peer:    fake 7", "p50 at most 1.25 x the floor (1 in flight)", "calls/s, 16 in flight, at least 0.6 x the floor",
		"calls/s, 16 in flight, at least 0.9 x the bare go-sdk server", "calls/s of 20 kB arguments, 1 in flight, at least 0.8 x the floor", "calls/s / peer",
		"list of 60 tools at most 1.2 x", "start to first answer at most 60ms", "idle memory at most 25.0 MB", "idle memory at most 25.0 MB again after 40 calls of 20 kB",
		"binary at most 20.0 MB (go build)", "Root connection: a page of 50 tools comes and leaves 3 times, seen by 20 sessions",
		"a root connection's change told in under 50 ms", "Dashboards: 3 pages of 2 tools, 100 calls/s"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the report lacks %q", want)
		}
		if !strings.Contains(markdown.String(), want) {
			t.Errorf("the report in Markdown lacks %q", want)
		}
	}
}

func checkSamples(t *testing.T, what string, samples map[string][]sample, names ...string) {
	t.Helper()
	if len(samples) != len(names) {
		t.Errorf("%s: measured %d targets, want %d", what, len(samples), len(names))
	}
	for _, name := range names {
		if s := samples[name]; len(s) != 1 || s[0].p50 <= 0 || s[0].p99 < s[0].p50 || s[0].rate <= 0 {
			t.Errorf("%s of %s: %+v", what, name, s)
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
	c := newCrew(context.Background(), t.TempDir())
	defer c.stop()
	if _, err := c.start("nobody", "", "no such role"); err != nil {
		t.Fatal(err)
	}
	<-c.ctx.Done()
	if got := context.Cause(c.ctx).Error(); !strings.Contains(got, "nobody ended too early") || !strings.Contains(got, "is no role") {
		t.Errorf("cause: %s", got)
	}
}
