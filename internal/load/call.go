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
// round pages of all sessions and all their tools, so that no part of the server stays
// warm because it is always the same one.
type callers struct {
	g      *gallery
	n      int
	pace   time.Duration // between two calls of one caller; 0 for none
	places []place       // what is called, in this order
	next   atomic.Int64

	// A soak goes on after a call that failed: on a machine that stands still for
	// seconds, pages seem to be suspended.
	tolerant bool
	mu       sync.Mutex
	failed   int
	failure  error // the first
}

// A place is a page in its session's view.
type place struct {
	session *session
	page    int
}

// maxPlaces is how many pages are called, of as many sessions as there are: a tool's
// first call prepares its schema, and is measured apart.
const maxPlaces = 200

// newCallers leaves the last pages out, which come and go.
func newCallers(st *stage, n, without int) *callers {
	c := &callers{g: st.sessions, n: n}
	for _, s := range st.sessions.sessions {
		for _, page := range st.pagesOf(s, without) {
			c.places = append(c.places, place{s, page})
		}
	}
	if every := len(c.places) / maxPlaces; every > 1 {
		var some []place
		for i := 0; i < len(c.places); i += every {
			some = append(some, c.places[i])
		}
		c.places = some
	}
	return c
}

// tools is how many tools are called.
func (c *callers) tools() int { return toolsPerPage * len(c.places) }

// warm calls each tool once, and gives the median of that.
func (c *callers) warm() (time.Duration, error) {
	lists := make([][]time.Duration, c.n)
	var running sync.WaitGroup
	for i := range lists {
		running.Go(func() {
			for {
				n := int(c.next.Add(1)) - 1
				if n >= c.tools() || c.g.ctx.Err() != nil {
					return
				}
				took, err := c.call(n)
				if err != nil {
					c.g.cancel(err)
					return
				}
				lists[i] = append(lists[i], took)
			}
		})
	}
	running.Wait()
	if err := context.Cause(c.g.ctx); err != nil {
		return 0, err
	}
	all := slices.Sorted(slices.Values(slices.Concat(lists...)))
	return percentile(all, 0.5), nil
}

// call makes the nth call and checks its answer.
func (c *callers) call(n int) (time.Duration, error) {
	at := c.places[n%len(c.places)]
	text := fmt.Sprintf("call %d", n)
	tool := prefixOf(at.page) + toolOf(n/len(c.places)%toolsPerPage)
	begun := time.Now()
	got, err := at.session.call(tool, fmt.Sprintf(`{"text":%q}`, text))
	took := time.Since(begun)
	if err == nil && got != text {
		err = fmt.Errorf("%s: wrong answer %q, want %q", tool, got, text)
	}
	return took, err
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
		took, err := c.call(int(c.next.Add(1)))
		ended := time.Now()
		if err != nil {
			if !c.tolerant {
				return err
			}
			c.note(err)
		}
		switch {
		case ended.After(until) || c.g.ctx.Err() != nil:
			return nil
		case ended.After(from) && err == nil:
			*latencies = append(*latencies, took)
		}
		if c.pace > 0 {
			if err := pause(c.g.ctx, c.pace-took); err != nil {
				return err
			}
		}
	}
}

// note keeps a failure for the end.
func (c *callers) note(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed++
	if c.failure == nil {
		c.failure = err
	}
}
