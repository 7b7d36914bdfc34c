package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"jsbridge/internal/rig"
)

// A row is what was measured with one number of pages.
type row struct {
	pages, sessions int

	idle       memory // of the server alone
	perSession memory
	perPage    memory        // with every list read
	total      memory        // of the server then, all in all
	after      memory        // when every measurement was made
	called     int64         // what a tool that has been called holds beyond that, in bytes of heap
	connect    float64       // pages that come, in one second
	own        spread        // a page's change until the sessions of its tenant know
	root       spread        // a root connection's change until all sessions know
	first      time.Duration // median of a tool's first call
	calm       callRate      // calls with all pages staying
	churn      callRate      // calls with some of them coming and going
	churning   int           // how many
	swaps      float64       // how often a page has left and come back, in one second
	back       time.Duration // median of the time it takes to come back
}

// spread is how long it took the sessions to know.
type spread struct {
	median, p99 time.Duration
	last        time.Duration // median over the changes, of the last session's
}

// callRate is one measurement of calls.
type callRate struct {
	rate     float64 // calls in one second
	p50, p99 time.Duration
}

// A stage is one server with its pages and sessions.
type stage struct {
	ctx      context.Context
	server   *rig.Server
	base     string
	pages    *pagesProcess
	sessions *gallery
	joined   int // pages
	progress io.Writer
}

// serverArgs start the server that is measured. Its limits are those of its defaults
// or, where more is to come, just as high as that needs.
func serverArgs(pages, sessions int) []string {
	return []string{"--state", "", "--debug", "--log-level", "warn",
		"--max-pages", fmt.Sprint(2*pages + 1), "--max-sessions", fmt.Sprint(sessions), "--max-tenants", fmt.Sprint(sessions)}
}

// newStage starts a server and the pages' process.
func newStage(ctx context.Context, binary string, pages, sessions int, progress io.Writer) (*stage, error) {
	server, err := rig.Start(ctx, binary, serverArgs(pages, sessions)...)
	if err != nil {
		return nil, err
	}
	st := &stage{ctx: ctx, server: server, base: strings.Replace(server.Base, "localhost", "127.0.0.1", 1), progress: progress}
	if st.pages, err = startPages(ctx); err != nil {
		server.Stop()
		return nil, err
	}
	st.sessions = newGallery(ctx, st.base, sessions)
	return st, nil
}

func (st *stage) close() {
	st.sessions.close()
	st.pages.stop()
	st.server.Stop()
}

func (st *stage) host() string { return strings.TrimPrefix(st.base, "http://") }

func (st *stage) memory() (memory, error) {
	st.sessions.client.CloseIdleConnections()
	return readMemory(st.ctx, st.base, st.server.Pid)
}

// restTime is longer than jsbridge takes to notice that nothing goes on, and to give
// memory back to the system.
const restTime = 12 * time.Second

// memoryAtRest is memory, and the RSS that of a server that has had a rest.
func (st *stage) memoryAtRest(o options) (memory, error) {
	if err := pause(st.ctx, o.rest); err != nil {
		return memory{}, err
	}
	return st.memory()
}

// pagesOf are the pages in a session's tenant, without the last n of all.
func (st *stage) pagesOf(s *session, without int) (numbers []int) {
	for n := s.number; n < st.joined-without; n += len(st.sessions.sessions) {
		numbers = append(numbers, n)
	}
	return numbers
}

// admit opens the sessions.
func (st *stage) admit(n int) error {
	if err := st.sessions.open(n); err != nil {
		return err
	}
	var tenants []string
	for _, s := range st.sessions.sessions {
		tenants = append(tenants, s.tenant)
	}
	_, err := st.pages.ask(order{Do: doOpen, Host: st.host(), Tenants: tenants})
	return err
}

// grow has pages come until there are n, and gives how many came in one second.
func (st *stage) grow(n int) (float64, error) {
	a, err := st.pages.ask(order{Do: doGrow, Count: n})
	if err != nil {
		return 0, err
	}
	came := n - st.joined
	st.joined = n
	return float64(came) / a.Took.Seconds(), nil
}

// list has every session read its list, as clients do when they are told of pages,
// and checks it.
func (st *stage) list() error {
	if err := st.sessions.settle(); err != nil {
		return err
	}
	return st.sessions.each(st.sessions.sessions, func(s *session) error { return s.check(st.pagesOf(s, 0)) })
}

// measureRow measures with one number of pages, on a server of its own.
func measureRow(ctx context.Context, binary string, pages int, o options, progress io.Writer) (r *row, err error) {
	st, err := newStage(ctx, binary, pages, o.sessions, progress)
	if err != nil {
		return nil, err
	}
	defer st.close()
	defer func() { // what the server says is why the rest failed, mostly
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, st.server.Log)
		}
	}()
	r = &row{pages: pages, sessions: o.sessions}
	for _, step := range []struct {
		what string
		do   func(*stage, options) error
	}{
		{"sessions", r.measureSessions}, {"pages", r.measurePages}, {"changes of a page", r.measureOwn}, {"changes of a root connection", r.measureRoot}, {"calls", r.measureCalls},
	} {
		fmt.Fprintf(progress, "load: %d pages: %s\n", pages, step.what)
		if err := step.do(st, o); err != nil {
			return nil, fmt.Errorf("%d pages: %s: %w", pages, step.what, err)
		}
	}
	return r, nil
}

