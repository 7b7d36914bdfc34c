package tenant

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// enter brings a page in by a connect string and registers its tools.
func enter(t *testing.T, r *Registry, connect, origin, label string, tools ...string) *fakePage {
	t.Helper()
	f := &fakePage{alive: true}
	l, err := r.Join(ParseConnect(connect), Joining{Instance: "instance-" + connect + origin, Origin: origin, Probes: true, Transport: f})
	if err != nil {
		t.Fatalf("%s: %v", connect, err)
	}
	f.link = l
	if f.reg, err = l.Register(declare(t, label, tools...)); err != nil {
		t.Fatal(err)
	}
	return f
}

// watched is one session's view, with how often it was told of a change.
type watched struct {
	t *testing.T
	*View
	told atomic.Int64
}

func watch(t *testing.T, r *Registry) *watched {
	t.Helper()
	own, err := r.Open()
	if err != nil {
		t.Fatal(err)
	}
	w := &watched{t: t}
	w.View = own.NewView(func() { w.told.Add(1) })
	return w
}

func (w *watched) want(want string) {
	w.t.Helper()
	var names []string
	for _, e := range w.Snapshot().Entries() {
		names = append(names, e.Name)
	}
	if got := strings.Join(names, " "); got != want {
		w.t.Errorf("the view has %q, want %q", got, want)
	}
}

const local = "http://localhost:3000"

func TestViewOfRootsIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRegistry(Options{})
		defer r.Close()
		before, other := watch(t, r), watch(t, r)
		app := enter(t, r, "my-app", local, "Title", "foo")
		after := watch(t, r)
		for _, v := range []*watched{before, other, after} {
			v.want("my_app__foo")
			if v.Snapshot() != r.Roots().Snapshot() {
				t.Error("a view of the roots alone has a snapshot of its own")
			}
		}
		if before.told.Load() != 1 || after.told.Load() != 0 {
			t.Errorf("told %d and %d times, want 1 and 0", before.told.Load(), after.told.Load())
		}
		if info := before.Info(before.Pages()[0]); info.Label != "my-app" || info.Kind != Roots {
			t.Errorf("the root is described as %+v", info)
		}
		app.link.Closed(Departure{MayReturn: true})
		enter(t, r, "my-app", local, "Title", "foo")
		before.want("my_app__foo")
		if !before.Snapshot().Same(after.Snapshot(), Tools) {
			t.Error("a reload changed the list")
		}
	})
}

func TestLiveNameIsNotTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRegistry(Options{})
		defer r.Close()
		v := watch(t, r)
		first := enter(t, r, "bank", local, "", "pay")
		second := enter(t, r, "bank", "http://localhost:4000", "", "pay")
		second.answering("stolen")
		first.answering("mine")
		v.want("bank2__pay bank__pay")
		if second.reg.Prefix != "bank2" || v.Info(v.Pages()[1]).Label != "bank2" {
			t.Errorf("the second is %q, %q", second.reg.Prefix, v.Info(v.Pages()[1]).Label)
		}
		e, _ := v.Snapshot().Find("bank__pay")
		if a, err := e.Page.Call(t.Context(), e.Tool, Call{}); err != nil || string(a.Result) != "mine" {
			t.Errorf("bank__pay answered %s, %v", a.Result, err)
		}
	})
}

func TestChannelIsSeenByThoseWhoJoined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRegistry(Options{})
		defer r.Close()
		in, out := watch(t, r), watch(t, r)
		if err := in.Join("bug123"); err != nil {
			t.Fatal(err)
		}
		a := enter(t, r, "bug123:htmlpaint", local, "Paint", "draw")
		enter(t, r, "bug123:", local, "Bulletino", "post")
		in.want("bulletino__post htmlpaint__draw")
		out.want("")
		if in.told.Load() == 0 || out.told.Load() != 0 {
			t.Errorf("told %d and %d times", in.told.Load(), out.told.Load())
		}
		a.link.Leave()
		in.want("bulletino__post")
		if err := in.Leave("bug123"); err != nil {
			t.Error(err)
		}
		in.want("")
		if err := in.Leave("bug123"); !errors.Is(err, ErrNotJoined) {
			t.Errorf("leaving twice: %v", err)
		}
	})
}

func TestChannelEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRegistry(Options{})
		defer r.Close()
		v := watch(t, r)
		_ = v.Join("c")
		there := func() bool { _, ok := r.Channel("c"); return ok }

		enter(t, r, "c:a", local, "", "foo").link.Leave()
		if there() {
			t.Error("the channel outlives its last page's leaving")
		}

		a := enter(t, r, "c:a", local, "", "foo")
		v.want("a__foo")
		a.link.Closed(Departure{MayReturn: true})
		time.Sleep(DefaultReconnectGrace + time.Second)
		v.want("")
		if !there() {
			t.Error("the channel ended with the grace")
		}
		time.Sleep(DefaultEmptyTimeout)
		if there() {
			t.Error("the empty channel is not swept")
		}

		told := v.told.Load()
		enter(t, r, "c:a", local, "", "foo")
		v.want("a__foo")
		if v.told.Load() == told {
			t.Error("the channel came back untold")
		}
	})
}

func TestChannelThatNobodyUsesEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRegistry(Options{IdleTimeout: time.Hour})
		defer r.Close()
		root := enter(t, r, "root", local, "", "foo")
		a := enter(t, r, "c:a", local, "", "foo")
		time.Sleep(50 * time.Minute)
		a.link.Heard()
		time.Sleep(50 * time.Minute)
		if a.ends() != "[]" {
			t.Fatal("a channel in use was swept")
		}
		time.Sleep(11 * time.Minute)
		if a.ends() != fmt.Sprint([]Reason{Unused}) || len(r.Channels()) != 0 {
			t.Errorf("closed with %v, channels left: %d", a.ends(), len(r.Channels()))
		}
		if root.ends() != "[]" {
			t.Error("a root connection was swept")
		}
	})
}

// TestClashInAView: the later one gets an ordinal, in this view alone, and
// keeps it.
func TestClashInAView(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRegistry(Options{})
		defer r.Close()
		v, other := watch(t, r), watch(t, r)
		root := enter(t, r, "app", local, "", "foo")
		v.want("app__foo")
		own := enter(t, r, v.Own().ID(), "https://far.test", "app", "bar")
		v.want("app2__bar app__foo")
		if own.reg.Prefix != "app2" || own.reg.ToolNames[0] != "app2__bar" {
			t.Errorf("the page was told %+v", own.reg)
		}
		_ = v.Join("c")
		chanApp := enter(t, r, "c:app", local, "", "baz")
		v.want("app2__bar app3__baz app__foo")
		other.want("app__foo")

		root.link.Leave()
		v.want("app2__bar app3__baz")
		if d, ok := v.Departed("app__foo"); !ok || d.Label != "app" {
			t.Errorf("who left: %+v, %v", d, ok)
		}
		again := enter(t, r, "app", local, "", "foo")
		v.want("app2__bar app3__baz app__foo")

		own.link.Leave()
		chanApp.link.Leave()
		v.want("app__foo")
		if v.Snapshot() != r.Roots().Snapshot() {
			t.Error("the view of the roots alone is not shared")
		}
		if _, err := again.link.Rename("New"); err != nil {
			t.Fatal(err)
		}
		v.want("new__foo")
		other.want("new__foo")
	})
}

// TestOverrideStays: the one with the ordinal keeps it when the other goes.
func TestOverrideStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRegistry(Options{})
		defer r.Close()
		v := watch(t, r)
		own := enter(t, r, v.Own().ID(), local, "app", "bar")
		v.want("app__bar")
		root := enter(t, r, "app", local, "", "foo")
		v.want("app2__foo app__bar")
		own.link.Leave()
		v.want("app2__foo")
		root.answering("1")
		e, _ := v.Snapshot().Find("app2__foo")
		if _, err := e.Page.Call(t.Context(), e.Tool, Call{Prefix: "app2"}); err != nil {
			t.Error(err)
		}
		if info := v.Info(v.Pages()[0]); info.Prefix != "app2" || info.Tools[0].Name != "app2__foo" {
			t.Errorf("described as %q with %q", info.Prefix, info.Tools[0].Name)
		}
	})
}

