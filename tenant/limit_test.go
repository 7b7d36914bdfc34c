package tenant

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"jsbridge/manifest"
)

// A tool that waits for a human may say so: its own limit counts, longer or shorter
// than the server's.
func TestOwnLimitOfATool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		defer w.Close()
		a := w.socket("instance-a-000000")
		m, err := manifest.Parse([]byte(`{"appLabel":"A","tools":[{"name":"long","timeoutMs":120000},{"name":"short","timeoutMs":1500}]}`), manifest.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.link.Register(m); err != nil {
			t.Fatal(err)
		}
		a.on = func(c CallFrame) {
			if c.Timeout <= time.Minute {
				return
			}
			time.Sleep(90 * time.Second)
			_ = a.link.Answer(c.ID, Answer{Result: json.RawMessage(`"clicked"`)})
		}
		if got, err := w.call(t.Context(), "a__long"); got != `"clicked"` || err != nil {
			t.Errorf("after 90 s: %s, %v", got, err)
		}
		begun := time.Now()
		_, err = w.call(t.Context(), "a__short")
		wantKind(t, err, TimedOut, true)
		if d := time.Since(begun); d != 1500*time.Millisecond {
			t.Errorf("ended after %s", d)
		}
		for _, part := range []string{`"short"`, `"A"`, "1.5 s", "may still finish", "timeoutMs"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q does not say %s", err, part)
			}
		}
	})
}

// Calls are told apart by their ids for as long as the server runs: on all sockets of
// all pages, also of a tab that comes back again and again.
func TestCallIDsNeverRepeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		defer w.Close()
		seen := make(map[string]bool)
		for range 20 {
			for _, tab := range []string{"a", "b"} {
				f := w.join("instance-"+tab+"-000000", strings.ToUpper(tab), "foo")
				f.answering("1")
				for range 10 {
					if _, err := w.call(t.Context(), tab+"__foo"); err != nil {
						t.Fatal(err)
					}
				}
				for _, c := range f.sent() {
					if seen[c.ID] {
						t.Fatalf("the id %s was given twice", c.ID)
					}
					seen[c.ID] = true
				}
			}
		}
		if len(seen) != 400 {
			t.Errorf("%d calls", len(seen))
		}
	})
}

// Two tabs of one app: the name of the one that has left leads nowhere, and surely not
// to the other; a tab that stays keeps its own.
func TestNameOfATabThatLeftLeadsNowhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		defer w.Close()
		first, second := w.join("instance-a-000000", "shop", "x"), w.join("instance-b-000000", "shop", "x")
		first.answering(`"first"`)
		second.answering(`"second"`)
		gone, ok := w.Snapshot().Find("shop__x")
		if !ok {
			t.Fatal(w.names())
		}
		first.link.Closed(Departure{MayReturn: true})
		time.Sleep(DefaultReconnectGrace)
		synctest.Wait()
		w.wantNames("shop2__x")
		var ce *CallError
		if a, err := gone.Page.Call(t.Context(), gone.Tool, Call{Args: json.RawMessage(`{}`)}); !errors.As(err, &ce) || ce.Kind != PageGone {
			t.Errorf("who still had its route got %s, %v", a.Result, err)
		}
		if got, err := w.call(t.Context(), "shop2__x"); got != `"second"` || err != nil {
			t.Errorf("the other answered %s, %v", got, err)
		}
		// A tab that comes then may have the name.
		w.join("instance-c-000000", "shop", "x")
		w.wantNames("shop2__x shop__x")
	})
}
