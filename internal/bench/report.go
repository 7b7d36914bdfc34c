package main

import (
	"fmt"
	"slices"
	"time"
)

// level is everything measured with one number of callers.
type level struct {
	inFlight int
	bytes    int                 // of the arguments; 0: short ones
	samples  map[string][]sample // by target, one per round
}

func (l level) size() string {
	if l.bytes == 0 {
		return "short"
	}
	return kilobytes(l.bytes)
}

func (l level) label() string { return fmt.Sprintf("%s calls, %d in flight", l.size(), l.inFlight) }

type results struct {
	options
	date                  time.Time
	version, machine      string
	loadBefore, loadAfter string // of the machine
	peerName              string // as it says itself
	levels                []level
	changes               changes
	lists                 *lists // nil: left out
	starts                map[string][]time.Duration
	memory                map[string][]footprint // nil: left out, or not known
	sizes                 []size
	roots                 *roots  // nil: left out
	boards                *boards // likewise
}

func (r *results) report() *report {
	rep := &report{facts: []string{
		"date:    " + r.date.Format(time.DateOnly),
		fmt.Sprintf("machine: %s, load average %s before, %s after", r.machine, r.loadBefore, r.loadAfter),
		"server:  " + r.version,
	}}
	if busy(r.loadBefore) {
		rep.facts = append(rep.facts, "BUSY:    others were at work on this machine: these figures, ratios included, say little")
	}
	if r.onlyBoard {
		rep.tables = append(rep.tables, r.boardTable())
		return rep
	}
	if r.peer != "" {
		rep.facts = append(rep.facts, "peer:    "+r.peerName)
	}
	rep.facts = append(rep.facts,
		fmt.Sprintf("rounds:  %d, of %s where it is about speed; figures are medians of the rounds", r.rounds, r.duration),
		// Most of what separates the two under load, so it belongs next to the figures.
		"memory:  jsbridge collects garbage from 8 MB of heap on; bare and floor have Go's default")
	rep.tables = append(rep.tables, r.callTable(), r.ratioTable())
	if r.lists != nil {
		rep.tables = append(rep.tables, r.listTable())
	}
	if len(r.starts) > 0 {
		rep.tables = append(rep.tables, r.startTable())
	}
	if len(r.memory) > 0 {
		rep.tables = append(rep.tables, r.memoryTable())
	}
	if len(r.sizes) > 0 {
		rep.tables = append(rep.tables, r.sizeTable())
	}
	if r.roots != nil {
		rep.tables = append(rep.tables, r.rootTable())
	}
	if r.boards != nil {
		rep.tables = append(rep.tables, r.boardTable())
	}
	rep.verdicts = r.verdicts()
	return rep
}

// names are the targets in the order of the report.
func names[T any](of map[string][]T) []string {
	return slices.DeleteFunc([]string{floor, bare, jsbridge, peer}, func(name string) bool { return len(of[name]) == 0 })
}

func (r *results) callTable() table {
	t := table{title: "tools/call of a page's echo, in one session", heads: []string{"arguments", "in flight", "target", "p50 ms", "p99 ms", "calls/s", "server CPU µs/call"}}
	for _, l := range r.levels {
		for _, name := range names(l.samples) {
			s := l.samples[name]
			cpu := "-"
			if v := median(each(s, func(s sample) time.Duration { return s.cpu })); v > 0 {
				cpu = fmt.Sprintf("%.0f", float64(v)/float64(time.Microsecond))
			}
			t.row(l.size(), fmt.Sprint(l.inFlight), name, ms(median(each(s, func(s sample) time.Duration { return s.p50 }))),
				ms(median(each(s, func(s sample) time.Duration { return s.p99 }))), fmt.Sprintf("%.0f", median(each(s, sample.perSecond))), cpu)
		}
	}
	t.note("Tool list changed, until the session is told: median %s, greatest %s ms (%d changes).", ms(r.changes.median), ms(r.changes.max), r.changes.count)
	return t
}

func (r *results) ratioTable() table {
	t := table{title: "Ratios of jsbridge, of the figures of one round: median (least to greatest)",
		heads: []string{"arguments", "in flight", "p50 / floor", "calls/s / floor", "calls/s / bare"}}
	if r.peer != "" {
		t.heads = append(t.heads, "p50 / peer", "calls/s / peer")
	}
	for _, l := range r.levels {
		cells := []string{l.size(), fmt.Sprint(l.inFlight), spread(ratios(l.samples, floor, sample.latency)),
			spread(ratios(l.samples, floor, sample.perSecond)), spread(ratios(l.samples, bare, sample.perSecond))}
		if r.peer != "" {
			cells = append(cells, spread(ratios(l.samples, peer, sample.latency)), spread(ratios(l.samples, peer, sample.perSecond)))
		}
		t.row(cells...)
	}
	return t
}

