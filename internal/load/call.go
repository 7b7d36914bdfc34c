package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// callers call the pages' tools, each as fast as it is answered, or at a pace. They go
// round all sessions, pages and tools, so that no part of the server stays warm
// because it is always the same one.
type callers struct {
	g      *gallery
	n      int
	pace   time.Duration // between two calls of one caller; 0 for none
	places []place       // what is called, in this order
	next   atomic.Int64
}

// A place is a page in its session's view.
type place struct {
	session *session
	page    int
}

// newCallers leaves the last pages out, which come and go.
func newCallers(st *stage, n, without int) *callers {
	c := &callers{g: st.sessions, n: n}
	for _, s := range st.sessions.sessions {
		for _, page := range st.pagesOf(s, without) {
			c.places = append(c.places, place{s, page})
		}
	}
	return c
}

// measure calls for a while, first unmeasured for a fifth of that.
func (c *callers) measure(d time.Duration) (callRate, error) {
	from := time.Now().Add(d / 5)
	until := from.Add(d)
	lists := make([][]time.Duration, c.n)
	var running sync.WaitGroup
	for i := range lists {
		running.Go(func() {
			if err := c.run(from, until, &lists[i]); err != nil {
				c.g.cancel(err)
			}
		})
	}
	running.Wait()
	if err := context.Cause(c.g.ctx); err != nil {
		return callRate{}, err
	}
	all := slices.Concat(lists...)
	if len(all) == 0 {
		return callRate{}, errors.New("no call ended within the measurement")
	}
	slices.Sort(all)
	return callRate{rate: float64(len(all)) / d.Seconds(), p50: percentile(all, 0.5), p99: percentile(all, 0.99)}, nil
}

func (c *callers) run(from, until time.Time, latencies *[]time.Duration) error {
	for {
		n := int(c.next.Add(1))
		at := c.places[n%len(c.places)]
		text := fmt.Sprintf("call %d", n)
		tool := prefixOf(at.page) + toolOf(n/len(c.places)%toolsPerPage)
		begun := time.Now()
		got, err := at.session.call(tool, fmt.Sprintf(`{"text":%q}`, text))
		ended := time.Now()
		switch {
		case err != nil:
			return err
		case got != text:
			return fmt.Errorf("%s: wrong answer %q, want %q", tool, got, text)
		case ended.After(until):
			return nil
		case ended.After(from):
			*latencies = append(*latencies, ended.Sub(begun))
		}
		if c.pace > 0 {
			if err := pause(c.g.ctx, c.pace-ended.Sub(begun)); err != nil {
				return err
			}
		}
	}
}
