package tenant

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"
)

const (
	modelGrace   = 3 * time.Second
	modelTimeout = 20 * time.Second // of a call whose tool has no limit of its own
	modelAsk     = 4 * time.Second  // most that a client takes to answer a question
	modelTabs    = 8
	modelViews   = 4
	far          = "https://far.test" // an origin that is not always allowed
)

// model is what there ought to be, beside the registry.
type model struct {
	r         *Registry
	workspace string
	allowed   atomic.Bool // far is
	script    []string
	at        int
	busy      map[any]bool // what the present steps are about

	tabs  []*modelTab
	pages []*modelPage
	views []*modelView

	mu      sync.Mutex     // guards what follows, and what calls and sockets have
	done    map[string]int // how often things were done, and came out
	failure string         // the first
	calls   []*modelCall
	socks   []*modelSocket
	real    map[*Page]*modelPage
}

// modelPlace is a tenant: "root", "channel" or "own", with its name or id.
type modelPlace struct{ kind, name string }

type modelTab struct {
	n      int
	origin string
	old    bool // its script gives no instance id and answers no probes
	sock   *modelSocket
	regs   int
	froze  bool // at some time
	jammed bool // likewise: its queue was full
}

func (t *modelTab) String() string { return fmt.Sprintf("tab%d", t.n) }

// modelPage is a tab in one place, over reloads.
type modelPage struct {
	tab     *modelTab
	place   modelPlace
	asked   string
	real    *Page
	tools   map[string]string // name → description; nil before the first registration
	prefix  bool              // it has one
	pending time.Time         // when its wait for approval ends; zero: it does not wait
	away    time.Time         // when its grace ends; zero: it has a socket
	gone    bool
	renamed bool // by the present steps
}

type modelView struct {
	n        int
	view     *View
	place    modelPlace
	channels []string
	told     atomic.Int64
	seen     string // what it had at the last look
	heard    int64  // told, by then
	chose    bool   // it joined or left a channel since
	prefixes map[*Page]string
}

func (v *modelView) String() string { return fmt.Sprintf("view%d", v.n) }

type modelCall struct {
	n        int
	page     *modelPage
	tool     string
	deadline time.Time
	asked    time.Duration // spent on questions, at most
	cancel   context.CancelFunc
	canceled bool
	sock     *modelSocket // that it was last sent to
	id       string       // there
	taken    int          // how often a page's script took it
	answer   string       // that the registry accepted
	late     bool         // it refused one as late
	over     bool
	judged   bool
	ended    time.Time
	got      string
	err      error
}

// modelSocket is a page's socket, and the script behind it.
type modelSocket struct {
	fakePage
	m      *model
	tab    *modelTab
	page   *modelPage
	inbox  []CallFrame
	held   []held
	done   []string // ids of calls that it has answered
	seen   string   // the last call that the script took
	asked  map[string]int
	dead   bool // the script is gone
	closed bool // by the registry
	again  bool // it ended in a way that lets calls that it did not take be sent again
	frozen bool
	jammed bool // it takes no call now
}

type held struct {
	id   string
	call *modelCall
}

func newModel() *model {
	m := &model{workspace: "00000000-0000-4000-8000-000000000001", done: make(map[string]int), real: make(map[*Page]*modelPage)}
	m.r = NewRegistry(Options{
		ReconnectGrace: modelGrace, CallTimeout: modelTimeout, MaxCallsPerPage: 4,
		Allow:       func(origin string, _ bool) bool { return origin != far || m.allowed.Load() },
		IsWorkspace: func(id string) bool { return id == m.workspace },
	})
	return m
}

func (m *model) failf(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failLocked(format, args...)
}

func (m *model) failLocked(format string, args ...any) {
	if m.failure == "" {
		m.failure = fmt.Sprintf(format, args...)
	}
}

// claim tells whether nothing else of the present steps is about this.
func (m *model) claim(what any) bool {
	if m.busy[what] {
		return false
	}
	m.busy[what] = true
	return true
}

// together does some steps at once, then looks at what has become of it.
func (m *model) together(some []step) {
	m.busy = make(map[any]bool)
	for _, p := range m.pages {
		p.renamed = false
	}
	var all []func()
	for i := range some {
		what, do := some[i].op.plan(m, &some[i])
		if what == "" {
			continue
		}
		m.done[some[i].op.name]++
		sign := fmt.Sprintf("%4d ", m.at+i)
		if len(all) > 0 {
			sign = "   & "
		}
		m.script = append(m.script, sign+what)
		if do != nil {
			all = append(all, do)
		}
	}
	if len(all) == 1 { // which may be a sleep
		all[0]()
	} else {
		for _, do := range all {
			go do()
		}
	}
	synctest.Wait()
	m.settle()
	m.check()
}

