package agent

import (
	"context"
	"errors"
	"sync/atomic"

	"jsbridge/tenant"
)

// Stats is what is open now, and what was counted since the start. The maps have
// an entry for each of their keys, also where nothing was counted.
type Stats struct {
	// Sessions by era: "session" for clients that have one, "stateless" for the
	// workspaces of those that have none.
	Sessions map[string]int
	// Streams that are open, by kind: "standalone" of sessions, "listen" of
	// stateless clients.
	Streams map[string]int
	// RequestsRefused counts HTTP requests that were answered with an error, by
	// reason.
	RequestsRefused map[string]uint64
	// CallsRefused counts calls that no page was asked for, by reason: "unknown"
	// for what is called, or its "arguments".
	CallsRefused map[string]uint64
	// Questions of pages, by what became of them.
	Questions map[Question]uint64
	// ListChanged counts the notifications sent, by list.
	ListChanged map[string]uint64
	// ResourceUpdates counts those sent of watched resources.
	ResourceUpdates uint64
	// ItemsCut are items of results that were longer than the limit, and BytesCut
	// what of them was left out.
	ItemsCut, BytesCut uint64
}

// Question is a kind of question (elicit, sample or roots) and what became of it:
// "answered", "unanswered" in time, "refused" before the client was asked,
// "failed" since the client's answer was an error or no answer to it, "ended" with
// the call, or "passed" to a stateless client, as the page returned it.
type Question struct{ Kind, Outcome string }

// refusal reasons of HTTP requests.
type reason int

const (
	noSuchSession reason = iota
	noSuchWorkspace
	unknownVersion
	sessionMissing
	tooManySessions
	notAcceptable
	invalidRequest
	reasons
)

var reasonNames = [reasons]string{"session", "workspace", "version", "session_missing", "limit", "accept", "invalid"}

// fate is what became of a page's question.
type fate int

const (
	answeredFate fate = iota
	unansweredFate
	refusedFate
	failedFate
	endedFate
	passedFate
	fates
)

var (
	fateNames = [fates]string{"answered", "unanswered", "refused", "failed", "ended", "passed"}
	askKinds  = [...]tenant.AskKind{tenant.Elicit, tenant.Sample, tenant.ListRoots}
	listNames = [tenant.Lists]string{tenant.Tools: "tools", tenant.Prompts: "prompts", tenant.Resources: "resources"}
)

// counts are always kept: they cost an addition where something rare happens.
type counts struct {
	streams, listeners       atomic.Int64
	refused                  [reasons]atomic.Uint64
	unknownCalls, wrongCalls atomic.Uint64
	questions                [len(askKinds)][fates]atomic.Uint64
	told                     [tenant.Lists]atomic.Uint64
	updates                  atomic.Uint64
	itemsCut, bytesCut       atomic.Uint64
}

// Stats counts.
func (h *Handler) Stats() Stats {
	h.mu.Lock()
	sessions := map[string]int{"session": len(h.sessions), "stateless": len(h.shared)}
	h.mu.Unlock()
	c := &h.counts
	s := Stats{
		Sessions:        sessions,
		Streams:         map[string]int{"standalone": int(c.streams.Load()), "listen": int(c.listeners.Load())},
		RequestsRefused: make(map[string]uint64, reasons),
		CallsRefused:    map[string]uint64{"unknown": c.unknownCalls.Load(), "arguments": c.wrongCalls.Load()},
		Questions:       make(map[Question]uint64, len(askKinds)*int(fates)),
		ListChanged:     make(map[string]uint64, tenant.Lists),
		ResourceUpdates: c.updates.Load(), ItemsCut: c.itemsCut.Load(), BytesCut: c.bytesCut.Load(),
	}
	for i, name := range reasonNames {
		s.RequestsRefused[name] = c.refused[i].Load()
	}
	for k, kind := range askKinds {
		for f, name := range fateNames {
			s.Questions[Question{string(kind), name}] = c.questions[k][f].Load()
		}
	}
	for l, name := range listNames {
		s.ListChanged[name] = c.told[l].Load()
	}
	return s
}

func (c *counts) refuse(r reason) { c.refused[r].Add(1) }

func (c *counts) cut(bytes int) {
	c.itemsCut.Add(1)
	c.bytesCut.Add(uint64(max(0, bytes)))
}

func (c *counts) question(kind tenant.AskKind, f fate) {
	for k := range askKinds {
		if askKinds[k] == kind {
			c.questions[k][f].Add(1)
		}
	}
}

// all counts the questions that a page returned; nil has none.
func (c *counts) all(q *questions, f fate) {
	if q == nil {
		return
	}
	for _, question := range q.requests {
		c.question(kindOf(question), f)
	}
}

// fateOf is what became of a question that the client was asked.
func fateOf(err error) fate {
	var late *unansweredError
	switch {
	case err == nil:
		return answeredFate
	case errors.As(err, &late):
		return unansweredFate
	case errors.Is(err, context.Canceled):
		return endedFate
	}
	return failedFate
}

// fateOfAnswer is that by what the page was given.
func fateOfAnswer(a tenant.Answer) fate {
	if a.Err != nil {
		return failedFate
	}
	return answeredFate
}
