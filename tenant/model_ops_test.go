package tenant

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// operation is a kind of step. plan changes the model, and gives a line for the script
// and what to do to the registry; no line: it can't be done now.
type operation struct {
	name   string
	weight int
	alone  bool // never at once with others
	plan   func(m *model, s *step) (line string, do func())
}

var operations = []operation{
	{"open a view", 6, false, planView},
	{"join", 16, false, planJoin},
	{"register", 16, false, planRegister},
	{"close a view", 2, true, planCloseView},
	{"join or leave a channel", 4, false, planChannel},
	{"rename", 4, false, planRename},
	{"end a socket", 6, false, planEnd},
	{"reload at once", 8, false, planReload},
	{"freeze or thaw", 5, false, planFreeze},
	{"jam", 3, false, planJam},
	{"disconnect", 1, false, planDisconnect},
	{"allow or revoke", 1, true, planAllow},
	{"call", 50, false, planCall},
	{"take", 50, false, planTake},
	{"answer", 20, false, planAnswer},
	{"say", 8, false, planSay},
	{"ask", 4, false, planAsk},
	{"answer another's call", 4, false, planForeign},
	{"answer again", 4, false, planAgain},
	{"cancel", 4, false, planCancel},
	{"sleep", 14, true, planSleep},
}

func planView(m *model, s *step) (string, func()) {
	if len(m.views) >= modelViews {
		return "", nil
	}
	v := &modelView{n: m.done["open a view"], prefixes: make(map[*Page]string), chose: true}
	var own *Tenant
	var err error
	if s.choose(0, 3) == 0 {
		own, err = m.r.OpenWorkspace(m.workspace)
	} else {
		own, err = m.r.Open()
	}
	if err != nil {
		m.failf("opening a tenant: %v", err)
		return "", nil
	}
	v.place = modelPlace{"own", own.ID()}
	v.view = own.NewView(func() { v.told.Add(1) })
	m.views = append(m.views, v)
	return fmt.Sprintf("%s opens, of %s", v, m.nameOf(v.place)), nil
}

func planCloseView(m *model, s *step) (string, func()) {
	if len(m.views) < 2 {
		return "", nil
	}
	i := s.choose(0, len(m.views))
	v := m.views[i]
	m.views = slices.Delete(m.views, i, i+1)
	if v.place.name != m.workspace {
		for _, p := range m.pages {
			p.gone = p.gone || p.place == v.place
		}
	}
	return fmt.Sprintf("%s closes", v), v.view.Close
}

func planChannel(m *model, s *step) (string, func()) {
	if len(m.views) == 0 {
		return "", nil
	}
	v := m.views[s.choose(0, len(m.views))]
	if !m.claim(v) {
		return "", nil
	}
	v.chose = true
	name := []string{"c1", "c2"}[s.choose(1, 2)]
	if i := slices.Index(v.channels, name); i >= 0 {
		v.channels = slices.Delete(v.channels, i, i+1)
		return fmt.Sprintf("%s leaves %s", v, name), func() {
			if err := v.view.Leave(name); err != nil {
				m.failf("leaving: %v", err)
			}
		}
	}
	v.channels = append(v.channels, name)
	return fmt.Sprintf("%s joins %s", v, name), func() {
		if err := v.view.Join(name); err != nil {
			m.failf("joining: %v", err)
		}
	}
}

func planDisconnect(m *model, s *step) (string, func()) {
	p := m.anyPage(s)
	if p == nil || !m.claim(p.tab) {
		return "", nil
	}
	p.gone = true
	return fmt.Sprintf("a human disconnects %s in %s", p.tab, m.nameOf(p.place)), p.real.Disconnect
}

func planAllow(m *model, _ *step) (string, func()) {
	now := !m.allowed.Load()
	m.allowed.Store(now)
	for _, p := range m.pages {
		switch {
		case p.gone || p.tab.origin != far || p.place.kind == "own":
		case now:
			p.prefix = p.prefix || !p.pending.IsZero() && p.tools != nil
			p.pending = time.Time{}
		case p.pending.IsZero():
			p.gone = true
		}
	}
	return fmt.Sprintf("%s is allowed: %v", far, now), m.r.Recheck
}

func planCall(m *model, s *step) (string, func()) {
	if len(m.views) == 0 {
		return "", nil
	}
	v := m.views[s.choose(0, len(m.views))]
	entries := v.view.Snapshot().Entries()
	if len(entries) == 0 {
		return "", nil
	}
	name := entries[s.choose(1, len(entries))].Name
	e, ok := v.view.Snapshot().Find(name)
	p := m.real[e.Page]
	if !ok || p == nil {
		m.failf("%s has %s and does not find it", v, name)
		return "", nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	limit := modelTimeout
	if e.Tool.Timeout != 0 {
		limit = e.Tool.Timeout
	}
	c := &modelCall{n: len(m.calls), page: p, tool: e.Tool.Name, deadline: time.Now().Add(limit), cancel: cancel}
	m.calls = append(m.calls, c)
	return fmt.Sprintf("%s calls %s, which is %q of %s: call %d", v, name, c.tool, p.tab, c.n), func() { m.run(ctx, c, e) }
}

func planCancel(m *model, s *step) (string, func()) {
	var running []*modelCall
	for _, c := range m.calls {
		if !c.over && !c.canceled {
			running = append(running, c)
		}
	}
	if len(running) == 0 {
		return "", nil
	}
	c := running[s.choose(0, len(running))]
	c.canceled = true
	return fmt.Sprintf("the caller cancels call %d", c.n), c.cancel
}

func planSleep(m *model, s *step) (string, func()) {
	d := []time.Duration{time.Millisecond, 100 * time.Millisecond, 500 * time.Millisecond, time.Second, 1999 * time.Millisecond}[s.choose(0, 5)]
	if s.choose(1, 6) == 0 {
		d = []time.Duration{modelGrace, modelGrace, 7 * time.Second, time.Minute}[s.choose(2, 4)]
	}
	return fmt.Sprintf("%v pass", d), func() { time.Sleep(d) }
}
