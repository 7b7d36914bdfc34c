package dashboard

import (
	"bytes"
	"cmp"
	"container/list"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"jsbridge/manifest"
	"jsbridge/tenant"
)

const (
	maxCalls   = 1000     // in the journal
	maxKept    = 64 << 10 // bytes of one call's arguments, and of its result
	maxHeld    = 32 << 20 // bytes of all calls' arguments and results
	maxNotices = 64       // that no dashboard has taken yet
	maxError   = 300      // bytes
)

// Journal keeps the last calls, in bounded memory. It is the registry's
// [tenant.Observer]: calls wait for it no longer than it takes to make an entry,
// whoever reads it. Use [NewJournal].
type Journal struct {
	redact  bool
	watched atomic.Bool   // somebody wants to see progress
	changed chan struct{} // one entry at most

	mu      sync.Mutex
	entries *list.List // of *entry, by beginning
	byID    map[string]*list.Element
	serial  uint64
	version uint64
	held    int // bytes
	count   Counters
	running map[string]int // by session
	notices []Notice       // oldest first
	noticed uint64
}

// entry is one call. It is its trace.
type entry struct {
	j      *Journal
	begun  time.Time
	cancel func()

	// Guarded by j.mu.
	call         Call
	version      uint64
	sent         string // its id in the page protocol, "" before
	args, result json.RawMessage
	omitted      string // why one of them is missing
	dropped      bool   // it has left the journal
}

// NewJournal returns an empty journal. With redact it keeps neither arguments nor
// results, nor what else is of the page's making.
func NewJournal(redact bool) *Journal {
	return &Journal{redact: redact, changed: make(chan struct{}, 1), entries: list.New(), byID: make(map[string]*list.Element), running: make(map[string]int)}
}

// A ticket in the context of what the dashboard itself asks of a page tells so,
// and learns the call's id.
type ticket struct{ call string }

type ticketKey struct{}

var methods = map[tenant.Method]string{tenant.RunTool: "tool", tenant.GetPrompt: "prompt", tenant.ReadResource: "resource", tenant.Complete: "completion"}

// Call implements [tenant.Observer].
func (j *Journal) Call(ctx context.Context, b tenant.Beginning) (tenant.Trace, bool) {
	now := time.Now()
	e := &entry{j: j, begun: now, cancel: b.Cancel, call: Call{
		At: now.UTC().Truncate(time.Millisecond), Client: Client{b.Agent.Name, b.Agent.Version}, Session: b.Session, By: "agent", Connection: b.Page, Label: b.Label,
		Method: methods[b.Method], Name: manifest.Clean(b.Name, 512, false), State: "running", ArgBytes: len(b.Args),
	}}
	own, _ := ctx.Value(ticketKey{}).(*ticket)
	if own != nil {
		e.call.By = "dashboard"
	}
	if e.keeps(b.Args) {
		e.args = bytes.Clone(b.Args) // it may be part of a whole request
	}

	j.mu.Lock()
	defer j.mu.Unlock()
	j.serial++
	e.call.ID = "c" + strconv.FormatUint(j.serial, 10)
	if own != nil {
		own.call = e.call.ID
	}
	j.count.Calls++
	j.count.Running++
	if b.Session != "" {
		j.running[b.Session]++
	}
	j.byID[e.call.ID] = j.entries.PushBack(e)
	j.held += len(e.args)
	j.boundLocked()
	j.noteLocked(e)
	return e, j.watched.Load()
}

// keeps tells whether arguments or a result are to be kept, and notes why not.
func (e *entry) keeps(raw json.RawMessage) bool {
	switch {
	case e.j.redact:
		e.omitted = "redacted"
	case len(raw) > maxKept:
		e.omitted = "size"
	default:
		return true
	}
	return false
}

// Sent implements [tenant.Trace].
func (e *entry) Sent(id string) {
	e.j.mu.Lock()
	defer e.j.mu.Unlock()
	e.sent = id
}

// Progress implements [tenant.Trace].
func (e *entry) Progress(p tenant.Progress) {
	e.j.mu.Lock()
	defer e.j.mu.Unlock()
	told := &Progress{p.Progress, p.Total, p.Message}
	if e.j.redact {
		told.Message = ""
	}
	e.call.Progress = told
	e.j.noteLocked(e)
}

// End implements [tenant.Trace].
func (e *entry) End(a tenant.Answer, err error) {
	state, why := outcome(a, err, e.j.redact)
	ms := float64(time.Since(e.begun).Microseconds()) / 1000
	e.j.mu.Lock()
	defer e.j.mu.Unlock()
	j, c := e.j, &e.call
	j.count.Running--
	if s := c.Session; s != "" {
		if j.running[s]--; j.running[s] == 0 {
			delete(j.running, s)
		}
	}
	if state != "done" {
		j.count.Failed++
	}
	c.State, c.Error, c.MS, c.Progress = state, why, &ms, nil
	e.cancel = nil
	if err == nil && a.Err == nil {
		n := len(a.Result)
		c.ResultBytes = &n
		if !e.dropped && e.keeps(a.Result) {
			e.result = a.Result
			j.held += n
		}
	}
	j.boundLocked()
	j.noteLocked(e)
}

// outcome words how a call ended.
func outcome(a tenant.Answer, err error, redact bool) (state, why string) {
	switch {
	case err != nil:
		var ce *tenant.CallError
		if errors.As(err, &ce) && ce.Kind == tenant.Cancelled || errors.Is(err, context.Canceled) {
			return "cancelled", ""
		}
		return "failed", manifest.Clean(err.Error(), maxError, false)
	case a.Err != nil:
		why = cmp.Or(a.Err.Message, a.Err.Name, "the page's function threw an error without a message")
		if a.Err.Message != "" && a.Err.Name != "" && a.Err.Name != "Error" {
			why = a.Err.Name + ": " + why
		}
	default:
		var failed bool
		if failed, why = failure(a.Result); !failed {
			return "done", ""
		}
	}
	if redact {
		why = "the page's function failed"
	}
	return "failed", manifest.Clean(why, maxError, false)
}

