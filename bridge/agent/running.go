package agent

import (
	"context"
	"errors"
	"sync"

	"jsbridge/tenant"
)

// eventsKept bounds what a page says of a call while no request waits for it.
const eventsKept = 64

// running is a call of a page that goes on without a request. It ends with its
// session.
type running struct {
	cancel context.CancelCauseFunc
	asks   chan *tenant.Ask // more are never open at once
	done   chan struct{}    // closed once answer and err are set
	answer tenant.Answer
	err    error
	wants  func(tenant.Event) bool // tells what a client is to hear of

	mu      sync.Mutex
	watch   *watch         // of the request that waits now, if any
	unheard []tenant.Event // for the next one, while there is none
	spoke   chan struct{}  // has an entry once there are some, or questions
}

// start begins a call.
func (s *session) start(r *request, e errand) (*running, error) {
	retry, err := r.retry()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(s.ctx)
	c := &running{cancel: cancel, asks: make(chan *tenant.Ask, tenant.MaxAsks), done: make(chan struct{}), spoke: make(chan struct{}, 1)}
	c.wants = func(e tenant.Event) bool {
		// A stateless client may want with its next request what it does not want with this one.
		return s.shared || e.Progress != nil && r.token != nil || e.Log != nil && s.hearsLogs.Load()
	}
	call := tenant.Call{Agent: r.agent, Session: s.id, Progress: r.token != nil, OnEvent: c.event, OnAsk: c.ask, Retry: retry}
	go func() {
		defer cancel(nil)
		c.err = s.h.safely("a page's call", func() (err error) {
			c.answer, err = e.do(ctx, call)
			return err
		})
		var ce *tenant.CallError
		if c.err != nil && !errors.As(c.err, &ce) && ctx.Err() != nil {
			c.err = context.Cause(ctx)
		}
		close(c.done)
	}()
	return c, nil
}

// event passes what the page says on to the request that waits, or to the next one.
func (c *running) event(e tenant.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watch != nil {
		c.watch.event(e)
		return
	}
	if !c.wants(e) {
		return
	}
	if len(c.unheard) < eventsKept {
		c.unheard = append(c.unheard, e)
	}
	c.speaks()
}

func (c *running) ask(a *tenant.Ask) {
	c.asks <- a
	c.speaks()
}

func (c *running) speaks() {
	select {
	case c.spoke <- struct{}{}:
	default:
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
	c.attach(w)
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
