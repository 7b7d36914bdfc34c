package tenant

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"jsbridge/manifest"
)

// eventsKept bounds what a page may say of one call ahead of its caller.
const eventsKept = 64

// Call is one request to run a page's tool.
type Call struct {
	// Args is an object that has been checked.
	Args  json.RawMessage
	Agent Agent
	// OnEvent hears what the page says meanwhile, in the goroutine that calls
	// [Page.Call]. Nil: nobody listens.
	OnEvent func(Event)
	// Progress asks the page for progress.
	Progress bool
	// Prefix and Name are the page's and the tool's in the caller's view, for
	// error messages.
	Prefix, Name string
}

type outcome struct {
	answer Answer
	err    *CallError
	again  bool // certainly not run: send it on the page's next link
}

type pending struct {
	done   chan outcome // buffered: whoever takes the entry out of Link.pending sends exactly once
	events chan Event
}

// Call runs a tool in the page and waits for its end. A page that is
// reconnecting is waited for within the grace. The error is a [*CallError], or
// the context's.
func (p *Page) Call(ctx context.Context, tool *manifest.Tool, c Call) (Answer, error) {
	return p.call(ctx, tool, p.toolLocked, c)
}

// Ask is [Page.Call] for a request to the page's script itself, by one of the
// protocol's reserved names.
func (p *Page) Ask(ctx context.Context, name string, c Call) (Answer, error) {
	tool := &manifest.Tool{Name: name}
	return p.call(ctx, tool, func(string) *manifest.Tool { return tool }, c)
}

func (p *Page) call(ctx context.Context, tool *manifest.Tool, find func(name string) *manifest.Tool, c Call) (Answer, error) {
	r := p.tenant.reg
	r.calls.Add(1)
	defer r.callEnded()
	if r.draining.Load() {
		return Answer{}, &CallError{Kind: ServerStopping}
	}
	p.tenant.touch()
	limit := tool.Timeout
	if limit == 0 {
		limit = r.opts.CallTimeout
	}
	deadline := time.Now().Add(limit)
	for {
		l, tool, err := p.awaitLink(ctx, tool.Name, find, limit, deadline)
		if err != nil {
			return Answer{}, inView(err, c)
		}
		out, err := l.run(ctx, tool, c, limit, deadline)
		if err != nil {
			return Answer{}, inView(err, c)
		}
		if !out.again {
			return out.answer, nil
		}
	}
}

// inView names page and tool as the caller knows them.
func inView(err error, c Call) error {
	var ce *CallError
	if !errors.As(err, &ce) {
		return err
	}
	named := *ce
	if c.Prefix != "" && ce.page.prefix != "" {
		named.page.prefix = c.Prefix
	}
	if c.Name != "" && ce.tool != "" {
		named.tool = c.Name
	}
	return &named
}

// awaitLink waits until the page can take a call and looks the tool up again,
// with tenant.mu held: what it declared may have changed meanwhile.
func (p *Page) awaitLink(ctx context.Context, name string, find func(string) *manifest.Tool, limit time.Duration, deadline time.Time) (*Link, *manifest.Tool, error) {
	var timer *time.Timer
	probed := false
	for {
		p.tenant.mu.Lock()
		l, changed, who := p.link, p.changed, p.nameLocked()
		switch {
		case p.gone:
			p.tenant.mu.Unlock()
			return nil, nil, &CallError{Kind: PageGone, tool: name, page: who}
		case l != nil && p.declared && !l.suspended.Load():
			tool := find(name)
			p.tenant.mu.Unlock()
			if tool == nil {
				return nil, nil, &CallError{Kind: NotOffered, tool: name, page: who}
			}
			return l, tool, nil
		}
		p.tenant.mu.Unlock()

		wait := time.Until(deadline)
		suspended := l != nil && l.suspended.Load()
		if suspended {
			// Calls sent to a frozen page would run at some later time, so
			// ask first.
			if !probed {
				probed = true
				l.transport.Probe()
			}
			wait = min(wait, p.tenant.reg.opts.ProbeTimeout)
		}
		if timer == nil {
			timer = time.NewTimer(wait)
			defer timer.Stop()
		} else {
			timer.Reset(wait)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-timer.C:
			if suspended {
				return nil, nil, &CallError{Kind: PageSuspended, tool: name, page: who, limit: p.tenant.reg.opts.ProbeTimeout}
			}
			return nil, nil, &CallError{Kind: TimedOut, tool: name, page: who, limit: limit}
		}
	}
}