// settle does what the sockets' owners and the clock do by themselves.
func (m *model) settle() {
	m.mu.Lock()
	var ended []*modelSocket
	for _, s := range m.socks {
		if s.closed && !s.dead {
			s.dead = true
			s.tab.sock = nil
			ended = append(ended, s)
		}
	}
	m.mu.Unlock()
	for _, s := range ended {
		s.link.Closed(Departure{MayReturn: true}) // too late to count
	}
	now := time.Now()
	for _, p := range m.pages {
		p.gone = p.gone || !p.away.IsZero() && !now.Before(p.away) || !p.pending.IsZero() && !now.Before(p.pending)
	}
	synctest.Wait()
}

// end leaves nothing running.
func (m *model) end() {
	for _, c := range m.calls {
		c.cancel()
	}
	m.r.Close()
	synctest.Wait()
}

// finish is the end of a script: all calls have ended by now, and nothing is kept.
func (m *model) finish() {
	longest := modelTimeout
	for _, c := range m.calls {
		longest = max(longest, time.Until(c.deadline)+c.asked)
	}
	time.Sleep(longest + modelGrace)
	synctest.Wait()
	m.settle()
	m.check()
	for _, c := range m.calls {
		if !c.over {
			m.failf("call %d never ends", c.n)
		}
	}
	if n := m.r.Running(); n != 0 {
		m.failf("%d calls run, says the registry", n)
	}
	for _, v := range m.views {
		v.view.Close()
	}
	m.r.Close()
	synctest.Wait()
	for _, s := range m.socks {
		if !s.dead && !s.closed {
			m.failf("%s was not told that the server stops", s.tab)
		}
		s.link.Closed(Departure{})
	}
	synctest.Wait()
	r := m.r
	if n := len(r.sessions) + len(r.channels) + len(r.audiences) + len(r.tabs) + len(r.waiting) + int(r.pages.Load()); n != 0 {
		m.failf("%d things are kept at the end: %v %v %v %v %v %d", n, r.sessions, r.channels, r.audiences, r.tabs, r.waiting, r.pages.Load())
	}
}

// sees tells whether a page belongs into a view.
func (v *modelView) sees(p *modelPage) bool {
	return !p.gone && p.pending.IsZero() && (p.place == v.place || p.place.kind == "root" || p.place.kind == "channel" && slices.Contains(v.channels, p.place.name))
}

// The transport, as the registry uses it.

func (s *modelSocket) Call(f CallFrame) error {
	m := s.m
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.calls[callOf(f)]
	if c.page.tab != s.tab || c.tool != f.Tool {
		m.failLocked("call %d is of %s in %s, and was sent to %s as %s", c.n, c.tool, c.page.tab, s.tab, f.Tool)
	}
	if c.sock != nil && !c.sock.again {
		m.failLocked("call %d was sent to %s twice", c.n, s.tab)
	}
	if s.jammed {
		s.jammed = false
		return errors.New("the queue is full")
	}
	if c.sock != nil {
		m.done["sent again"]++
	}
	c.sock, c.id = s, f.ID
	s.inbox = append(s.inbox, f)
	return nil
}

func (s *modelSocket) Probe() {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	if !s.dead && !s.frozen && !s.tab.old {
		go s.link.Heard()
	}
}

func (s *modelSocket) Answer(id string, a Answer) {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	if n, ok := s.asked[id]; !ok || string(a.Result) != fmt.Sprintf(`"for call %d"`, n) {
		s.m.failLocked("%s asked %v, and was answered %q with %s", s.tab, s.asked, id, a.Result)
	}
}

func (s *modelSocket) Close(Reason) {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	s.closed = true
}

// run makes a call.
func (m *model) run(ctx context.Context, c *modelCall, e Entry) {
	hear := func(text string) {
		if text != c.mark() {
			m.failf("the caller of %q was told %q", c.mark(), text)
		}
	}
	answer, err := e.Page.Call(ctx, e.Tool, Call{Args: fmt.Appendf(nil, `{"call":%d}`, c.n), Progress: true,
		OnEvent: func(e Event) {
			if e.Progress != nil {
				hear(e.Progress.Message)
			} else {
				hear(e.Log.Logger)
			}
		},
		OnAsk: func(a *Ask) {
			hear(string(a.Params))
			time.AfterFunc(time.Duration(c.n)*time.Second%modelAsk, func() { a.Answer(Answer{Result: fmt.Appendf(nil, `"for call %d"`, c.n)}) })
		}})
	m.mu.Lock()
	defer m.mu.Unlock()
	c.over, c.ended, c.got, c.err = true, time.Now(), string(answer.Result), err
	if answer.Err != nil {
		c.got = answer.Err.Message
	}
}

// mark is what the page says during this call, and nobody else.
func (c *modelCall) mark() string { return fmt.Sprintf("%s of call %d", c.page.tab, c.n) }
