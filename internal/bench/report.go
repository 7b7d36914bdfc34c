package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// The targets.
const (
	maxLatency   = 2.0 // p50 against the floor, one call at a time
	minRate      = 0.9 // calls/s against bare
	minRateCalls = 16  // in flight, for minRate

	maxTellingMS = 50.0 // median over the sessions, of a root connection's change
	maxGrowth    = 1.1  // of memory, from a fifth of the rounds to all
	// Fewer rounds show nothing but a heap that has not found its size.
	minGrowthRounds = 50
)

// level is everything measured with one number of callers.
type level struct {
	inFlight int
	samples  map[string][]sample // by target, one per round
}

type results struct {
	options
	version, machine, loadAfter string
	levels                      []level
	changes                     changes
	roots                       *roots  // nil: left out
	boards                      *boards // likewise
}

func (r *results) write(w io.Writer) {
	if r.onlyBoard {
		fmt.Fprintf(w, "machine: %s, %s after\nserver:  %s\n\n", r.machine, r.loadAfter, r.version)
		r.writeBoards(w)
		return
	}
	fmt.Fprintf(w, "tools/call of a page's echo, in one session: median of %d × %s\n\n", r.rounds, r.duration)
	fmt.Fprintf(w, "machine: %s, %s after\nserver:  %s\n", r.machine, r.loadAfter, r.version)
	// Most of what separates the two under load, so it belongs next to the figures.
	fmt.Fprint(w, "memory:  jsbridge collects garbage from 32 MB of heap on; bare and floor have Go's default\n\n")
	r.writeFigures(w)
	fmt.Fprintln(w, "\nRatios, of the figures of one round: median (least to greatest)")
	r.writeRatios(w)
	fmt.Fprintf(w, "\nTool list changed, until the session is told: median %s, greatest %s ms (%d changes)\n\n",
		ms(r.changes.median), ms(r.changes.max), r.changes.count)
	if r.roots != nil {
		r.writeRoots(w)
	}
	if r.boards != nil {
		r.writeBoards(w)
	}
	r.writeTargets(w)
}

func (r *results) writeRoots(w io.Writer) {
	o := r.options.root
	fmt.Fprintf(w, "Root connection: a page of %d tools comes and leaves %d times, seen by %d sessions with an open stream each\n",
		rootTools, o.rounds, o.sessions)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "the page\tms until half the sessions are told\tms until the last is told\tserver CPU ms/change\t")
	for _, row := range []struct {
		name    string
		changes []spreading
	}{{"comes", r.roots.comes}, {"leaves", r.roots.leaves}} {
		cpu := "-"
		if v := mean(each(row.changes, spreading.cpuMS)); v > 0 {
			cpu = fmt.Sprintf("%.0f", v)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t\n", row.name,
			spread(each(row.changes, spreading.medianMS)), spread(each(row.changes, spreading.lastMS)), cpu)
	}
	_ = t.Flush()
	fmt.Fprintln(w, "Times: median (least to greatest) of the changes. Each session was told of each change once. Jsbridge's own wait\n"+
		"for further changes, 20 ms or more, is part of them, and so is the one process that reads for all sessions.")
	if m := r.roots.memory; m[0] > 0 {
		fmt.Fprintf(w, "Server memory (VmRSS): %s MB before the first round", mb(m[0]))
		for _, round := range o.marks() {
			fmt.Fprintf(w, ", %s after %d", mb(m[round]), round)
		}
		fmt.Fprintln(w)
	} else {
		fmt.Fprintln(w, "Server memory: not known here, for want of /proc")
	}
	fmt.Fprintln(w)
}

// marks are the rounds after which memory is reported: a tenth, a fifth and all.
func (o rootOptions) marks() []int {
	return slices.Compact([]int{max(1, o.rounds/10), max(1, o.rounds/5), o.rounds})
}

// growth compares the server's memory after all rounds with that after a fifth,
// when it has what it needs; 0 where it is not known.
func (r *roots) growth(o rootOptions) float64 {
	settled := r.memory[max(1, o.rounds/5)]
	if settled == 0 {
		return 0
	}
	return float64(r.memory[o.rounds]) / float64(settled)
}

