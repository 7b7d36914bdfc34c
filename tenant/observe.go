package tenant

import (
	"context"
	"encoding/json"
	"errors"
)

// Observer is told what is asked of pages, whoever asks. Its methods are called
// with no lock of this package held, in the goroutine that calls the page: they
// must return at once, and not call back.
type Observer interface {
	// Call is told that a call begins. The trace that it returns hears the rest;
	// listens tells that somebody wants to hear of progress.
	Call(ctx context.Context, b Beginning) (t Trace, listens bool)
	// Tool is told that a tool was added to a page at run time, or taken away.
	Tool(ctx context.Context, c ToolChange)
}

// A Trace hears of one call, in the goroutine that makes it.
type Trace interface {
	// Sent tells under which id the page is about to be sent the call; more than
	// once when a page came back that had certainly not taken it. A call that
	// never gets so far has none.
	Sent(id string)
	Progress(Progress)
	// End comes last, once. What the answer holds is not changed afterwards.
	End(Answer, error)
}

// Beginning is a call that begins.
type Beginning struct {
	// Page is the page's id, Label its name.
	Page, Label string
	Method      Method
	// Name is what is called, as its caller knows it: see [Call].
	Name    string
	Session string
	Agent   Agent
	// Args belong to the caller: keep a copy.
	Args json.RawMessage
	// Cancel ends the call from outside. It may be called at any time.
	Cancel func()
}

// ToolChange is a tool that was added to a page, or taken away.
type ToolChange struct {
	Page, Label string
	Removed     bool
	Entry       Entry // with the name that it has, or had, in the page's own tenant
	Agent       Agent
}

var errFailed = errors.New("jsbridge failed, see its log")

// errCancelled ends a call from outside.
var errCancelled = errors.New("the user cancelled this call in jsbridge's dashboard")

// observed runs a call under the eyes of the registry's observer.
func (p *Page) observed(ctx context.Context, t target, c Call) (Answer, error) {
	o := p.tenant.reg.opts.Observer
	if o == nil {
		return p.send(ctx, t, c)
	}
	cancel := c.Cancel
	if cancel == nil {
		ctx, cancel = context.WithCancelCause(ctx)
		defer cancel(nil)
	}
	b := Beginning{Page: p.id, Label: p.shown(), Method: t.method, Name: t.name, Session: c.Session, Agent: c.Agent, Args: c.Args,
		Cancel: func() { cancel(errCancelled) }}
	if c.Shown != "" {
		b.Name = c.Shown
	}
	trace, listens := o.Call(ctx, b)
	c.trace = trace
	c.Progress = c.Progress || listens
	hear := c.OnEvent
	c.OnEvent = func(e Event) {
		if e.Progress != nil {
			trace.Progress(*e.Progress)
		}
		if hear != nil {
			hear(e)
		}
	}
	a, err := Answer{}, errFailed // what stays of a panic
	defer func() { trace.End(a, err) }()
	a, err = p.send(ctx, t, c)
	return a, err
}

// shown is the page's label, for people.
func (p *Page) shown() string {
	p.tenant.mu.Lock()
	defer p.tenant.mu.Unlock()
	return p.labelLocked()
}

// ended words why a call ended with its context.
func ended(ctx context.Context, mayHaveRun bool, tool string, page pageName) error {
	if context.Cause(ctx) == errCancelled {
		return &CallError{Kind: Cancelled, MayHaveRun: mayHaveRun, tool: tool, page: page}
	}
	return ctx.Err()
}

// Changes has an entry whenever something that [Registry.Tenants] and its kin
// show has changed since the last one was taken. It tells that, not what; it is
// for one reader.
func (r *Registry) Changes() <-chan struct{} { return r.changes }

// Note makes an entry in [Registry.Changes]. It never waits, so that locks may be
// held.
func (r *Registry) Note() {
	select {
	case r.changes <- struct{}{}:
	default:
	}
}
