package tenant

import (
	"encoding/json"
	"errors"
	"sync"
	"time"
)

// MaxAsks bounds the open questions of one call, maxAsked all that it has: each may
// cost the client's user time, or money.
const (
	MaxAsks  = 16
	maxAsked = 100
)

// AskKind says what a page wants of the client that called it.
type AskKind string

const (
	// Elicit asks the client's user.
	Elicit AskKind = "elicit"
	// Sample asks the client's model.
	Sample AskKind = "sample"
	// ListRoots asks which folders the client works on.
	ListRoots AskKind = "roots"
)

// Ask is a question that a page has for the client during a call. It is to be
// answered once, by [Ask.Answer]; further answers, and those that come after the
// call's end, are dropped.
type Ask struct {
	Kind   AskKind
	Params json.RawMessage // of the MCP request; nil for none
	// Page is the connection's id, and Call that of the call; for logs.
	Page, Call string

	answer func(Answer)
}

// Answer gives the page the client's result, or says why there is none. It may be
// called from any goroutine.
func (a *Ask) Answer(answer Answer) { a.answer(answer) }

var (
	errManyAsks = errors.New("too many questions of this call are open, or were asked")
	errNoAsks   = errors.New("nobody answers questions during this call")
)

// Ask passes on a question of a running call. Its answer goes to the page with
// the same id. An error means that it was not passed on: those of [Link.Answer],
// or one for the page.
func (l *Link) Ask(callID, id string, kind AskKind, params json.RawMessage) error {
	l.mu.Lock()
	p := l.pending[callID]
	l.mu.Unlock()
	if p == nil {
		_, err := l.take(callID)
		return err
	}
	if !p.asks {
		return errNoAsks
	}
	if !p.clock.stop() {
		return errManyAsks
	}
	var once sync.Once
	ask := &Ask{Kind: kind, Params: params, Page: l.ID(), Call: callID, answer: func(a Answer) {
		once.Do(func() {
			p.clock.start()
			l.mu.Lock()
			runs := l.pending[callID] == p
			l.mu.Unlock()
			if runs {
				l.transport.Answer(id, a)
			}
		})
	}}
	p.said <- said{ask: ask}
	return nil
}

// clock counts the time that a call has spent on open questions: they wait for a
// human, so the call's own limit does not run meanwhile.
type clock struct {
	mu     sync.Mutex
	open   int
	asked  int
	since  time.Time
	waited time.Duration
}

// stop notes a question, unless too many are open.
func (c *clock) stop() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open >= MaxAsks || c.asked >= maxAsked {
		return false
	}
	c.asked++
	if c.open++; c.open == 1 {
		c.since = time.Now()
	}
	return true
}

// start notes an answer.
func (c *clock) start() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open--; c.open == 0 {
		c.waited += time.Since(c.since)
	}
}

// lost is the time spent so far.
func (c *clock) lost() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open > 0 {
		return c.waited + time.Since(c.since)
	}
	return c.waited
}
