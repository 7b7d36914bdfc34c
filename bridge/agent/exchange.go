package agent

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"jsbridge/tenant"
)

// parkedState begins the requestState of a call that waits here for its client.
const parkedState = "jsbridge:"

// maxParked bounds the waiting calls of one workspace.
const maxParked = 256

// exchange is a call for a stateless client. While the page has questions for the
// client the call goes on without a request: the client is told the questions,
// asks its user or model, and calls again with the answers.
type exchange struct {
	*running
	s      *session
	target string

	// Of the request that waits, or of whoever has taken the exchange out of
	// session.parked.
	open   map[string]question // by the key that the client knows
	serial int
	expiry *time.Timer
}

type question struct {
	ask      *tenant.Ask
	request  mcp.InputRequest
	deadline time.Time // for its answer
}

// exchange begins a call, or goes on with the one that the request's state names.
func (s *session) exchange(r *request, e errand) (reply, error) {
	if !s.waits(r) {
		x, err := s.newExchange(r, e)
		if err != nil {
			return reply{}, err
		}
		return x.wait(r, e)
	}
	x := s.unpark(strings.TrimPrefix(r.state, parkedState), e.target())
	if x == nil {
		return reply{}, invalidParams("this requestState names no call that waits here: its time is over (--ask-timeout), it was answered already, or jsbridge was restarted; call again without it")
	}
	x.take(r.responses)
	return x.wait(r, e)
}

// waits tells whether a request is to go on with a call that waits here.
func (s *session) waits(r *request) bool { return s.parks(r.state) }

// parks tells it by the request's state.
func (s *session) parks(state string) bool { return s.shared && strings.HasPrefix(state, parkedState) }

func (s *session) newExchange(r *request, e errand) (*exchange, error) {
	c, err := s.prepared(r, e)
	if err != nil {
		return nil, err
	}
	go c.awaited().run()
	return &exchange{running: c, s: s, target: e.target(), open: make(map[string]question)}, nil
}

// wait returns the page's answer, or its questions. The request's end ends the
// call.
func (x *exchange) wait(r *request, e errand) (reply, error) {
	w := newWatch(r.ctx, x.s, r, e.label)
	x.attach(w)
	defer func() {
		x.attach(nil)
		w.stop()
	}()
	for {
		select {
		case <-x.done: // whatever it had asked
			x.count(endedFate)
			clear(x.open)
		default:
		}
		if len(x.open) > 0 {
			if q, ok := x.park(r); ok {
				return reply{questions: q}, nil
			}
		}
		select {
		case a := <-x.asks:
			x.note(r, e, a)
			for len(x.asks) > 0 { // ask all that there is at once; nobody else takes them
				x.note(r, e, <-x.asks)
			}
		case <-x.done:
			if x.err != nil {
				return reply{}, x.err
			}
			q, err := x.s.returned(r, e, x.answer)
			if err != nil || q != nil {
				x.s.h.counts.all(q, passedFate)
				return reply{questions: q}, err
			}
			return reply{answer: x.answer}, nil
		case <-r.ctx.Done():
			x.cancel(context.Cause(r.ctx))
			return reply{}, context.Cause(r.ctx)
		}
	}
}

// note takes a page's question, or tells the page why it can't be asked.
func (x *exchange) note(r *request, e errand, a *tenant.Ask) {
	q, err := x.s.h.parseAsk(a)
	if err == nil {
		err = r.check(q, e)
	}
	if err != nil {
		x.s.refused(r, a, err)
		return
	}
	x.serial++
	x.open[fmt.Sprintf("q%d", x.serial)] = question{a, q, time.Now().Add(x.s.h.opts.AskTimeout)}
}

// park leaves the call waiting for its client.
func (x *exchange) park(r *request) (*questions, bool) {
	s := x.s
	q := &questions{requests: make(mcp.InputRequestMap, len(x.open))}
	var deadline time.Time // the first
	for key, open := range x.open {
		q.requests[key] = open.request
		if deadline.IsZero() || open.deadline.Before(deadline) {
			deadline = open.deadline
		}
	}
	token := rand.Text()
	q.state = parkedState + token
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.parked) >= maxParked || s.ctx.Err() != nil {
		x.count(refusedFate)
		for key, open := range x.open {
			open.ask.Answer(tenant.Answer{Err: pageError(errors.New("too many calls of this workspace wait for answers"))})
			delete(x.open, key)
		}
		return nil, false
	}
	s.parked[token] = x
	x.expiry = time.AfterFunc(time.Until(deadline), func() {
		if s.unpark(token, x.target) == x {
			x.count(unansweredFate)
			x.log().Warn("a call ended: its client did not answer the page's question", "client", nameOf(r.agent))
			x.cancel(s.h.nobodyAnswered())
		}
	})
	return q, true
}

// unpark takes over the call of that target which waits under a token; whoever
// does so has it alone.
func (s *session) unpark(token, target string) *exchange {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.parked[token]
	if x == nil || x.target != target {
		return nil
	}
	delete(s.parked, token)
	s.used = time.Now()
	x.expiry.Stop()
	return x
}

// take gives the page the client's answers. What was not answered is asked again.
func (x *exchange) take(responses mcp.InputResponseMap) {
	for key, open := range x.open {
		if response := responses[key]; response != nil {
			given := answered(open.request, response, nil)
			x.s.h.counts.question(open.ask.Kind, fateOfAnswer(given))
			open.ask.Answer(given)
			delete(x.open, key)
		}
	}
}

// log is for lines about the call.
func (x *exchange) log() *slog.Logger {
	for _, open := range x.open { // they are all of the same call
		return x.s.logCall(open.ask.Page, open.ask.Call)
	}
	return x.s.log()
}

// count notes what became of all that is open.
func (x *exchange) count(f fate) {
	for _, open := range x.open {
		x.s.h.counts.question(open.ask.Kind, f)
	}
}
