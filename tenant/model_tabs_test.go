package tenant

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"jsbridge/manifest"
)

// What tabs do, and what humans do to them.

var modelNames = []string{"", "app", "app2", "App 2", "a-very-long-name-that-is-cut-off"}

// destination is where a tab may go: a channel, the roots, a session's own tenant or
// the workspace.
func (m *model) destination(s *step) (Connect, modelPlace) {
	name := connectPart(modelNames[s.choose(2, len(modelNames))])
	var place modelPlace
	switch i := s.choose(1, 5); {
	case i < 2:
		place = modelPlace{"channel", []string{"c1", "c2"}[i]}
	case i == 2 || len(m.views) == 0:
		name, place = "root"+name, modelPlace{"root", ""}
	default:
		name, place = "", m.views[s.choose(3, len(m.views))].place
	}
	return place.connect(name), place
}

func (p modelPlace) connect(name string) Connect {
	switch p.kind {
	case "channel":
		return Connect{Channel: p.name, Name: name}
	case "own":
		return Connect{Session: p.name}
	}
	return Connect{Name: name}
}

func planJoin(m *model, s *step) (string, func()) {
	t := m.newcomer(s)
	// A tab that is still there is left alone mostly.
	if t == nil || t.sock != nil && (t.old || s.choose(1, 4) > 0) || !m.claim(t) {
		return "", nil
	}
	to, place := m.destination(s)
	if last := m.lastPage(t); last != nil && s.choose(3, 4) > 0 {
		to, place = last.place.connect(last.asked), last.place
		if !m.lives(place) {
			return fmt.Sprintf("%s joins %s, which has ended", t, m.nameOf(place)), func() {
				if _, err := m.r.Join(to, t.joining(new(fakePage))); !errors.Is(err, ErrNoTenant) {
					m.failf("%s joined a tenant that has ended: %v", t, err)
				}
			}
		}
	}
	return fmt.Sprintf("%s joins %s as %q, origin %s", t, m.nameOf(place), to.Name, t.origin), m.enter(t, place, to.Name)
}

// enter gives a tab a new socket.
func (m *model) enter(t *modelTab, place modelPlace, name string) (do func()) {
	p := m.arrive(t, place, name)
	if t.sock != nil {
		t.sock.dead = true
	}
	sock := &modelSocket{m: m, tab: t, page: p, asked: make(map[string]int)}
	t.sock = sock
	m.socks = append(m.socks, sock)
	return func() { m.join(sock, p, place.connect(name)) }
}

// newcomer picks a tab that joins: mostly one that reloads, else a new one, or any.
func (m *model) newcomer(s *step) *modelTab {
	n := s.choose(0, 2*modelTabs)
	back := slices.DeleteFunc(slices.Clone(m.tabs), func(t *modelTab) bool { return m.busy[t] || m.lastPage(t).gone || m.lastPage(t).away.IsZero() })
	switch {
	case len(back) > 0 && n > 2:
		return back[n%len(back)]
	case len(m.tabs) < modelTabs && n > 4:
		t := &modelTab{n: len(m.tabs), origin: local, old: len(m.tabs)%4 == 3}
		if len(m.tabs)%4 == 2 {
			t.origin = far
		}
		m.tabs = append(m.tabs, t)
		return t
	case len(m.tabs) > 0:
		return m.tabs[n%len(m.tabs)]
	}
	return nil
}

func (t *modelTab) joining(transport Transport) Joining {
	j := Joining{Origin: t.origin, Probes: !t.old, Transport: transport}
	if !t.old {
		j.Instance = fmt.Sprintf("instance-of-%s", t)
	}
	return j
}

func (m *model) join(s *modelSocket, p *modelPage, to Connect) {
	l, err := m.r.Join(to, s.tab.joining(s))
	if err != nil {
		m.failf("%s can't join: %v", s.tab, err)
		s.link = &Link{reg: m.r, tenant: m.r.roots, page: new(Page)}
		return
	}
	s.link = l
	m.known(s, p)
}

// known notes which page of the registry a socket's is, and that it is the same as
// before.
func (m *model) known(s *modelSocket, p *modelPage) {
	l := s.link
	l.tenant.mu.Lock()
	real := l.page
	l.tenant.mu.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	if p.real == nil {
		p.real = real
		m.real[real] = p
	}
	if p.real != real {
		m.failLocked("%s is another page after a reload", s.tab)
	}
}

