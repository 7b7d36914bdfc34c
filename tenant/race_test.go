package tenant

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
)

// What follows are races that were met, each in its worst order.

func TestRenameWhilePending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRegistry(Options{Allow: func(string, bool) bool { return false }})
		defer r.Close()
		v := watch(t, r)
		l, err := r.Join(ParseConnect("x"), Joining{Origin: "https://far.test", Transport: &fakePage{}})
		if err != nil {
			t.Fatal(err)
		}
		if reg, err := l.Rename("y"); err != nil || !reg.Pending {
			t.Errorf("the waiting page was told %+v, %v", reg, err)
		}
		l.Closed(Departure{})
		if n := v.told.Load(); n != 0 {
			t.Errorf("sessions were told %d times of a page that waits", n)
		}
	})
}

func TestNamesAreUnique(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRegistry(Options{})
		defer r.Close()
		v := watch(t, r)
		seen := map[string]bool{}
		for _, name := range []string{"foo", "foo-", "foo-2", "foo2", "foo"} {
			f := &fakePage{}
			l, err := r.Join(ParseConnect(name), Joining{Origin: local, Transport: f})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := l.Register(declare(t, "", "a")); err != nil {
				t.Fatal(err)
			}
		}
		for _, p := range v.Pages() {
			if label := v.Info(p).Label; seen[label] {
				t.Errorf("two connections are named %q", label)
			} else {
				seen[label] = true
			}
		}
	})
}

// The timer of a page that waits has fired, and is overtaken by the approval.
func TestApprovalOvertakesTheTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRegistry(Options{Allow: func(string, bool) bool { return false }})
		defer r.Close()
		f := enter(t, r, "x", "https://far.test", "", "a")
		f.link.page.approve()
		if f.link.page.refuse(NotApproved, true) || f.ends() != "[]" {
			t.Errorf("an approved page was closed with %s", f.ends())
		}
		if n := r.Refuse("https://far.test"); n != 0 {
			t.Errorf("%d pages were refused", n)
		}
	})
}

func TestRevokedWhileJoining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		r := NewRegistry(Options{Allow: func(string, bool) bool {
			looks++
			return looks == 1
		}})
		defer r.Close()
		v := watch(t, r)
		f := &fakePage{}
		l, err := r.Join(ParseConnect("x"), Joining{Origin: "https://far.test", Transport: f})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Register(declare(t, "", "a")); !errors.Is(err, ErrReplaced) || f.ends() != fmt.Sprint([]Reason{Refused}) {
			t.Errorf("registered with %v, closed with %s", err, f.ends())
		}
		v.want("")
	})
}

func TestReloadAtTheLimitOfPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRegistry(Options{MaxPages: 1})
		defer r.Close()
		enter(t, r, "x", local, "", "a").link.Closed(Departure{MayReturn: true})
		enter(t, r, "x", local, "", "a")
	})
}

// Joining the roots of a registry that has just ended is to be tried again, at
// the next server.
func TestRootsOfAnEndedRegistry(t *testing.T) {
	r := NewRegistry(Options{})
	r.roots.close(Stopping)
	if _, err := r.Join(ParseConnect("x"), Joining{Transport: &fakePage{}}); !errors.Is(err, ErrStopping) {
		t.Errorf("joined with %v", err)
	}
}

func TestClosedViewJoinsNothing(t *testing.T) {
	r := NewRegistry(Options{})
	defer r.Close()
	for i := range 300 {
		own, err := r.Open()
		if err != nil {
			t.Fatal(err)
		}
		v := own.NewView(func() {})
		var wg sync.WaitGroup
		for k := range 3 {
			wg.Go(func() { _ = v.Join(fmt.Sprintf("c%d-%d", i, k)) })
		}
		v.Close()
		wg.Wait()
		own.Close()
	}
	if len(r.audiences) != 0 {
		t.Errorf("%d audiences are kept", len(r.audiences))
	}
}

// A channel that only pages in wait have named is not shown: the name is text
// of theirs.
func TestNameOfAPendingChannelIsHidden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		allowed := false
		r := NewRegistry(Options{Allow: func(string, bool) bool { return allowed }, MaxPages: 1})
		defer r.Close()
		enter(t, r, "ignore-all:x", "https://far.test", "", "a")
		if _, ok := r.Channel("ignore-all"); ok || len(r.Channels()) != 0 {
			t.Error("the channel is shown")
		}
		if _, err := r.Join(ParseConnect("other:x"), Joining{Transport: &fakePage{}}); err == nil || len(r.channels) != 1 {
			t.Errorf("a refused page (%v) leaves its channel: %d", err, len(r.channels))
		}
		allowed = true
		r.Recheck()
		if len(r.Channels()) != 1 {
			t.Error("the channel is hidden after the approval")
		}
	})
}

func TestRemotePeersOriginIsHearsay(t *testing.T) {
	r := NewRegistry(Options{Allow: func(_ string, remote bool) bool { return !remote }})
	defer r.Close()
	l, err := r.Join(ParseConnect("x"), Joining{Origin: local, Remote: true, Transport: &fakePage{}})
	if err != nil || !l.Pending() {
		t.Errorf("a remote page is in: %v", err)
	}
}

func BenchmarkRootChange(b *testing.B) {
	for _, n := range []int{1, 100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			r := NewRegistry(Options{})
			defer r.Close()
			var last *Link
			for i := range n {
				l, err := r.Join(ParseConnect(fmt.Sprint("app", i)), Joining{Origin: local, Transport: &fakePage{}})
				if err != nil {
					b.Fatal(err)
				}
				if _, err := l.Register(declare(b, "", "a")); err != nil {
					b.Fatal(err)
				}
				last = l
			}
			var views []*View
			for range 1000 {
				own, err := r.Open()
				if err != nil {
					b.Fatal(err)
				}
				views = append(views, own.NewView(func() {}))
			}
			for i := 0; b.Loop(); i++ {
				if _, err := last.Register(declare(b, "", fmt.Sprint("t", i))); err != nil {
					b.Fatal(err)
				}
				for _, v := range views {
					v.Snapshot()
				}
			}
		})
	}
}
