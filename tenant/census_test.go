package tenant

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"testing/synctest"
)

func TestCensus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRegistry(Options{Allow: func(origin string, _ bool) bool { return origin == local }})
		defer r.Close()
		want := func(what string, c Census) {
			t.Helper()
			if got := r.Census(); !reflect.DeepEqual(got, c) {
				t.Errorf("%s: %+v, want %+v", what, got, c)
			}
		}
		want("nothing", Census{Pages: map[State]int{}, Tenants: map[Kind]int{Roots: 1}})

		own, err := r.Open()
		if err != nil {
			t.Fatal(err)
		}
		defer own.Close()
		enter(t, r, "c:far", "https://far.test", "", "a")
		f := enter(t, r, "app", local, "instance-a-000000", "a")
		if _, err := r.Join(ParseConnect("later"), Joining{Origin: local, Transport: &fakePage{}}); err != nil {
			t.Fatal(err)
		}
		tenants := map[Kind]int{Roots: 1, Session: 1, Channel: 1}
		want("three pages", Census{Pages: map[State]int{Pending: 1, Ready: 1, Joined: 1}, Tenants: tenants})

		e, _ := r.Roots().Snapshot().Find("app__a")
		done := make(chan error, 1)
		go func() {
			_, err := e.Page.Call(t.Context(), e.Tool, Call{Args: json.RawMessage(`{}`)})
			done <- err
		}()
		synctest.Wait()
		f.link.suspend()
		want("a call to a page that froze", Census{Pages: map[State]int{Pending: 1, Suspended: 1, Joined: 1}, Tenants: tenants, Calls: 1})

		f.link.Closed(Departure{MayReturn: true})
		if err := <-done; err == nil {
			t.Error("the call outlived its socket")
		}
		want("a page that lost its socket", Census{Pages: map[State]int{Pending: 1, Reconnecting: 1, Joined: 1}, Tenants: tenants})
		enter(t, r, "app", local, "instance-a-000000", "a")
		want("its return", Census{Pages: map[State]int{Pending: 1, Ready: 1, Joined: 1}, Tenants: tenants, Reconnects: 1})
	})
}

// A log can tell which call of which page an error is of.
func TestErrorsNamePageAndCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{MaxCallsPerPage: 1})
		defer w.Close()
		f := w.join("instance-a-000000", "Page", "a")
		first := w.start(t.Context(), "page__a")
		synctest.Wait()
		id := f.last()
		check := func(err error, kind CallErrorKind, id string) {
			t.Helper()
			var ce *CallError
			if !errors.As(err, &ce) || ce.Kind != kind || ce.Page != f.link.ID() || ce.ID != id {
				t.Errorf("%v of %q, call %q; want kind %d of %q, call %q", err, ce.Page, ce.ID, kind, f.link.ID(), id)
			}
		}
		check(<-w.start(t.Context(), "page__a"), TooBusy, "")
		f.link.Closed(Departure{})
		check(<-first, PageGone, id)
	})
}