// arrive finds the page that a tab's new socket is of.
func (m *model) arrive(t *modelTab, place modelPlace, asked string) *modelPage {
	var same *modelPage
	for _, p := range m.pages {
		switch {
		case p.tab != t || p.gone || t.old:
		case p.place == place && p.asked == asked:
			same = p
		default: // a tab is in one place at a time
			p.gone = true
		}
	}
	if same != nil {
		m.done["reload"]++
		same.away = time.Time{}
		return same
	}
	p := &modelPage{tab: t, place: place, asked: asked}
	if place.kind != "own" && t.origin == far && !m.allowed.Load() {
		m.done["wait for approval"]++
		p.pending = time.Now().Add(waitFor)
	}
	m.pages = append(m.pages, p)
	return p
}

func (m *model) lastPage(t *modelTab) *modelPage {
	for _, p := range slices.Backward(m.pages) {
		if p.tab == t {
			return p
		}
	}
	return nil
}

// lives tells whether a tenant can be joined.
func (m *model) lives(p modelPlace) bool {
	return p.kind != "own" || p.name == m.workspace || slices.ContainsFunc(m.views, func(v *modelView) bool { return v.place == p })
}

func (m *model) nameOf(p modelPlace) string {
	if p.kind != "own" {
		return p.kind + " " + p.name
	}
	if p.name == m.workspace {
		return "the workspace"
	}
	for _, v := range m.views {
		if v.place == p {
			return fmt.Sprintf("%s's own tenant", v)
		}
	}
	return "its own tenant"
}

// socket picks an open one.
func (m *model) socket(s *step) *modelSocket {
	return m.socketWith(s, func(*modelSocket) bool { return true })
}

func (m *model) socketWith(s *step, what func(*modelSocket) bool) *modelSocket {
	var open []*modelSocket
	for _, t := range m.tabs {
		if t.sock != nil && !m.busy[t] && what(t.sock) {
			open = append(open, t.sock)
		}
	}
	if len(open) == 0 {
		return nil
	}
	return open[s.choose(0, len(open))]
}

var modelTools = []string{"a", "b", "save item", "SAVE_item", "save_item", "a-long-name-of-a-tool-that-does-not-fit-at-all-any-more"}

func planRegister(m *model, s *step) (string, func()) {
	sock := m.socket(s)
	if sock == nil || !m.claim(sock.tab) {
		return "", nil
	}
	return m.declare(sock, s)
}

// declare has a page register some tools.
func (m *model) declare(sock *modelSocket, s *step) (line string, do func()) {
	t := sock.tab
	t.regs++
	type tool struct {
		Name        string `json:"name"`
		Description string `json:"description"`
		TimeoutMS   int    `json:"timeoutMs,omitempty"`
	}
	frame := struct {
		AppLabel string `json:"appLabel"`
		Tools    []tool `json:"tools"`
	}{modelNames[s.choose(1, len(modelNames))], []tool{}}
	if t.old {
		frame.AppLabel = t.String() // or it might take another's place
	}
	p := m.adopt(sock)
	p.tools = make(map[string]string)
	for i, name := range modelTools {
		if s.pick[2]>>i&1 == 1 {
			p.tools[name] = fmt.Sprintf("%s, registration %d, %s", t, t.regs, name)
			frame.Tools = append(frame.Tools, tool{name, p.tools[name], int(s.pick[3]>>i&3/3) * 1500})
		}
	}
	return fmt.Sprintf("%s registers %q as %q", t, slices.Sorted(maps.Keys(p.tools)), frame.AppLabel), func() {
		b, _ := json.Marshal(frame) // texts and numbers
		m.register(sock, b)
	}
}

func (m *model) register(s *modelSocket, frame []byte) {
	declared, err := manifest.Parse(frame, manifest.Limits{})
	if err != nil {
		m.failf("%s: %v", s.tab, err)
		return
	}
	reg, err := s.link.Register(declared)
	if err != nil || !reg.Pending && (reg.Prefix == "" || len(reg.ToolNames) != len(declared.Tools)) {
		m.failf("%s registers %d tools, and is told %+v, %v", s.tab, len(declared.Tools), reg, err)
	}
	m.known(s, s.page)
}