func (r *row) measureSessions(st *stage, o options) (err error) {
	if r.idle, err = st.memory(); err != nil {
		return err
	}
	if err := st.admit(o.sessions); err != nil {
		return err
	}
	if err := st.list(); err != nil { // as clients do
		return err
	}
	m, err := st.memoryAtRest(o)
	r.perSession = m.minus(r.idle).per(o.sessions)
	r.total = m
	if err != nil || o.profiles == "" {
		return err
	}
	return saveProfiles(st.ctx, st.base, o.profiles, fmt.Sprintf("%d-sessions", r.pages))
}

func (r *row) measurePages(st *stage, o options) (err error) {
	if r.connect, err = st.grow(r.pages); err != nil {
		return err
	}
	if err := st.list(); err != nil {
		return err
	}
	before := r.total
	r.total, err = st.memoryAtRest(o)
	r.perPage = r.total.minus(before).per(r.pages)
	if err != nil || o.profiles == "" {
		return err
	}
	return saveProfiles(st.ctx, st.base, o.profiles, fmt.Sprintf("%d-pages", r.pages))
}

// measureOwn has one page after the other change its tools.
func (r *row) measureOwn(st *stage, o options) error {
	var all spreads
	for i := range o.changes {
		page := i * 7 % r.pages
		if err := pause(st.ctx, changePause); err != nil {
			return err
		}
		a, err := st.pages.ask(order{Do: doChange, Page: page})
		if err != nil {
			return err
		}
		took, err := st.sessions.await(time.Unix(0, a.At), 1)
		if err != nil {
			return err
		}
		all.add(took)
	}
	r.own = all.sum()
	return nil
}

// changePause comes before each change. It is longer than jsbridge waits before it
// tells one, so that nothing of a change is left over when the next one begins.
const changePause = 60 * time.Millisecond

// rootNumber tells the root connection from the pages of tenants.
const rootNumber = -1

// measureRoot has a root connection change its tools, which every session sees.
func (r *row) measureRoot(st *stage, o options) error {
	p := newPage(st.host(), "load-root", rootNumber)
	if err := p.come(st.ctx, func(error) {}); err != nil {
		return err
	}
	if err := st.sessions.settle(); err != nil {
		return err
	}
	var all spreads
	for range o.rootChanges {
		if err := pause(st.ctx, changePause); err != nil {
			return err
		}
		begun := time.Now()
		if err := p.register(); err != nil {
			return err
		}
		took, err := st.sessions.await(begun, o.sessions)
		if err != nil {
			return err
		}
		all.add(took)
	}
	r.root = all.sum()
	if err := p.leave(); err != nil {
		return err
	}
	return st.sessions.settle()
}

// spreads collects the changes.
type spreads struct{ all, lasts []time.Duration }

func (s *spreads) add(took []time.Duration) {
	s.all = append(s.all, took...)
	s.lasts = append(s.lasts, slices.Max(took))
}

func (s *spreads) sum() spread {
	slices.Sort(s.all)
	slices.Sort(s.lasts)
	return spread{percentile(s.all, 0.5), percentile(s.all, 0.99), percentile(s.lasts, 0.5)}
}

// measureCalls calls with all pages staying, then with 1% of them coming and going.
func (r *row) measureCalls(st *stage, o options) (err error) {
	r.churning = max(1, r.pages/100)
	c := newCallers(st, o.callers, r.churning)
	before, err := st.memory()
	if err != nil {
		return err
	}
	if r.first, err = c.warm(); err != nil {
		return err
	}
	warm, err := st.memory()
	if err != nil {
		return err
	}
	r.called = (warm.heap - before.heap) / int64(c.tools())
	if r.calm, err = c.measure(o.duration); err != nil {
		return err
	}
	if _, err = st.pages.ask(order{Do: doChurn, Count: r.churning}); err != nil {
		return err
	}
	begun := time.Now()
	if r.churn, err = c.measure(o.duration); err != nil {
		return err
	}
	a, err := st.pages.ask(order{Do: doCalm})
	if err != nil {
		return err
	}
	if a.Rounds == 0 {
		return errors.New("no page has left and come back: -duration must be longer")
	}
	r.swaps, r.back = float64(a.Rounds)/time.Since(begun).Seconds(), a.Median
	if err := st.list(); err != nil {
		return err
	}
	r.after, err = st.memory()
	return err
}

// percentile is the smallest value that no less than the share p reaches up to.
func percentile(sorted []time.Duration, p float64) time.Duration {
	return sorted[max(0, int(math.Ceil(p*float64(len(sorted))))-1)]
}

// pause waits, unless ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