// Failed tells whether a page's result says itself that it is none.
func Failed(result json.RawMessage) bool {
	failed, _ := failure(result)
	return failed
}

// failure finds a result that says itself that it is none.
func failure(result json.RawMessage) (failed bool, why string) {
	if len(result) > maxKept || !bytes.Contains(result, []byte(`"isError"`)) { // as nearly all
		return false, ""
	}
	var shape struct {
		Content []struct{ Text string }
		IsError bool
	}
	if json.Unmarshal(result, &shape) != nil || !shape.IsError || shape.Content == nil {
		return false, ""
	}
	why = "the page's function gave an error without a text"
	for _, c := range shape.Content {
		if c.Text != "" {
			return true, c.Text
		}
	}
	return true, why
}

// boundLocked lets go of the oldest of what is too much.
func (j *Journal) boundLocked() {
	for j.entries.Len() > maxCalls {
		oldest := j.entries.Front()
		for at := oldest; at != nil; at = at.Next() { // one that runs can still be cancelled
			if at.Value.(*entry).call.State != "running" {
				oldest = at
				break
			}
		}
		e := oldest.Value.(*entry)
		j.held -= len(e.args) + len(e.result)
		e.args, e.result, e.dropped = nil, nil, true
		j.entries.Remove(oldest)
		delete(j.byID, e.call.ID)
		j.count.Dropped++
	}
	for at := j.entries.Front(); j.held > maxHeld && at != nil; at = at.Next() {
		if e := at.Value.(*entry); len(e.args)+len(e.result) > 0 {
			j.held -= len(e.args) + len(e.result)
			e.args, e.result, e.omitted = nil, nil, "size"
		}
	}
}

func (j *Journal) noteLocked(e *entry) {
	j.version++
	e.version = j.version
	j.note()
}

func (j *Journal) note() {
	select {
	case j.changed <- struct{}{}:
	default:
	}
}

// Tool implements [tenant.Observer]: it keeps a notice of what an agent did.
func (j *Journal) Tool(ctx context.Context, c tenant.ToolChange) {
	if ctx.Value(ticketKey{}) != nil { // whoever did it knows
		return
	}
	n := Notice{At: time.Now().UTC().Truncate(time.Millisecond), Kind: "registered", Connection: c.Page, Label: c.Label, Published: c.Entry.Name,
		Name: c.Entry.Tool.Name, Description: c.Entry.Tool.Description, Origin: c.Entry.Tool.Origin, Client: Client{c.Agent.Name, c.Agent.Version}}
	if c.Removed {
		n.Kind = "unregistered"
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.noticed++
	n.ID = "n" + strconv.FormatUint(j.noticed, 10)
	if j.notices = append(j.notices, n); len(j.notices) > maxNotices {
		j.notices = j.notices[1:]
	}
	j.note()
}

// reading is what of the journal is shown beside the calls.
type reading struct {
	count   Counters
	running map[string]int
	notices []Notice
}

// diff gives the calls that are new, or have changed, since known was brought up
// to date, and the ids of those that are gone, and brings it up to date. The
// notices it gives are not given again.
func (j *Journal) diff(known map[string]uint64) (set []Call, gone []string, r reading) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for id := range known {
		if j.byID[id] == nil {
			gone = append(gone, id)
			delete(known, id)
		}
	}
	for at := j.entries.Front(); at != nil; at = at.Next() {
		if e := at.Value.(*entry); known[e.call.ID] != e.version {
			known[e.call.ID] = e.version
			set = append(set, e.call)
		}
	}
	r = reading{count: j.count, running: make(map[string]int, len(j.running)), notices: j.notices}
	for s, n := range j.running {
		r.running[s] = n
	}
	j.notices = nil
	return set, gone, r
}

// all copies every call, oldest first.
func (j *Journal) all() []DetailedCall {
	j.mu.Lock()
	defer j.mu.Unlock()
	calls := make([]DetailedCall, 0, j.entries.Len())
	for at := j.entries.Front(); at != nil; at = at.Next() {
		calls = append(calls, at.Value.(*entry).detailsLocked())
	}
	return calls
}

func (j *Journal) find(id string) (DetailedCall, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	at := j.byID[id]
	if at == nil {
		return DetailedCall{}, false
	}
	return at.Value.(*entry).detailsLocked(), true
}

// names are what a log calls a call by.
func (j *Journal) names(id string) (attrs []any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	at := j.byID[id]
	if at == nil {
		return nil
	}
	e := at.Value.(*entry)
	attrs = []any{"connection", e.call.Connection}
	if e.call.Session != "" {
		attrs = append(attrs, "session", e.call.Session)
	}
	if e.sent != "" {
		attrs = append(attrs, "call", e.sent)
	}
	return attrs
}

func (e *entry) detailsLocked() DetailedCall {
	return DetailedCall{Call: e.call, Arguments: e.args, Result: e.result, Omitted: e.omitted}
}

// cancel ends a call. It tells whether there is one of that id, and whether it
// ran.
func (j *Journal) cancel(id string) (known, ran bool) {
	j.mu.Lock()
	at := j.byID[id]
	if at == nil {
		j.mu.Unlock()
		return false, false
	}
	cancel := at.Value.(*entry).cancel
	j.mu.Unlock()
	if cancel == nil {
		return true, false
	}
	cancel()
	return true, true
}
