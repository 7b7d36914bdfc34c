package main

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"
)

// A sample is one measurement of one target.
type sample struct {
	p50, p99 time.Duration
	rate     float64       // calls per second
	cpu      time.Duration // of the server, per call; 0 where it is not known
}

// measure has a number of callers make exchanges with the target as fast as they are
// answered, first unmeasured for a fifth of the duration. On a machine so busy that a
// caller was not answered once within the duration, it takes longer.
func measure(ctx context.Context, t *target, inFlight int, d time.Duration, x exchange) (sample, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	from := time.Now().Add(d / 5)
	until := from.Add(d)
	callers, err := t.callers(ctx, inFlight, until.Add(patience))
	defer closeCallers(callers)
	if err != nil {
		return sample{}, err
	}
	var running sync.WaitGroup
	for _, c := range callers {
		running.Go(func() {
			if err := c.run(x, from, until); err != nil {
				cancel(err)
			}
		})
	}
	cpuBefore, cpuAfter := time.Duration(0), time.Duration(0)
	err = pause(ctx, time.Until(from))
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
		if c.last.After(until) {
			d = max(d, c.last.Sub(from))
			cpuAfter = cpuTime(t.server.pid)
		}
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
	number    int             // from 0
	of        int             // how many callers there are
	latencies []time.Duration // of the calls that ended between from and until, or one
	last      time.Time       // when the last of them ended

	text, msg []byte // of the call being made, reused
}

// callers connects so many.
func (t *target) callers(ctx context.Context, n int, deadline time.Time) ([]*caller, error) {
	callers := make([]*caller, 0, n)
	for i := range n {
		c, err := t.dial(ctx)
		if err != nil {
			return callers, err
		}
		_ = c.conn.SetDeadline(deadline)
		callers = append(callers, &caller{connection: c, number: i, of: n})
	}
	return callers, nil
}

func closeCallers(callers []*caller) {
	for _, c := range callers {
		c.close()
	}
}

func (c *caller) run(x exchange, from, until time.Time) error {
	// Callers share a session, in which no two running requests may have the
	// same id.
	for id := 1 + c.number; ; id += c.of {
		begun, ended, err := x(c, id)
		if err != nil {
			return err
		}
		over := ended.After(until)
		if ended.After(from) && (!over || len(c.latencies) == 0) {
			c.latencies, c.last = append(c.latencies, ended.Sub(begun)), ended
		}
		if over {
			return nil
		}
	}
}

// An exchange is what a caller does again and again: requests with the id, and a
// check of their answers. It begins with the writing of the first request and ends
// with the last byte of the last answer.
type exchange func(c *caller, id int) (begun, ended time.Time, err error)

// calling calls a tool with a text that no other call has, of some bytes at least,
// and wants it back.
func calling(tool string, bytes int) exchange {
	const words = "all work and no play "
	filler := []byte(strings.Repeat(words, bytes/len(words)+1)[:bytes])
	return func(c *caller, id int) (begun, ended time.Time, err error) {
		c.text = fmt.Appendf(c.text[:0], "\"caller %d, call %d ", c.number, id)
		c.text = append(append(c.text, filler...), '"') // nothing in it needs to be escaped
		c.msg = fmt.Appendf(c.msg[:0], `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":{"text":`, id, tool)
		c.msg = append(append(c.msg, c.text...), "}}}"...)
		begun = time.Now()
		answer, _, err := c.post(c.msg)
		ended = time.Now()
		if err == nil {
			err = checkEcho(answer, id, c.text)
		}
		return begun, ended, err
	}
}

// checkEcho wants the text, which is JSON and not short of a call's number, back. It
// is cut out before the rest is decoded, or the decoding of long texts would be what
// is measured.
func checkEcho(answer []byte, id int, text []byte) error {
	const instead = "="
	before, after, _ := bytes.Cut(answer, text)
	var result callResult
	if err := decodeAnswer(slices.Concat(before, []byte(`"`+instead+`"`), after), id, &result); err != nil {
		return err
	}
	got, err := result.text()
	if err == nil && got != instead {
		err = fmt.Errorf("wrong answer: %.200q, want %.200s", got, text)
	}
	return err
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
