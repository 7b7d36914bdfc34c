package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"
)

// A sample is one measurement of one target.
type sample struct {
	p50, p99 time.Duration
	rate     float64       // calls per second
	cpu      time.Duration // of the server, per call; 0 where it is not known
}

// measure has a number of callers call the target's tool as fast as they are
// answered, first unmeasured for a fifth of the duration. A latency is the time
// from the writing of the request to the last byte of the answer.
func measure(ctx context.Context, t *target, inFlight int, d time.Duration) (sample, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	from := time.Now().Add(d / 5)
	until := from.Add(d)
	callers := make([]*caller, inFlight)
	for i := range callers {
		c, err := t.dial(ctx)
		if err != nil {
			return sample{}, err
		}
		defer c.close()
		_ = c.conn.SetDeadline(until.Add(patience))
		callers[i] = &caller{connection: c, number: i, of: inFlight, tool: t.tool}
	}
	var running sync.WaitGroup
	for _, c := range callers {
		running.Go(func() {
			if err := c.run(from, until); err != nil {
				cancel(err)
			}
		})
	}
	cpuBefore, cpuAfter := time.Duration(0), time.Duration(0)
	err := pause(ctx, time.Until(from))
	if err == nil {
		cpuBefore = cpuTime(t.server.pid)
		err = pause(ctx, time.Until(until))
		cpuAfter = cpuTime(t.server.pid)
	}
	running.Wait()
	if err != nil || ctx.Err() != nil {
		return sample{}, context.Cause(ctx)
	}

	var all []time.Duration
	for _, c := range callers {
		all = append(all, c.latencies...)
	}
	if len(all) == 0 {
		return sample{}, errors.New("no call ended within the measurement")
	}
	slices.Sort(all)
	return sample{
		p50: percentile(all, 0.50), p99: percentile(all, 0.99),
		rate: float64(len(all)) / d.Seconds(),
		cpu:  (cpuAfter - cpuBefore) / time.Duration(len(all)),
	}, nil
}

// A caller is one of those that call at the same time.
type caller struct {
	*connection
	number    int // from 0
	of        int // how many callers there are
	tool      string
	latencies []time.Duration // of the calls that ended between from and until
}

func (c *caller) run(from, until time.Time) error {
	var msg []byte
	// Callers share a session, in which no two running requests may have the
	// same id.
	for id := 1 + c.number; ; id += c.of {
		text := fmt.Sprintf("caller %d, call %d", c.number, id)
		msg = fmt.Appendf(msg[:0], `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":{"text":%q}}}`, id, c.tool, text)
		begun := time.Now()
		answer, _, err := c.post(msg)
		ended := time.Now()
		if err != nil {
			return err
		}
		var result callResult
		if err := decodeAnswer(answer, id, &result); err != nil {
			return err
		}
		got, err := result.text()
		if err != nil {
			return err
		}
		if got != text {
			return fmt.Errorf("wrong answer: %q, want %q", got, text)
		}
		if ended.After(until) {
			return nil
		}
		if ended.After(from) {
			c.latencies = append(c.latencies, ended.Sub(begun))
		}
	}
}

// percentile is the smallest value that no less than the share p reaches up to.
func percentile(sorted []time.Duration, p float64) time.Duration {
	return sorted[max(0, int(math.Ceil(p*float64(len(sorted))))-1)]
}

// median is the middle of the values, or the middle between the middle two.
func median[T int64 | float64 | time.Duration](values []T) T {
	v := slices.Sorted(slices.Values(values))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}