func (p *Page) toolLocked(name string) *manifest.Tool {
	for _, t := range p.manifest.Tools {
		if t.Name == name {
			return t
		}
	}
	return nil
}

// run sends the call on this link and waits.
func (l *Link) run(ctx context.Context, tool *manifest.Tool, c Call, limit time.Duration, deadline time.Time) (outcome, error) {
	opts := &l.reg.opts
	id, p, err := l.begin(tool.Name)
	if err != nil {
		return outcome{}, err
	}
	if p == nil { // the page has just lost this link
		return outcome{again: true}, nil
	}
	sent := l.reg.now()
	err = l.transport.Call(CallFrame{ID: id, Tool: tool.Name, Args: c.Args, Timeout: time.Until(deadline), Progress: c.Progress, Agent: c.Agent})
	if err != nil {
		if _, taken := l.take(id); taken == nil {
			return outcome{}, &CallError{Kind: NotSent, tool: tool.Name, page: l.name(), cause: err}
		}
		out := <-p.done // the link failed it meanwhile; but it was not sent
		if out.err != nil {
			e := *out.err // shared by all calls of the link
			e.MayHaveRun = false
			out.err = &e
		}
		return finish(out, tool.Name)
	}

	timer := time.NewTimer(min(time.Until(deadline), opts.ProbeAfter))
	defer timer.Stop()
	var probedAt time.Duration // 0: no probe under way
	for {
		select {
		case out := <-p.done:
			l.drain(p, c.OnEvent)
			return finish(out, tool.Name)
		case e := <-p.events:
			if c.OnEvent != nil {
				c.OnEvent(e)
			}
		case <-ctx.Done():
			return l.abandon(id, p, "the caller cancelled this call", tool.Name, func() error { return ctx.Err() })
		case <-timer.C:
			left := time.Until(deadline)
			if left <= 0 {
				return l.abandon(id, p, fmt.Sprintf("the limit of %s is over", limit), tool.Name, func() error {
					return &CallError{Kind: TimedOut, MayHaveRun: true, tool: tool.Name, page: l.name(), limit: limit}
				})
			}
			heard := max(time.Duration(l.heard.Load()), sent)
			switch quiet := l.reg.now() - heard; {
			case !l.probes:
				timer.Reset(left)
			case probedAt != 0 && heard < probedAt:
				l.suspend()
				return l.abandon(id, p, "no sign of life", tool.Name, func() error {
					return &CallError{Kind: PageSuspended, MayHaveRun: true, tool: tool.Name, page: l.name(), limit: quiet}
				})
			case quiet < opts.ProbeAfter:
				probedAt = 0
				timer.Reset(min(left, opts.ProbeAfter-quiet))
			default:
				probedAt = l.reg.now()
				l.transport.Probe()
				timer.Reset(min(left, opts.ProbeTimeout))
			}
		}
	}
}

// begin makes the call's entry before the call is sent, so that no answer can
// come too early. No entry and no error: the link has ended.
func (l *Link) begin(tool string) (string, *pending, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return "", nil, nil
	}
	if most := l.reg.opts.MaxCallsPerPage; len(l.pending) >= most {
		return "", nil, &CallError{Kind: TooBusy, tool: tool, most: most}
	}
	l.sent++
	id := strconv.FormatUint(l.serial, 10) + "-" + strconv.FormatUint(l.sent, 10)
	p := &pending{done: make(chan outcome, 1), events: make(chan Event, eventsKept)}
	l.pending[id] = p
	return id, p, nil
}

func (l *Link) drain(p *pending, on func(Event)) {
	for on != nil {
		select {
		case e := <-p.events:
			on(e)
		default:
			return
		}
	}
}

// abandon ends a call from this side, unless its answer won the race.
func (l *Link) abandon(id string, p *pending, reason, tool string, err func() error) (outcome, error) {
	if _, taken := l.take(id); taken != nil {
		return finish(<-p.done, tool)
	}
	l.transport.Cancel(id, reason)
	return outcome{}, err()
}

func finish(out outcome, tool string) (outcome, error) {
	if out.err != nil {
		e := *out.err // shared by all calls of the link
		e.tool = tool
		return outcome{}, &e
	}
	return out, nil
}
