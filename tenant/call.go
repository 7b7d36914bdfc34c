package tenant

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"jsbridge/manifest"
)

// eventsKept bounds what a page may say of one call ahead of its caller.
const eventsKept = 64

// Call is one request to a page.
type Call struct {
	// Args are those of a tool, an object that has been checked; for the other
	// methods see [CallFrame].
	Args  json.RawMessage
	Agent Agent
	// Cancel ends the call's context from outside, by its cause. Nil: the observer
	// is given a way of its own.
	Cancel context.CancelCauseFunc
	// OnEvent hears what the page says meanwhile, in the goroutine that makes the
	// call. Nil: nobody listens.
	OnEvent func(Event)
	// OnAsk hears the page's questions, likewise, and must have each answered. Nil:
	// nobody answers them.
	OnAsk func(*Ask)
	// Progress asks the page for progress.
	Progress bool
	Retry    Retry
	// Prefix and Name are the page's and the tool's in the caller's view, for
	// error messages.
	Prefix, Name string
	// Shown is what the caller calls by, a published name or URI, and Session the
	// MCP session that calls, by an id that is no secret; both for the
	// [Observer]. Without Shown it is told the page's own name.
	Shown, Session string

	trace Trace // nil: nobody observes
}

type outcome struct {
	answer Answer
	err    *CallError
	again  bool // certainly not run: send it on the page's next link
}

type pending struct {
	done  chan outcome // buffered: whoever takes the entry out of Link.pending sends exactly once
	said  chan said    // has room for eventsKept events and all questions that may be open
	asks  bool         // somebody answers them
	clock clock
}

// said is what a page says of a running call: an event or a question.
type said struct {
	event Event
	ask   *Ask
}

// target is what of a page is called.
type target struct {
	method  Method
	name    string
	timeout time.Duration // 0: the default
	offered func(*manifest.Manifest) bool
}

// Call runs a tool in the page and waits for its end. A page that is
// reconnecting is waited for within the grace. The error is a [*CallError], or
// the context's.
func (p *Page) Call(ctx context.Context, tool *manifest.Tool, c Call) (Answer, error) {
	return p.observed(ctx, target{RunTool, tool.Name, tool.Timeout, func(m *manifest.Manifest) bool {
		return slices.ContainsFunc(m.Tools, func(t *manifest.Tool) bool { return t.Name == tool.Name })
	}}, c)
}

// Ask is [Page.Call] for a request to the page's script itself, by one of the
// protocol's reserved names.
func (p *Page) Ask(ctx context.Context, name string, c Call) (Answer, error) {
	return p.observed(ctx, target{RunTool, name, 0, func(*manifest.Manifest) bool { return true }}, c)
}

// Prompt is [Page.Call] for what concerns a prompt: [GetPrompt] or [Complete].
func (p *Page) Prompt(ctx context.Context, m Method, prompt *manifest.Prompt, c Call) (Answer, error) {
	return p.observed(ctx, target{m, prompt.Name, prompt.Timeout, func(m *manifest.Manifest) bool {
		return slices.ContainsFunc(m.Prompts, func(q *manifest.Prompt) bool { return q.Name == prompt.Name })
	}}, c)
}

// Resource is [Page.Call] for what concerns a resource: [ReadResource] or
// [Complete].
func (p *Page) Resource(ctx context.Context, m Method, r *manifest.Resource, c Call) (Answer, error) {
	return p.observed(ctx, target{m, r.URI, r.Timeout, func(m *manifest.Manifest) bool {
		return slices.ContainsFunc(m.Resources, func(q *manifest.Resource) bool { return q.URI == r.URI && q.Template == r.Template })
	}}, c)
}

func (p *Page) send(ctx context.Context, t target, c Call) (Answer, error) {
	r := p.tenant.reg
	r.calls.Add(1)
	defer r.callEnded()
	if r.draining.Load() {
		return Answer{}, &CallError{Kind: ServerStopping, Page: p.id}
	}
	p.tenant.touch()
	if t.timeout == 0 {
		t.timeout = r.opts.CallTimeout
	}
	deadline := time.Now().Add(t.timeout)
	for {
		l, err := p.awaitLink(ctx, t, deadline)
		if err != nil {
			return Answer{}, p.inView(err, c)
		}
		out, err := l.run(ctx, t, c, deadline)
		if err != nil {
			return Answer{}, p.inView(err, c)
		}
		if !out.again {
			return out.answer, nil
		}
	}
}

// inView names page and tool as the caller knows them.
func (p *Page) inView(err error, c Call) error {
	var ce *CallError
	if !errors.As(err, &ce) {
		return err
	}
	named := *ce
	named.Page = p.id
	if c.Prefix != "" && ce.page.prefix != "" {
		named.page.prefix = c.Prefix
	}
	if c.Name != "" && ce.tool != "" {
		named.tool = c.Name
	}
	return &named
}

