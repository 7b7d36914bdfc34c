package agent

import (
	"context"
	"errors"
	"sync"

	"jsbridge/tenant"
)

// eventsKept bounds what a page says of a call while no request waits for it.
const eventsKept = 64

// running is a call of a page that requests can join and leave. It ends with its
// session.
type running struct {
	s      *session
	ctx    context.Context
	cancel context.CancelCauseFunc
	errand errand
	call   tenant.Call
	spoke  func() // told that there is something to hear while no request waits; nil: nobody is

	// Made by awaited: most calls need neither.
	asks chan *tenant.Ask // more are never open at once
	done chan struct{}    // closed once answer and err are set

	answer tenant.Answer
	err    error

	mu      sync.Mutex
	ended   bool
	watch   *watch         // of the request that waits now, if any
	unheard []tenant.Event // for the next one, while there is none
}

// prepared is a call that can be made for a request.
func (s *session) prepared(r *request, e errand) (*running, error) {
	retry, err := r.retry()
	if err != nil {
		return nil, err
	}
	c := &running{s: s, errand: e}
	c.ctx, c.cancel = context.WithCancelCause(s.ctx)
	c.call = tenant.Call{Agent: r.agent, Session: s.id, Progress: r.token != nil, Cancel: c.cancel, OnEvent: c.event, OnAsk: c.ask, Retry: retry}
	return c, nil
}

// run makes the call and returns when it has ended.
func (c *running) run() {
	defer c.cancel(nil)
	c.err = c.s.safely("a page's call", func() (err error) {
		c.answer, err = c.errand.do(c.ctx, c.call)
		return err
	})
	var ce *tenant.CallError
	if c.err != nil && !errors.As(c.err, &ce) && c.ctx.Err() != nil {
		c.err = context.Cause(c.ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended = true; c.done != nil {
		close(c.done)
	}
}

// awaited makes ready for a request that waits elsewhere than in run.
func (c *running) awaited() *running {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done == nil {
		c.asks, c.done = make(chan *tenant.Ask, tenant.MaxAsks), make(chan struct{})
		if c.ended {
			close(c.done)
		}
	}
	return c
}

// event passes what the page says on to the request that waits, or to the next one.
func (c *running) event(e tenant.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watch != nil {
		c.watch.event(e)
		return
	}
	if !c.wanted(e) {
		return
	}
	if len(c.unheard) < eventsKept {
		c.unheard = append(c.unheard, e)
	}
	if c.spoke != nil {
		c.spoke()
	}
}

// wanted tells whether a client is to hear of it. A stateless one may want with its
// next request what it does not want with this one.
func (c *running) wanted(e tenant.Event) bool {
	return c.s.shared || e.Progress != nil && c.call.Progress || e.Log != nil && c.s.hearsLogs.Load()
}

func (c *running) ask(a *tenant.Ask) {
	c.awaited().asks <- a
	if c.spoke != nil {
		c.spoke()
	}
}

func (c *running) attach(w *watch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watch = w
	if w == nil {
		return
	}
	for _, e := range c.unheard {
		w.event(e)
	}
	c.unheard = nil
}

// join waits for the call's end like whoever makes it, which ctx ends.
func (c *running) join(ctx context.Context, w *watch, ask func(*tenant.Ask)) (tenant.Answer, error) {
	c.awaited().attach(w)
	defer c.attach(nil)
	over := ctx.Done()
	for {
		select {
		case a := <-c.asks:
			ask(a)
		case <-c.done:
			return c.answer, c.err
		case <-over:
			c.cancel(context.Cause(ctx))
			over = nil
		}
	}
}
