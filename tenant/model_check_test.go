package tenant

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// outcomes are what some script must come to.
var outcomes = []string{
	"reload", "adoption", "wait for approval", "sent again", "answered", "thrown", "cancelled", "gone, may have run", "gone, did not run",
	"timed out, may have run", "timed out, did not run", "suspended, may have run", "not offered, did not run", "too busy, did not run", "not sent, did not run",
}

var kindNames = map[CallErrorKind]string{PageGone: "gone", PageSuspended: "suspended", TimedOut: "timed out", NotOffered: "not offered", TooBusy: "too busy", NotSent: "not sent"}

// check compares everything with the model. Nothing moves meanwhile.
func (m *model) check() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.calls {
		m.checkCallLocked(c)
	}
	for _, p := range m.pages {
		if p.real != nil {
			m.checkStateLocked(p)
		}
	}
	for _, v := range m.views {
		m.checkViewLocked(v)
	}
}

func (m *model) checkCallLocked(c *modelCall) {
	if !c.over {
		if why := c.mustEnd(); why != "" {
			m.failLocked("call %d goes on although %s", c.n, why)
		}
		return
	}
	if c.late && c.answer == "" && c.err == nil {
		m.failLocked("call %d refused its answer, and has none", c.n)
	}
	var ce *CallError
	switch errors.As(c.err, &ce); {
	case c.err == nil && (c.taken != 1 || c.got != c.answer || c.got == ""):
		m.failLocked("call %d was taken %d times, was answered %q, and ends with %q", c.n, c.taken, c.answer, c.got)
	case c.err != nil && c.answer != "":
		m.failLocked("call %d was answered, and ends with %v", c.n, c.err)
	case c.err == nil:
		m.outcomeLocked(c, map[bool]string{false: "answered", true: "thrown"}[strings.HasSuffix(c.got, "throws")])
	case ce == nil && (!c.canceled || !errors.Is(c.err, context.Canceled)):
		m.failLocked("call %d ends with %v, and was cancelled: %v", c.n, c.err, c.canceled)
	case ce == nil:
		m.outcomeLocked(c, "cancelled")
	case !ce.MayHaveRun && c.taken > 0:
		m.failLocked("call %d ran, and ends with %v", c.n, ce)
	default:
		if !c.judged && !c.may(ce.Kind) {
			m.failLocked("call %d ends with %v, and there is no reason for that", c.n, ce)
		}
		m.outcomeLocked(c, kindNames[ce.Kind]+map[bool]string{true: ", may have run", false: ", did not run"}[ce.MayHaveRun])
	}
}

func (m *model) outcomeLocked(c *modelCall, what string) {
	if !c.judged {
		c.judged = true
		m.done[what]++
	}
}

// mustEnd says why a call must have ended by now.
func (c *modelCall) mustEnd() string {
	switch {
	case c.canceled:
		return "its caller cancelled it"
	case c.answer != "":
		return "it was answered"
	case c.late:
		return "its answer came too late"
	case c.page.gone:
		return "its page has gone"
	case c.sock != nil && c.sock.dead && (c.taken > 0 || !c.sock.again):
		return "the socket that it was sent to has ended"
	case !time.Now().Before(c.deadline.Add(c.asked)):
		return "its limit is over"
	}
	return ""
}

// may tells whether a call may end so.
func (c *modelCall) may(k CallErrorKind) bool {
	switch k {
	case PageGone:
		return c.page.gone || c.sock != nil && c.sock.dead
	case TimedOut:
		return !c.ended.Before(c.deadline)
	case PageSuspended:
		return c.page.tab.froze
	case NotOffered:
		return c.page.tools[c.tool] == ""
	case NotSent:
		return c.page.tab.jammed || c.page.gone
	}
	return k == TooBusy
}

