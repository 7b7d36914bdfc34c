package tenant

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// callStopping calls a__foo in a process that stands still at the page's next event:
// the goroutine that calls does what is due only afterwards.
func (w *world) callStopping(ctx context.Context, d time.Duration) error {
	e, ok := w.Snapshot().Find("a__foo")
	if !ok {
		return errors.New("no tool a__foo")
	}
	_, err := e.Page.Call(ctx, e.Tool, Call{Args: json.RawMessage(`{}`), OnEvent: func(Event) { time.Sleep(d) }})
	return err
}

// What a page said while the server was stopped counts, although it is read after
// the limits that passed meanwhile.
func TestLimitsThatAreNoticedLate(t *testing.T) {
	const aWhile = 30 * time.Second
	for _, tc := range []struct {
		name  string
		stops time.Duration // after the call's beginning
		alive bool          // the page answers probes
	}{
		{"while the page is asked for a sign of life", DefaultProbeAfter + DefaultProbeTimeout/2, false},
		{"until the call's limit is over", DefaultCallTimeout - time.Second, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, Options{})
				defer w.Close()
				a := w.join("instance-a-000000", "A", "foo")
				a.alive = tc.alive
				done := make(chan error, 1)
				go func() {
					done <- w.callStopping(t.Context(), aWhile)
				}()
				synctest.Wait()
				id := a.sent()[0].ID
				time.Sleep(tc.stops)
				if err := a.link.Say(id, Event{Log: &Log{Level: "info", Data: json.RawMessage(`1`)}}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(aWhile + catchUp/2) // it has gone on, and now reads
				a.link.Heard()
				if err := a.link.Answer(id, Answer{}); err != nil {
					t.Errorf("the answer: %v", err)
				}
				if err := <-done; err != nil {
					t.Errorf("the call: %v", err)
				}
			})
		})
	}
}

// A page that says nothing afterwards either is as gone as it was.
func TestLateLimitsStillEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		defer w.Close()
		a := w.join("instance-a-000000", "A", "foo")
		a.alive = false
		done := make(chan error, 1)
		go func() {
			done <- w.callStopping(t.Context(), time.Minute)
		}()
		time.Sleep(DefaultProbeAfter + time.Second)
		if err := a.link.Say(a.sent()[0].ID, Event{Log: &Log{Level: "info", Data: json.RawMessage(`1`)}}); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		if err := <-done; time.Since(begun) != time.Minute+catchUp {
			t.Errorf("ended after %s with %v", time.Since(begun), err)
		}
	})
}