func (r *results) writeFigures(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "in flight\ttarget\tp50 ms\tp99 ms\tcalls/s\tserver CPU µs/call\t")
	for _, l := range r.levels {
		for _, name := range []string{floor, bare, jsbridge} {
			s := l.samples[name]
			cpu := "-"
			if v := each(s, func(s sample) float64 { return float64(s.cpu) }); median(v) > 0 {
				cpu = fmt.Sprintf("%.0f", median(v)/float64(time.Microsecond))
			}
			fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%.0f\t%s\t\n", l.inFlight, name,
				ms(median(each(s, func(s sample) time.Duration { return s.p50 }))),
				ms(median(each(s, func(s sample) time.Duration { return s.p99 }))),
				median(each(s, sample.perSecond)), cpu)
		}
	}
	_ = t.Flush() // w is a buffer
}

func (r *results) writeRatios(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "in flight\tp50 / floor\tcalls/s / floor\tcalls/s / bare\t")
	for _, l := range r.levels {
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t\n", l.inFlight,
			spread(l.ratios(floor, sample.latency)), spread(l.ratios(floor, sample.perSecond)), spread(l.ratios(bare, sample.perSecond)))
	}
	_ = t.Flush()
}

func (r *results) writeTargets(w io.Writer) {
	for _, l := range r.levels {
		if l.inFlight == 1 {
			v := median(l.ratios(floor, sample.latency))
			fmt.Fprintf(w, "%s: p50 at most %g x the floor (1 in flight): %.2f\n", verdict(v <= maxLatency), maxLatency, v)
		}
		if l.inFlight == minRateCalls {
			v := median(l.ratios(bare, sample.perSecond))
			fmt.Fprintf(w, "%s: at %d in flight no less than %g x the bare go-sdk server: %.2f\n", verdict(v >= minRate), minRateCalls, minRate, v)
		}
	}
	if r.roots == nil {
		return
	}
	o := r.options.root
	told := median(each(slices.Concat(r.roots.comes, r.roots.leaves), spreading.medianMS))
	fmt.Fprintf(w, "%s: a root connection's change told in under %g ms (median of %d sessions): %.2f ms\n",
		verdict(told < maxTellingMS), maxTellingMS, o.sessions, told)
	if v := r.roots.growth(o); v > 0 && o.rounds >= minGrowthRounds {
		fmt.Fprintf(w, "%s: memory flat, less than %g x from round %d to %d of a root connection: %.2f\n",
			verdict(v < maxGrowth), maxGrowth, max(1, o.rounds/5), o.rounds, v)
	}
}

func (s sample) latency() float64   { return s.p50.Seconds() }
func (s sample) perSecond() float64 { return s.rate }

// ratios compares jsbridge with a yardstick round by round, since what the
// machine does besides changes from round to round.
func (l level) ratios(yardstick string, figure func(sample) float64) []float64 {
	ours, theirs := each(l.samples[jsbridge], figure), each(l.samples[yardstick], figure)
	for i := range ours {
		ours[i] /= theirs[i]
	}
	return ours
}

func (s spreading) medianMS() float64 { return 1000 * s.median.Seconds() }
func (s spreading) lastMS() float64   { return 1000 * s.last.Seconds() }
func (s spreading) cpuMS() float64    { return 1000 * s.cpu.Seconds() }

func each[S, T any](samples []S, figure func(S) T) []T {
	values := make([]T, len(samples))
	for i, s := range samples {
		values[i] = figure(s)
	}
	return values
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

func spread(values []float64) string {
	return fmt.Sprintf("%.2f (%.2f to %.2f)", median(values), slices.Min(values), slices.Max(values))
}

func ms(d time.Duration) string { return fmt.Sprintf("%.2f", float64(d)/float64(time.Millisecond)) }

func mb(bytes int64) string { return fmt.Sprintf("%.1f", float64(bytes)/(1<<20)) }

func verdict(met bool) string {
	if met {
		return "met"
	}
	return "missed"
}
