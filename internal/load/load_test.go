package main

import (
	"bytes"
	"context"
	"io"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"jsbridge/internal/rig"
)

func TestMain(m *testing.M) {
	if os.Getenv(roleVariable) == rolePages { // of a test that has started this program as its pages
		if err := playPages(os.Stdin, os.Stdout); err != nil {
			_, _ = io.WriteString(os.Stderr, err.Error())
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func smallOptions(t *testing.T) options {
	t.Helper()
	binary, err := rig.Build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return options{binary: binary, sessions: 3, callers: 2, duration: 1200 * time.Millisecond, changes: 3, rootChanges: 2}
}

// Everything once, with little of it: what is measured is checked as well.
func TestRow(t *testing.T) {
	o := smallOptions(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	r, err := measureRow(ctx, o.binary, 4, o, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if r.connect <= 0 || r.own.median <= 0 || r.root.last < r.root.median || r.calm.rate <= 0 || r.churn.p50 <= 0 || r.swaps <= 0 || r.total.heap <= 0 {
		t.Errorf("the row has no sense: %+v", r)
	}
	var out bytes.Buffer
	if err := report(&out, []*row{r}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "With 4 pages and 3 sessions") {
		t.Errorf("the report lacks its verdict:\n%s", out.String())
	}
}

func TestFitTellsGrowthFromNoise(t *testing.T) {
	noise := []float64{0.3, -0.2, 0.1, -0.4, 0.2, 0.1, -0.1, 0, 0.3, -0.3}
	for name, c := range map[string]struct {
		each  float64 // MB an hour
		grows bool
	}{"flat": {0, false}, "shrinking": {-20, false}, "growing": {20, true}, "growing a little": {1, false}} {
		var x, y []float64
		for i, n := range noise {
			x = append(x, float64(i)/10)
			y = append(y, 100+c.each*x[i]+n)
		}
		l := fit(x, y)
		if math.Abs(l.slope-c.each) > 1 {
			t.Errorf("%s: slope %f", name, l.slope)
		}
		if got := l.grows(x[len(x)-1], heapGrowth); got != c.grows {
			t.Errorf("%s: growing %t", name, got)
		}
	}
}

func TestVerdictOfASoak(t *testing.T) {
	samples := func(each int64) (all []sample) {
		for i := range int64(40) {
			all = append(all, sample{time.Duration(i) * time.Minute, memory{heap: 50<<20 + i*each, stacks: 5 << 20, resident: 90 << 20}})
		}
		return all
	}
	var out bytes.Buffer
	if err := verdicts(&out, samples(0)); err != nil || !strings.Contains(out.String(), "heap + stacks: flat") {
		t.Errorf("%v: %s", err, &out)
	}
	out.Reset()
	if err := verdicts(&out, samples(100<<10)); err != errGrowing || !strings.Contains(out.String(), "heap + stacks: growing") || !strings.Contains(out.String(), "RSS: flat") {
		t.Errorf("%v: %s", err, &out)
	}
}

func TestParseProfile(t *testing.T) {
	m, err := parseProfile(strings.NewReader("heap profile: 1: 2\n# runtime.MemStats\n# HeapAlloc = 1234\n# Stack = 56 / 78\n"))
	if err != nil || m.heap != 1234 || m.stacks != 56 {
		t.Errorf("%+v, %v", m, err)
	}
	if _, err := parseProfile(strings.NewReader("# HeapAlloc = 1234\n")); err == nil {
		t.Error("half a profile was taken for one")
	}
}

func TestGrowth(t *testing.T) {
	var out bytes.Buffer
	rowOf := func(pages int, each int64) *row {
		return &row{pages: pages, perPage: memory{heap: each}, total: memory{heap: int64(pages)*each + 5<<20}}
	}
	growth(&out, []*row{rowOf(10, 20<<10), rowOf(100, 20<<10), rowOf(1000, 18<<10), rowOf(10_000, 40<<10)})
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 || !strings.Contains(lines[0], "too little") || !strings.Contains(lines[1], "linear or better") || !strings.Contains(lines[2], "worse than linear") {
		t.Errorf("got %q", lines)
	}
}
