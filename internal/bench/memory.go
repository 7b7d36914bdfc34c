package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"
)

// memoryOptions is how memory is measured.
type memoryOptions struct {
	calls  int           // 0 leaves the measurement out
	rounds int           // each with new processes
	still  time.Duration // how long memory must not change to be idle
	settle time.Duration // how long it is watched at most after the calls
}

const (
	memoryCallers = 16
	memoryPoll    = 100 * time.Millisecond // how exact the times are

	// What counts as unchanged, and as back to idle.
	memoryStill = 1.01
	memoryBack  = 1.10
)

// A footprint is one process's memory in one round, in bytes.
type footprint struct {
	idle    int64 // with one page and one session
	peak    int64 // while it is called, as the system counts it
	after   int64 // as soon as the last call has ended
	settled int64 // when it was back, or as long as it was watched
	took    time.Duration
	back    bool
}

// measureMemory has each target's tool called with long arguments, and watches how
// its memory grows and comes back. They are called in turn, and watched while others
// are called, since that can take minutes. It gives nothing where memory is not known.
func measureMemory(c *crew, f field, o options, progress io.Writer) (map[string][]footprint, error) {
	type watched struct {
		*target
		footprint
		err error
	}
	var all []*watched
	var watchers sync.WaitGroup
	ctx, cancel := context.WithCancel(c.ctx)
	defer watchers.Wait()
	defer cancel()
	for round := range o.memory.rounds {
		fmt.Fprintf(progress, "bench: memory, round %d of %d\n", round+1, o.memory.rounds)
		for _, name := range inTurn(f.names(bare), round) {
			t, err := f.open(c, name)
			if err != nil {
				return nil, err
			}
			if residentMemory(t.server.pid) == 0 {
				t.stop()
				return nil, nil
			}
			w := &watched{target: t}
			if w.footprint, err = t.burden(c.ctx, o); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			watchers.Go(func() {
				w.err = w.watch(ctx, t.server.pid, o.memory.settle)
				t.stop()
			})
			all = append(all, w)
		}
	}
	fmt.Fprintf(progress, "bench: memory, for %s at most until it is back\n", o.memory.settle)
	watchers.Wait()
	prints := make(map[string][]footprint)
	for _, w := range all {
		if w.err != nil {
			return nil, fmt.Errorf("%s: %w", w.name, w.err)
		}
		prints[w.name] = append(prints[w.name], w.footprint)
	}
	return prints, nil
}

// burden waits until the target is idle and makes the calls.
func (t *target) burden(ctx context.Context, o options) (footprint, error) {
	var f footprint
	var err error
	if f.idle, err = idleMemory(ctx, t.server.pid, o.memory.still); err != nil {
		return f, err
	}
	if err := t.callTimes(ctx, memoryCallers, o.memory.calls, calling(t.tool, o.large)); err != nil {
		return f, err
	}
	f.peak, f.after = peakMemory(t.server.pid), residentMemory(t.server.pid)
	return f, nil
}

// idleMemory is what the process has once that does not change any more.
func idleMemory(ctx context.Context, pid int, still time.Duration) (int64, error) {
	least, most, since := int64(0), int64(0), time.Now()
	for begun := time.Now(); ; {
		m := residentMemory(pid)
		least, most = min(least, m), max(most, m)
		if float64(most) > memoryStill*float64(least) {
			least, most, since = m, m, time.Now()
		}
		if time.Since(since) >= still {
			return m, nil
		}
		if time.Since(begun) > still+patience {
			return 0, fmt.Errorf("memory is not the same for %s even when nothing is done", still)
		}
		if err := pause(ctx, memoryPoll); err != nil {
			return 0, err
		}
	}
}

// watch waits until the memory is back to what it was when idle.
func (f *footprint) watch(ctx context.Context, pid int, atMost time.Duration) error {
	for begun := time.Now(); ; {
		f.settled, f.took = residentMemory(pid), time.Since(begun)
		f.back = float64(f.settled) <= memoryBack*float64(f.idle)
		if f.back || f.took >= atMost {
			return nil
		}
		if err := pause(ctx, memoryPoll); err != nil {
			return err
		}
	}
}

// callTimes has some callers make so many exchanges together.
func (t *target) callTimes(ctx context.Context, inFlight, times int, x exchange) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	callers, err := t.callers(ctx, inFlight, time.Now().Add(time.Minute+patience))
	defer closeCallers(callers)
	if err != nil {
		return err
	}
	var running sync.WaitGroup
	for _, c := range callers {
		running.Go(func() {
			for id := 1 + c.number; id <= times; id += c.of {
				if _, _, err := x(c, id); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	running.Wait()
	return context.Cause(ctx)
}