// adopt gives the page that a socket is of once it has registered: that of an older
// script takes the place of one that went away.
func (m *model) adopt(s *modelSocket) *modelPage {
	p := s.page
	defer func() { s.page.prefix = s.page.prefix || s.page.pending.IsZero() }()
	if !s.tab.old || p.prefix {
		return p
	}
	for _, q := range m.pages {
		if q != p && q.tab == s.tab && !q.gone && !q.away.IsZero() && q.place == p.place && q.asked == p.asked && q.tools != nil {
			m.done["adoption"]++
			p.gone = true
			q.away = time.Time{}
			s.page = q
			return q
		}
	}
	return p
}

func planRename(m *model, s *step) (string, func()) {
	name := modelNames[1+s.choose(1, len(modelNames)-1)]
	if s.choose(2, 2) == 0 {
		sock := m.socket(s)
		if sock == nil || !m.claim(sock.tab) {
			return "", nil
		}
		p := sock.page
		p.renamed, p.prefix = true, p.prefix || p.pending.IsZero()
		return fmt.Sprintf("%s renames itself to %q", sock.tab, name), func() {
			if _, err := sock.link.Rename(name); err != nil {
				m.failf("%s can't rename itself: %v", sock.tab, err)
			}
		}
	}
	p := m.anyPage(s)
	if p == nil || !m.claim(p.tab) {
		return "", nil
	}
	p.renamed, p.prefix = true, p.prefix || p.pending.IsZero()
	return fmt.Sprintf("a human renames %s in %s to %q", p.tab, m.nameOf(p.place), name), func() {
		if err := p.real.Rename(name); err != nil {
			m.failf("%s can't be renamed: %v", p.tab, err)
		}
	}
}

// anyPage picks one that has not gone, with or without a socket.
func (m *model) anyPage(s *step) *modelPage {
	var all []*modelPage
	for _, p := range m.pages {
		if !p.gone && p.real != nil && !m.busy[p.tab] {
			all = append(all, p)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all[s.choose(0, len(all))]
}

func planEnd(m *model, s *step) (string, func()) {
	sock := m.socket(s)
	if sock == nil || !m.claim(sock.tab) {
		return "", nil
	}
	p := sock.page
	if s.choose(1, 4) == 0 {
		return m.hide(sock)
	}
	sock.dead, sock.tab.sock = true, nil
	switch s.choose(1, 4) {
	case 1:
		p.away = time.Now().Add(modelGrace)
		return fmt.Sprintf("%s is cut off", sock.tab), func() { sock.link.Closed(Departure{MayReturn: true}) }
	case 2:
		p.gone = true
		return fmt.Sprintf("%s closes for good", sock.tab), func() { sock.link.Closed(Departure{}) }
	}
	p.gone = true
	return fmt.Sprintf("%s leaves", sock.tab), sock.link.Leave
}

// hide ends a socket as browsers do when a page is left: it may come back, and says
// what it has taken.
func (m *model) hide(sock *modelSocket) (line string, do func()) {
	sock.dead, sock.tab.sock = true, nil
	sock.page.away, sock.again = time.Now().Add(modelGrace), true
	return fmt.Sprintf("%s hides, having taken %q last", sock.tab, sock.seen), func() {
		sock.link.Closed(Departure{MayReturn: true, Seen: sock.seen, SeenKnown: true})
	}
}

// planReload is what happens to a tab most.
func planReload(m *model, s *step) (string, func()) {
	sock := m.socket(s)
	if sock == nil || !m.claim(sock.tab) {
		return "", nil
	}
	p := sock.page
	said, hide := m.hide(sock)
	if !m.lives(p.place) {
		return said, hide
	}
	join := m.enter(sock.tab, p.place, p.asked)
	declared, register := m.declare(sock.tab.sock, s)
	return fmt.Sprintf("%s, comes back, %s", said, declared), func() {
		hide()
		join()
		register()
	}
}

func planFreeze(m *model, s *step) (string, func()) {
	sock := m.socketWith(s, func(s *modelSocket) bool { return s.frozen })
	if sock == nil || s.choose(1, 4) == 0 {
		sock = m.socket(s)
	}
	if sock == nil || !m.claim(sock.tab) {
		return "", nil
	}
	if sock.frozen = !sock.frozen; sock.frozen {
		sock.tab.froze = true
		return fmt.Sprintf("%s freezes", sock.tab), nil
	}
	return fmt.Sprintf("%s thaws", sock.tab), sock.link.Heard
}

func planJam(m *model, s *step) (string, func()) {
	sock := m.socket(s)
	if sock == nil || !m.claim(sock.tab) {
		return "", nil
	}
	sock.jammed, sock.tab.jammed = true, true
	return fmt.Sprintf("%s will not take its next call", sock.tab), nil
}
