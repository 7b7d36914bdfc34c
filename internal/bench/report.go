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
}

func (r *results) write(w io.Writer) {
	fmt.Fprintf(w, "tools/call of a page's echo, in one session: median of %d × %s\n\n", r.rounds, r.duration)
	fmt.Fprintf(w, "machine: %s, %s after\nserver:  %s\n", r.machine, r.loadAfter, r.version)
	// Most of what separates the two under load, so it belongs next to the figures.
	fmt.Fprint(w, "memory:  jsbridge collects garbage from 32 MB of heap on; bare and floor have Go's default\n\n")
	r.writeFigures(w)
	fmt.Fprintln(w, "\nRatios, of the figures of one round: median (least to greatest)")
	r.writeRatios(w)
	fmt.Fprintf(w, "\nTool list changed, until the session is told: median %s, greatest %s ms (%d changes)\n\n",
		ms(r.changes.median), ms(r.changes.max), r.changes.count)
	r.writeTargets(w)
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

func each[T any](samples []sample, figure func(sample) T) []T {
	values := make([]T, len(samples))
	for i, s := range samples {
		values[i] = figure(s)
	}
	return values
}

func spread(values []float64) string {
	return fmt.Sprintf("%.2f (%.2f to %.2f)", median(values), slices.Min(values), slices.Max(values))
}

func ms(d time.Duration) string { return fmt.Sprintf("%.2f", float64(d)/float64(time.Millisecond)) }

func verdict(met bool) string {
	if met {
		return "met"
	}
	return "missed"
}
