package agent

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"jsbridge/tenant"
)

// A change of a list is told after listQuiet without another one, or after
// listPatience under a stream of them.
const (
	listQuiet    = 20 * time.Millisecond
	listPatience = 250 * time.Millisecond
)

// tellTimeout bounds the sending of one notification to a stalled client.
const tellTimeout = 10 * time.Second

// teller tells one client which of its lists are out of date, and which of the
// resources it watches have changed.
type teller struct {
	ctx    context.Context // ends with the client
	change func(ctx context.Context, l tenant.List) error
	update func(ctx context.Context, uri string) error
	counts *counts
	safely func(what string, do func() error) error

	mu      sync.Mutex
	view    *tenant.View
	isOpen  bool // there is a way to the client
	known   [tenant.Lists]*tenant.Snapshot
	dirty   map[string]bool // watched resources that have changed
	timer   *time.Timer     // pending notification
	first   time.Time       // of the changes it will tell
	telling bool            // some are being sent
	missed  bool            // what changed since then
}

func (s *session) newTeller(ctx context.Context, change func(context.Context, tenant.List) error, update func(context.Context, string) error) *teller {
	return &teller{ctx: ctx, change: change, update: update, counts: &s.h.counts, safely: s.safely}
}

// begin has the client know what the view shows now.
func (t *teller) begin(v *tenant.View) {
	t.mu.Lock() // a change of the roots may come before this is done
	defer t.mu.Unlock()
	t.view = v
	snap := v.Snapshot()
	for l := range t.known {
		t.known[l] = snap
	}
}

func (t *teller) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer != nil {
		t.timer.Stop()
	}
}

// open notes whether there is a way to the client.
func (t *teller) open(is bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.isOpen = is
}

// listed notes what the client has just read.
func (t *teller) listed(l tenant.List, snap *tenant.Snapshot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known[l] = snap
}

// changed is told of each change of the view.
func (t *teller) changed() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.planLocked()
}

// updated is told which watched resources changed. They are as many at most as
// are watched in the view.
func (t *teller) updated(uris []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.dirty == nil {
		t.dirty = make(map[string]bool)
	}
	for _, uri := range uris {
		t.dirty[uri] = true
	}
	t.planLocked()
}

func (t *teller) planLocked() {
	now := time.Now()
	if t.timer == nil {
		t.first = now
		t.timer = time.AfterFunc(listQuiet, t.tell)
		return
	}
	t.timer.Reset(max(0, min(listQuiet, listPatience-now.Sub(t.first))))
}

// tell tells the client, if what it knows is out of date. Without an open
// stream there is no way to; opening one tells it then.
func (t *teller) tell() {
	t.mu.Lock()
	t.timer = nil
	view := t.view
	t.mu.Unlock()
	if view == nil { // it is being made; its first look comes after
		return
	}
	view.Rebind()
	now := view.Snapshot()

	t.mu.Lock()
	t.missed = t.missed || t.telling
	if t.telling || t.ctx.Err() != nil || !t.isOpen {
		t.mu.Unlock()
		return
	}
	var stale []tenant.List
	for l := range t.known {
		if t.known[l] == nil || !now.Same(t.known[l], tenant.List(l)) {
			stale = append(stale, tenant.List(l))
		}
		t.known[l] = now
	}
	dirty := t.dirty
	t.dirty, t.telling = nil, true
	t.mu.Unlock()

	err := t.safely("a notification", func() error { return t.send(stale, dirty) })

	t.mu.Lock()
	again := t.missed
	t.telling, t.missed = false, false
	if err != nil { // the stream broke, or another is taking over
		for _, l := range stale {
			t.known[l] = nil
		}
		if t.dirty == nil {
			t.dirty = make(map[string]bool)
		}
		maps.Copy(t.dirty, dirty)
		again = t.isOpen
	}
	t.mu.Unlock()
	if again {
		t.changed()
	}
}

func (t *teller) send(stale []tenant.List, dirty map[string]bool) error {
	if len(stale)+len(dirty) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(t.ctx, tellTimeout)
	defer cancel()
	for _, l := range stale {
		if err := t.change(ctx, l); err != nil {
			return err
		}
		t.counts.told[l].Add(1)
	}
	for uri := range dirty {
		if err := t.update(ctx, uri); err != nil {
			return err
		}
		t.counts.updates.Add(1)
	}
	return nil
}

// sendChange tells the session's client that a list has changed.
//
// The SDK's own way, to add a tool, decodes that tool's schema each time, which
// is most of what a change would cost a thousand sessions.
func (s *session) sendChange(ctx context.Context, l tenant.List) error {
	var err error
	switch l {
	case tenant.Tools:
		_, err = s.send(ctx, "notifications/tools/list_changed", &mcp.ServerRequest[*mcp.ToolListChangedParams]{Session: s.ss, Params: &mcp.ToolListChangedParams{}})
	case tenant.Prompts:
		_, err = s.send(ctx, "notifications/prompts/list_changed", &mcp.ServerRequest[*mcp.PromptListChangedParams]{Session: s.ss, Params: &mcp.PromptListChangedParams{}})
	case tenant.Resources:
		_, err = s.send(ctx, "notifications/resources/list_changed", &mcp.ServerRequest[*mcp.ResourceListChangedParams]{Session: s.ss, Params: &mcp.ResourceListChangedParams{}})
	}
	return err
}

// sendUpdate tells it that a resource it watches has changed.
func (s *session) sendUpdate(ctx context.Context, uri string) error {
	_, err := s.send(ctx, "notifications/resources/updated", &mcp.ServerRequest[*mcp.ResourceUpdatedNotificationParams]{Session: s.ss, Params: &mcp.ResourceUpdatedNotificationParams{URI: uri}})
	return err
}