// checkStateLocked compares what describing a page says of it.
func (m *model) checkStateLocked(p *modelPage) {
	o := p.real.Outline()
	want := []State{Ready, Suspended}
	switch {
	case p.gone:
		want = []State{Gone}
	case !p.pending.IsZero():
		want = []State{Pending}
	case !p.away.IsZero():
		want = []State{Reconnecting}
	case p.tools == nil:
		want = []State{Joined, Suspended}
	case !p.tab.froze:
		want = want[:1]
	}
	if !slices.Contains(want, o.State) {
		m.failLocked("%s in %s is %s, not %s", p.tab, m.nameOf(p.place), o.State, want)
	}
	if o.ToolCount != len(p.tools) || o.Origin != p.tab.origin {
		m.failLocked("%s is described with %d tools, of %q", p.tab, o.ToolCount, o.Origin)
	}
}

func (m *model) checkViewLocked(v *modelView) {
	wanted, tools := 0, 0
	for _, p := range m.pages {
		if v.sees(p) {
			wanted++
			tools += len(p.tools)
		}
	}
	pages := v.view.Pages()
	if len(pages) != wanted {
		m.failLocked("%s has %d pages, not %d", v, len(pages), wanted)
	}
	snap := v.view.Snapshot()
	before := v.prefixes
	v.prefixes = make(map[*Page]string)
	taken := make(map[string]*modelPage)
	described := 0
	for _, real := range pages {
		p := m.real[real]
		if p == nil || !v.sees(p) {
			m.failLocked("%s sees a page that is not its own: %+v", v, real.Outline())
			return
		}
		info := v.view.Info(real)
		if p.tools == nil {
			continue
		}
		if q := taken[info.Prefix]; q != nil || info.Prefix == "" {
			m.failLocked("%s has the prefix %q of %s twice", v, info.Prefix, p.tab)
		}
		taken[info.Prefix] = p
		v.prefixes[real] = info.Prefix
		if was := before[real]; was != "" && was != info.Prefix && !p.renamed {
			m.failLocked("in %s the prefix of %s went from %s to %s", v, p.tab, was, info.Prefix)
		}
		if len(info.Tools) != len(p.tools) {
			m.failLocked("%s is described to %s with %d tools, not %d", p.tab, v, len(info.Tools), len(p.tools))
		}
		for _, e := range info.Tools {
			m.checkEntryLocked(v, snap, p, info.Prefix, e)
		}
		described += len(info.Tools)
	}
	if n := len(snap.Entries()); n != tools || n != described {
		m.failLocked("%s lists %d tools, describes %d, and should have %d", v, n, described, tools)
	}
	m.checkToldLocked(v, snap)
}

// checkEntryLocked: what describing a page gives as a tool's name leads there.
func (m *model) checkEntryLocked(v *modelView, snap *Snapshot, p *modelPage, prefix string, e Entry) {
	found, ok := snap.Find(e.Name)
	switch {
	case !ok || found.Page != p.real || found.Tool != e.Tool:
		m.failLocked("in %s %q is described as of %s, and leads elsewhere", v, e.Name, p.tab)
	case !strings.HasPrefix(e.Name, prefix+"__"):
		m.failLocked("in %s the page %q has the tool %q", v, prefix, e.Name)
	case e.Tool.Description != p.tools[e.Tool.Name]:
		m.failLocked("in %s %q says %q, not %q", v, e.Name, e.Tool.Description, p.tools[e.Tool.Name])
	}
}

// checkToldLocked: names are there once, and a view hears of each change.
func (m *model) checkToldLocked(v *modelView, snap *Snapshot) {
	var now strings.Builder
	last := ""
	for _, e := range snap.Entries() {
		if strings.EqualFold(last, e.Name) {
			m.failLocked("%s has the name %q twice", v, e.Name)
		}
		last = e.Name
		fmt.Fprintf(&now, "%s: %s\n", e.Name, e.Tool.Description)
	}
	told := v.told.Load()
	if now.String() != v.seen && told == v.heard && !v.chose {
		m.failLocked("%s was not told that it changed from\n%sto\n%s", v, v.seen, &now)
	}
	v.seen, v.heard, v.chose = now.String(), told, false
}
