package main

import (
	"fmt"
	"slices"
	"time"
)

// The targets.
const (
	maxLatency   = 1.25 // p50 against the floor, one call at a time
	minRate      = 0.6  // calls/s against the floor, with more in flight
	minLargeRate = 0.8  // likewise, of long arguments
	minBareRate  = 0.9  // calls/s against bare
	minBareCalls = 16   // in flight, for minBareRate
	maxList      = 1.2  // p50 of a long list against bare

	maxStart = 60 * time.Millisecond
	maxIdle  = 25e6 // bytes of memory
	maxSize  = 20e6 // bytes of the binary

	maxTellingMS = 50.0 // median over the sessions, of a root connection's change
	maxGrowth    = 1.1  // of memory, from a fifth of the rounds to all
	// Fewer rounds show nothing but a heap that has not found its size.
	minGrowthRounds = 50
)

// verdicts are the targets for which something was measured.
func (r *results) verdicts() []verdict {
	var all []verdict
	say := func(met bool, target, figure string) { all = append(all, verdict{met, target, figure}) }
	for _, l := range r.levels {
		floorRate := median(ratios(l.samples, floor, sample.perSecond))
		switch {
		case l.bytes > 0:
			say(floorRate >= minLargeRate, fmt.Sprintf("calls/s of %s arguments, %d in flight, at least %g x the floor", l.size(), l.inFlight, minLargeRate), fmt.Sprintf("%.2f", floorRate))
		case l.inFlight == 1:
			v := median(ratios(l.samples, floor, sample.latency))
			say(v <= maxLatency, fmt.Sprintf("p50 at most %g x the floor (1 in flight)", maxLatency), fmt.Sprintf("%.2f", v))
		default:
			say(floorRate >= minRate, fmt.Sprintf("calls/s, %d in flight, at least %g x the floor", l.inFlight, minRate), fmt.Sprintf("%.2f", floorRate))
		}
		if l.bytes == 0 && l.inFlight == minBareCalls {
			v := median(ratios(l.samples, bare, sample.perSecond))
			say(v >= minBareRate, fmt.Sprintf("calls/s, %d in flight, at least %g x the bare go-sdk server", minBareCalls, minBareRate), fmt.Sprintf("%.2f", v))
		}
	}
	if r.lists != nil {
		v := median(ratios(r.lists.samples, bare, sample.latency))
		say(v <= maxList, fmt.Sprintf("list of %d tools at most %g x the bare go-sdk server (p50)", r.lists.tools, maxList), fmt.Sprintf("%.2f", v))
	}
	if len(r.starts) > 0 {
		v := median(r.starts[jsbridge])
		say(v <= maxStart, fmt.Sprintf("start to first answer at most %s", maxStart), ms(v)+" ms")
	}
	if f := r.memory[jsbridge]; len(f) > 0 {
		idle := median(each(f, func(f footprint) int64 { return f.idle }))
		say(idle <= maxIdle, fmt.Sprintf("idle memory at most %s MB", mb(maxIdle)), mb(idle)+" MB")
		settled := slices.Max(each(f, func(f footprint) int64 { return f.settled }))
		say(settled <= maxIdle, fmt.Sprintf("idle memory at most %s MB again after %d calls of %s, each time", mb(maxIdle), r.options.memory.calls, kilobytes(r.large)),
			fmt.Sprintf("%s MB at most, %.2f x", mb(settled), float64(settled)/float64(idle)))
	}
	for _, s := range r.sizes {
		say(s.bytes <= maxSize, fmt.Sprintf("binary at most %s MB (%s)", mb(maxSize), s.built), mb(s.bytes)+" MB")
	}
	if r.roots != nil {
		all = append(all, r.rootVerdicts()...)
	}
	return all
}

func (r *results) rootVerdicts() []verdict {
	o := r.options.root
	told := median(each(slices.Concat(r.roots.comes, r.roots.leaves), spreading.medianMS))
	all := []verdict{{told < maxTellingMS, fmt.Sprintf("a root connection's change told in under %g ms (median of %d sessions)", maxTellingMS, o.sessions), fmt.Sprintf("%.2f ms", told)}}
	if v := r.roots.growth(o); v > 0 && o.rounds >= minGrowthRounds {
		all = append(all, verdict{v < maxGrowth, fmt.Sprintf("memory flat, less than %g x from round %d to %d of a root connection", maxGrowth, max(1, o.rounds/5), o.rounds), fmt.Sprintf("%.2f", v)})
	}
	return all
}