// awaitLink waits until the page can take a call and looks again for what is
// called: what the page declares may have changed meanwhile.
func (p *Page) awaitLink(ctx context.Context, t target, deadline time.Time) (*Link, error) {
	name := t.name
	var timer *limit
	probed, late := false, false
	for {
		p.tenant.mu.Lock()
		l, changed, who := p.link, p.changed, p.nameLocked()
		switch {
		case p.gone:
			p.tenant.mu.Unlock()
			return nil, &CallError{Kind: PageGone, tool: name, page: who}
		case l != nil && p.declared && !l.suspended.Load():
			offered := t.offered(p.manifest)
			p.tenant.mu.Unlock()
			if !offered {
				return nil, &CallError{Kind: NotOffered, tool: name, page: who}
			}
			return l, nil
		}
		p.tenant.mu.Unlock()

		wait := time.Until(deadline)
		if late {
			wait, late = max(wait, catchUp), false
		}
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
			timer = newLimit(wait)
			defer timer.Stop()
		} else {
			timer.reset(wait)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ended(ctx, false, name, who)
		case <-timer.C:
			if late = timer.late(); late {
				continue
			}
			if suspended {
				return nil, &CallError{Kind: PageSuspended, tool: name, page: who, limit: p.tenant.reg.opts.ProbeTimeout}
			}
			return nil, &CallError{Kind: TimedOut, tool: name, page: who, limit: t.timeout}
		}
	}
}

// run sends the call on this link and waits.
func (l *Link) run(ctx context.Context, t target, c Call, deadline time.Time) (outcome, error) {
	id, p, err := l.begin(t.name, c.OnAsk != nil)
	if err != nil {
		return outcome{}, err
	}
	if p == nil { // the page has just lost this link
		return outcome{again: true}, nil
	}
	if c.trace != nil {
		c.trace.Sent(id)
	}
	out, err := l.await(ctx, id, p, t, c, deadline)
	if ce, ok := err.(*CallError); ok { // made for this call alone
		ce.ID = id
	}
	return out, err
}

// await sends a call whose entry there is, and waits.
func (l *Link) await(ctx context.Context, id string, p *pending, t target, c Call, deadline time.Time) (outcome, error) {
	opts := &l.reg.opts
	sent := l.reg.now()
	err := l.transport.Call(CallFrame{ID: id, Method: t.method, Tool: t.name, Args: c.Args, Timeout: time.Until(deadline), Progress: c.Progress, Agent: c.Agent, Retry: c.Retry})
	if err != nil {
		if _, taken := l.take(id); taken == nil {
			return outcome{}, &CallError{Kind: NotSent, tool: t.name, page: l.name(), cause: err}
		}
		out := <-p.done // the link failed it meanwhile; but it was not sent
		if out.err != nil {
			e := *out.err // shared by all calls of the link
			e.MayHaveRun = false
			out.err = &e
		}
		return finish(out, t.name)
	}

	timer := newLimit(min(time.Until(deadline), opts.ProbeAfter))
	defer timer.Stop()
	var probedAt time.Duration // 0: no probe under way
	for {
		select {
		case out := <-p.done:
			l.drain(p, c.OnEvent)
			return finish(out, t.name)
		case s := <-p.said:
			if s.ask != nil {
				c.OnAsk(s.ask)
			} else if c.OnEvent != nil {
				c.OnEvent(s.event)
			}
		case <-ctx.Done():
			why := "the caller cancelled this call"
			if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) && !errors.Is(cause, context.DeadlineExceeded) {
				why = cause.Error()
			}
			return l.abandon(id, p, why, t.name, func() error { return ended(ctx, true, t.name, l.name()) })
		case <-timer.C:
			if timer.late() {
				continue
			}
			left := time.Until(deadline) + p.clock.lost()
			if left <= 0 {
				return l.abandon(id, p, fmt.Sprintf("the limit of %s is over", t.timeout), t.name, func() error {
					return &CallError{Kind: TimedOut, MayHaveRun: true, tool: t.name, page: l.name(), limit: t.timeout}
				})
			}
			heard := max(time.Duration(l.heard.Load()), sent)
			switch quiet := l.reg.now() - heard; {
			case !l.probes:
				timer.reset(left)
			case probedAt != 0 && heard < probedAt:
				l.suspend()
				return l.abandon(id, p, "no sign of life", t.name, func() error {
					return &CallError{Kind: PageSuspended, MayHaveRun: true, tool: t.name, page: l.name(), limit: quiet}
				})
			case quiet < opts.ProbeAfter:
				probedAt = 0
				timer.reset(min(left, opts.ProbeAfter-quiet))
			default:
				probedAt = l.reg.now()
				l.transport.Probe()
				timer.reset(min(left, opts.ProbeTimeout))
			}
		}
	}
}

// begin makes the call's entry before the call is sent, so that no answer can
// come too early. No entry and no error: the link has ended.
func (l *Link) begin(tool string, asks bool) (string, *pending, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return "", nil, nil
	}
	if most := l.reg.opts.MaxCallsPerPage; len(l.pending) >= most {
		return "", nil, &CallError{Kind: TooBusy, tool: tool, most: most}
	}
	l.sent++
	var digits [48]byte
	id := string(strconv.AppendUint(append(strconv.AppendUint(digits[:0], l.serial, 10), '-'), l.sent, 10))
	p := &pending{done: make(chan outcome, 1), said: make(chan said, eventsKept+MaxAsks), asks: asks}
	l.pending[id] = p
	return id, p, nil
}

// drain passes on the events that a call's end has overtaken.
func (l *Link) drain(p *pending, on func(Event)) {
	for on != nil {
		select {
		case s := <-p.said:
			if s.ask == nil { // a question is over with its call
				on(s.event)
			}
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