func TestPendingUntilApproved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		allowed := map[string]bool{}
		r := NewRegistry(Options{Allow: func(o string, _ bool) bool { return o == local || allowed[o] }})
		defer r.Close()
		v := watch(t, r)
		far := enter(t, r, "app", "https://far.test", "", "foo")
		enter(t, r, "app", local, "", "foo")
		v.want("app__foo")
		if !far.reg.Pending || far.reg.Prefix != "" || len(v.Pages()) != 1 {
			t.Errorf("the waiting page was told %+v and is one of %d", far.reg, len(v.Pages()))
		}
		if w := r.Waiting(); len(w) != 1 || w[0].Origin != "https://far.test" || w[0].Pages != 1 {
			t.Errorf("waiting: %+v", w)
		}
		// A session tenant's id is a capability: no approval.
		if p := enter(t, r, v.Own().ID(), "https://far.test", "pasted", "foo"); p.reg.Pending {
			t.Error("a pasted page waits for approval")
		}

		allowed["https://far.test"] = true
		r.Recheck()
		v.want("app2__foo app__foo pasted__foo")
		if len(far.approved) != 1 || far.approved[0].Prefix != "app2" || len(r.Waiting()) != 0 {
			t.Errorf("approved: %v, waiting %v", far.approved, r.Waiting())
		}
		delete(allowed, "https://far.test")
		r.Recheck()
		v.want("app__foo pasted__foo")
		if far.ends() != fmt.Sprint([]Reason{Refused}) {
			t.Errorf("closed with %v", far.ends())
		}
	})
}

func TestWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRegistry(Options{Allow: func(string, bool) bool { return false }})
		defer r.Close()
		a := enter(t, r, "app", "https://a.test", "", "foo")
		b := enter(t, r, "c:app", "https://b.test", "", "foo")
		if n := r.Refuse("https://b.test"); n != 1 || b.ends() != fmt.Sprint([]Reason{Refused}) {
			t.Errorf("refused %d, closed with %v", n, b.ends())
		}
		time.Sleep(waitFor)
		synctest.Wait()
		if a.ends() != fmt.Sprint([]Reason{NotApproved}) || len(r.waiting) != 0 {
			t.Errorf("closed with %v, waiting %v", a.ends(), r.waiting)
		}
	})
}

func TestWaitingIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRegistry(Options{Allow: func(string, bool) bool { return false }})
		defer r.Close()
		join := func(origin string, i int) error {
			_, err := r.Join(ParseConnect("app"), Joining{Instance: fmt.Sprintf("%s-%d", origin, i), Origin: origin, Transport: &fakePage{}})
			return err
		}
		for i := range maxWaitingOrigin {
			if err := join("https://evil.test", i); err != nil {
				t.Fatal(err)
			}
		}
		if err := join("https://evil.test", 99); !errors.Is(err, errWaitingOrigin) {
			t.Errorf("one origin's ninth page: %v", err)
		}
		for i := maxWaitingOrigin; i < maxWaiting; i++ {
			if err := join(fmt.Sprintf("https://%d.test", i), 0); err != nil {
				t.Fatal(err)
			}
		}
		if err := join("https://late.test", 0); !errors.Is(err, errWaiting) {
			t.Errorf("the 33rd: %v", err)
		}
		if r.pages.Load() != maxWaiting {
			t.Errorf("%d pages counted", r.pages.Load())
		}
		r.Refuse("https://evil.test")
		if err := join("https://late.test", 0); err != nil {
			t.Error(err)
		}
	})
}

func TestNamesNothing(t *testing.T) {
	r := NewRegistry(Options{})
	defer r.Close()
	for _, s := range []string{"", "!!!", ":x", "6c2d0b5e-1111-4222-8333-444455556666"} {
		if r.Knows(ParseConnect(s)) {
			t.Errorf("%q names something", s)
		}
		if _, err := r.Join(ParseConnect(s), Joining{Transport: &fakePage{}}); !errors.Is(err, ErrNoTenant) {
			t.Errorf("%q: %v", s, err)
		}
	}
	if len(r.channels) != 0 || r.pages.Load() != 0 {
		t.Error("something was made")
	}
}

// TestNothingIsKept: a round of everything leaves nothing behind.
func TestNothingIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRegistry(Options{})
		defer r.Close()
		for i := range 50 {
			v := watch(t, r)
			name := fmt.Sprintf("c%d", i)
			_ = v.Join(name)
			_ = v.Join("never-made" + name)
			pages := []*fakePage{enter(t, r, name+":a", local, "", "foo"), enter(t, r, "root", local, "", "foo"), enter(t, r, v.Own().ID(), local, "own", "foo")}
			v.want("a__foo own__foo root__foo")
			for _, p := range pages {
				p.link.Leave()
			}
			v.Close()
			v.Own().Close()
		}
		if n := len(r.sessions) + len(r.channels) + len(r.audiences) + len(r.roots.prefixes) + len(r.roots.pages) + len(r.roots.audience.views) + int(r.pages.Load()); n != 0 {
			t.Errorf("left: %v %v %v", slices.Collect(maps.Keys(r.sessions)), slices.Collect(maps.Keys(r.channels)), slices.Collect(maps.Keys(r.audiences)))
		}
	})
}

// ends are the reasons it was closed for.
func (f *fakePage) ends() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return fmt.Sprint(f.closed)
}

