package main

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"
)

// Targets, in bytes.
const (
	pageTarget    = 25 << 10
	sessionTarget = 15 << 10
)

// report prints the table, what it means, and where it was made.
func report(w io.Writer, rows []*row) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "jsbridge under load, %s, %s\n\n", time.Now().Format(time.DateOnly), machine())
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	line := func(what string, cell func(*row) string) {
		cells := []string{what}
		for _, r := range rows {
			cells = append(cells, cell(r))
		}
		fmt.Fprintln(t, strings.Join(cells, "\t"))
	}
	line("pages (5 tools each)", func(r *row) string { return fmt.Sprint(r.pages) })
	line("sessions", func(r *row) string { return fmt.Sprint(r.sessions) })
	line("one page: heap + stacks", func(r *row) string { return r.perPage.split() })
	line("one page: RSS", func(r *row) string { return kilobytes(r.perPage.resident) })
	line("one session: heap + stacks", func(r *row) string { return r.perSession.split() })
	line("one session: RSS", func(r *row) string { return kilobytes(r.perSession.resident) })
	line("server alone: heap + stacks, RSS", func(r *row) string { return r.idle.whole() })
	line("with all: heap + stacks, RSS", func(r *row) string { return r.total.whole() })
	line("right after the calls: heap + stacks, RSS", func(r *row) string { return r.after.whole() })
	line("pages that come, per second", func(r *row) string { return fmt.Sprintf("%.0f", r.connect) })
	line("a page's change → its session: median, p99", func(r *row) string { return fmt.Sprintf("%s, %s", ms(r.own.median), ms(r.own.p99)) })
	line("a root's change → all sessions: median, p99, last", func(r *row) string {
		return fmt.Sprintf("%s, %s, %s", ms(r.root.median), ms(r.root.p99), ms(r.root.last))
	})
	line("a tool's first call: median, heap it takes for good", func(r *row) string { return fmt.Sprintf("%s, %s", ms(r.first), kilobytes(r.called)) })
	line("calls/s, p50, p99: all pages stay", func(r *row) string { return r.calm.String() })
	line("calls/s, p50, p99: some come and go", func(r *row) string { return r.churn.String() })
	line("pages that come and go; changes/s; time to be back", func(r *row) string {
		return fmt.Sprintf("%d; %.0f; %s", r.churning, r.swaps, ms(r.back))
	})
	if err := t.Flush(); err != nil {
		return err
	}
	last := rows[len(rows)-1]
	fmt.Fprintf(&b, "\nWith %d pages and %d sessions:\n", last.pages, last.sessions)
	verdict(&b, "a page", "heap + stacks", last.perPage.live(), pageTarget)
	verdict(&b, "a page", "RSS", last.perPage.resident, pageTarget)
	verdict(&b, "a session", "heap + stacks", last.perSession.live(), sessionTarget)
	verdict(&b, "a session", "RSS", last.perSession.resident, sessionTarget)
	growth(&b, rows)
	_, err := w.Write(b.Bytes())
	return err
}

func verdict(w io.Writer, what, how string, got, target int64) {
	word := "met"
	if got > target {
		word = "missed"
	}
	fmt.Fprintf(w, "  %s takes %s of %s, target %s: %s\n", what, kilobytes(got), how, kilobytes(target), word)
}

// tolerance is how far from linear growth is still called linear.
const tolerance = 0.05

// noise is what a thousand sessions' memory is uncertain by, as a share of it.
const noise = 0.1

// growth says how memory grows from row to row: with the exponent e of pages^e, which
// is 1 for linear growth.
func growth(w io.Writer, rows []*row) {
	for i := 1; i < len(rows); i++ {
		a, b := rows[i-1], rows[i]
		held := func(r *row) float64 { return float64(r.perPage.live() * int64(r.pages)) }
		if a.pages == b.pages || held(a) <= 0 || held(b) <= 0 {
			continue
		}
		e := math.Log(held(b)/held(a)) / math.Log(float64(b.pages)/float64(a.pages))
		word := "linear or better"
		if e > 1+tolerance {
			word = "worse than linear"
		}
		if held(a) < noise*(float64(a.total.live()-a.idle.live())-held(a)) {
			word = "but the fewer pages hold too little, beside the sessions, to tell"
		}
		fmt.Fprintf(w, "  from %d to %d pages, what the pages hold grows with exponent %.2f: %s\n", a.pages, b.pages, e, word)
	}
}

func (m memory) split() string {
	return fmt.Sprintf("%s + %s", kilobytes(m.heap), kilobytes(m.stacks))
}

func (m memory) whole() string {
	return fmt.Sprintf("%.0f MB, %.0f MB", float64(m.live())/(1<<20), float64(m.resident)/(1<<20))
}

func (c callRate) String() string { return fmt.Sprintf("%.0f, %s, %s", c.rate, ms(c.p50), ms(c.p99)) }

func kilobytes(n int64) string { return fmt.Sprintf("%.1f KB", float64(n)/1024) }

func ms(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
}

// machine is the machine's kind, without its name.
func machine() string {
	return fmt.Sprintf("%d processors, %s/%s, %s, load average %s at the end", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version(), loadAverage())
}

// loadAverage is that of the last minute.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	one, _, _ := strings.Cut(string(text), " ")
	return one
}