func (r *results) listTable() table {
	t := table{title: fmt.Sprintf("tools/list of %d tools, all of it, one reader", r.lists.tools), heads: []string{"target", "p50 ms", "p99 ms", "lists/s", "p50 of jsbridge / this"}}
	s := r.lists.samples
	for _, name := range names(s) {
		ratio := "-"
		if name != jsbridge {
			ratio = spread(ratios(s, name, sample.latency))
		}
		t.row(name, ms(median(each(s[name], func(s sample) time.Duration { return s.p50 }))), ms(median(each(s[name], func(s sample) time.Duration { return s.p99 }))),
			fmt.Sprintf("%.0f", median(each(s[name], sample.perSecond))), ratio)
	}
	t.note("Jsbridge's list is its own tools and those of %d pages; bare serves the very same list.", listPages)
	return t
}

func (r *results) startTable() table {
	t := table{title: "Start of the process, until it has answered initialize", heads: []string{"target", "ms: median (least to greatest)"}}
	for _, name := range names(r.starts) {
		t.row(name, spread(each(r.starts[name], milliseconds)))
	}
	t.note("%d starts of each, in turn; the files are in the system's cache.", r.options.starts)
	return t
}

func (r *results) memoryTable() table {
	t := table{title: fmt.Sprintf("Memory (VmRSS) before and after %d calls with %s of arguments, %d in flight", r.options.memory.calls, kilobytes(r.large), memoryCallers),
		heads: []string{"target", "idle MB", "peak MB", "last call MB", "settled MB", "back to idle", "after s"}}
	for _, name := range names(r.memory) {
		f := r.memory[name]
		took := "-"
		if v := back(f); len(v) > 0 {
			took = spread(each(v, func(f footprint) float64 { return f.took.Seconds() }))
		}
		t.row(name, mb(median(each(f, func(f footprint) int64 { return f.idle }))), mb(median(each(f, func(f footprint) int64 { return f.peak }))),
			mb(median(each(f, func(f footprint) int64 { return f.after }))), mb(median(each(f, func(f footprint) int64 { return f.settled }))),
			fmt.Sprintf("%d of %d", len(back(f)), len(f)), took)
	}
	t.note("Idle is with one page and one session. Back is at most %g x idle; settled is what it was then, or after %s. Each round has new processes.", memoryBack, r.options.memory.settle)
	return t
}

// back are those that came back to idle.
func back(f []footprint) []footprint {
	return slices.DeleteFunc(slices.Clone(f), func(f footprint) bool { return !f.back })
}

func (r *results) sizeTable() table {
	t := table{title: "Size of the binary", heads: []string{"built by", "MB"}}
	for _, s := range r.sizes {
		t.row(s.built, mb(s.bytes))
	}
	return t
}

func (r *results) rootTable() table {
	o := r.options.root
	t := table{title: fmt.Sprintf("Root connection: a page of %d tools comes and leaves %d times, seen by %d sessions with an open stream each", rootTools, o.rounds, o.sessions),
		heads: []string{"the page", "ms until half the sessions are told", "ms until the last is told", "server CPU ms/change"}}
	for _, row := range []struct {
		name    string
		changes []spreading
	}{{"comes", r.roots.comes}, {"leaves", r.roots.leaves}} {
		cpu := "-"
		if v := mean(each(row.changes, spreading.cpuMS)); v > 0 {
			cpu = fmt.Sprintf("%.0f", v)
		}
		t.row(row.name, spread(each(row.changes, spreading.medianMS)), spread(each(row.changes, spreading.lastMS)), cpu)
	}
	t.note("Times: median (least to greatest) of the changes. Each session was told of each change once. Jsbridge's own wait")
	t.note("for further changes, 20 ms or more, is part of them, and so is the one process that reads for all sessions.")
	if m := r.roots.memory; m[0] > 0 {
		text := fmt.Sprintf("Server memory (VmRSS): %s MB before the first round", mb(m[0]))
		for _, round := range o.marks() {
			text += fmt.Sprintf(", %s after %d", mb(m[round]), round)
		}
		t.note("%s.", text)
	} else {
		t.note("Server memory: not known here, for want of /proc.")
	}
	return t
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

func (s sample) latency() float64   { return s.p50.Seconds() }
func (s sample) perSecond() float64 { return s.rate }

// ratios compares jsbridge with another target round by round, since what the
// machine does besides changes from round to round.
func ratios(samples map[string][]sample, other string, figure func(sample) float64) []float64 {
	ours, theirs := each(samples[jsbridge], figure), each(samples[other], figure)
	for i := range ours {
		ours[i] /= theirs[i]
	}
	return ours
}

func (s spreading) medianMS() float64 { return milliseconds(s.median) }
func (s spreading) lastMS() float64   { return milliseconds(s.last) }
func (s spreading) cpuMS() float64    { return milliseconds(s.cpu) }

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

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func ms(d time.Duration) string { return fmt.Sprintf("%.2f", milliseconds(d)) }

// mb is in millions of bytes, kilobytes in thousands.
func mb(bytes int64) string { return fmt.Sprintf("%.1f", float64(bytes)/1e6) }

func kilobytes(bytes int) string { return fmt.Sprintf("%d kB", bytes/1000) }