// from brings a socket of one tab in.
func (w *watched) from(instance, connect, label string) *fakePage {
	w.t.Helper()
	f := &fakePage{alive: true}
	l, err := w.reg.Join(ParseConnect(connect), Joining{Instance: instance, Origin: local, Transport: f})
	if err != nil {
		w.t.Fatal(err)
	}
	f.link = l
	if f.reg, err = l.Register(declare(w.t, label, "foo")); err != nil {
		w.t.Fatal(err)
	}
	return f
}

// TestTabGoesElsewhere: a tab is in one place. What it left is not waited for,
// so that its name is free at once.
func TestTabGoesElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRegistry(Options{})
		defer r.Close()
		v := watch(t, r)
		const tab = "instance-of-one-tab"
		_ = v.Join("room")
		for _, step := range []struct{ connect, label, want string }{
			{v.Own().ID(), "Notes", "notes__foo"},
			{"notes", "Notes", "notes__foo"},      // pasted before, baked in now
			{"my-app", "My app", "my_app__foo"},   // another page of the same site
			{"room:notes", "Notes", "notes__foo"}, // and on to a channel
			{"room:other", "Notes", "other__foo"},
			{v.Own().ID(), "Notes", "notes__foo"},
		} {
			page := v.from(tab, step.connect, step.label)
			v.want(step.want)
			page.link.Closed(Departure{MayReturn: true})
		}
		if r.pages.Load() != 1 {
			t.Errorf("%d pages are counted", r.pages.Load())
		}
		// A rename is the tab's, and stays over a reload.
		page := v.from(tab, "app", "")
		if _, err := page.link.Rename("Left tab"); err != nil {
			t.Fatal(err)
		}
		page.link.Closed(Departure{MayReturn: true})
		v.from(tab, "app", "").link.Leave()
		v.want("")
		if r.pages.Load() != 0 {
			t.Errorf("left: %d pages", r.pages.Load())
		}
	})
}

func TestRenameStaysOverAReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRegistry(Options{})
		defer r.Close()
		v := watch(t, r)
		page := v.from("instance-of-one-tab", "app", "")
		if _, err := page.link.Rename("Left tab"); err != nil {
			t.Fatal(err)
		}
		page.link.Closed(Departure{MayReturn: true})
		v.from("instance-of-one-tab", "app", "")
		v.want("left_tab__foo")
	})
}

// TestWorkspace: its pages stay when its sessions end, and find it again when
// it has been swept.
func TestWorkspace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const id = "6c2d0b5e-1111-4222-8333-444455556666"
		r := NewRegistry(Options{IsWorkspace: func(s string) bool { return s == id }, Allow: func(string, bool) bool { return false }})
		defer r.Close()
		open := func() *watched {
			own, err := r.OpenWorkspace(id)
			if err != nil {
				t.Fatal(err)
			}
			w := &watched{t: t}
			w.View = own.NewView(func() { w.told.Add(1) })
			return w
		}
		a, b := open(), open()
		page := enter(t, r, id, "https://any.test", "App", "foo")
		a.want("app__foo")
		b.want("app__foo")
		a.Close()
		b.Close()
		if page.ends() != "[]" {
			t.Errorf("the page was closed with %s", page.ends())
		}
		c := open()
		c.want("app__foo")
		page.link.Leave()
		time.Sleep(2 * DefaultIdleTimeout)
		if len(r.sessions) != 1 {
			t.Error("the workspace was swept from under a session")
		}
		c.Close()
		time.Sleep(DefaultEmptyTimeout)
		synctest.Wait()
		if len(r.sessions) != 0 {
			t.Error("the workspace that nobody is in is kept")
		}
		// A page comes first, as after a restart of the server.
		enter(t, r, id, "https://any.test", "App", "foo")
		open().want("app__foo")
	})
}

func TestJoinedChannelsAreBounded(t *testing.T) {
	r := NewRegistry(Options{})
	defer r.Close()
	v := watch(t, r)
	for i := range maxJoined {
		if err := v.Join(fmt.Sprint("c", i)); err != nil {
			t.Fatal(err)
		}
	}
	var le *LimitError
	if err := v.Join("one-more"); !errors.As(err, &le) {
		t.Errorf("joined one more: %v", err)
	}
	if err := v.Join("c0"); err != nil {
		t.Errorf("joining again what is joined: %v", err)
	}
	v.Close()
	if len(r.audiences) != 0 {
		t.Errorf("%d audiences are kept", len(r.audiences))
	}
}
