package tenant

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// start calls in the background.
func (w *world) start(ctx context.Context, name string) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := w.call(ctx, name)
		done <- err
	}()
	synctest.Wait()
	return done
}

func TestLostPageEndsItsCallsOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		defer w.Close()
		a := w.join("instance-a-000000", "A", "foo")
		b := w.join("instance-b-000000", "B", "foo")
		lost, other := w.start(t.Context(), "a__foo"), w.start(t.Context(), "b__foo")
		begun := time.Now()
		a.link.Closed(Departure{MayReturn: true})
		err := <-lost
		wantKind(t, err, PageGone, true)
		if time.Since(begun) != 0 {
			t.Errorf("it took %s", time.Since(begun))
		}
		if !strings.Contains(err.Error(), `"foo"`) || !strings.Contains(err.Error(), "may have run") {
			t.Errorf("unhelpful: %v", err)
		}
		if err := b.link.Answer(b.sent()[0].ID, Answer{}); err != nil {
			t.Error(err)
		}
		if err := <-other; err != nil {
			t.Error(err)
		}
	})
}

func TestCallDuringAReloadRunsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		defer w.Close()
		a := w.join("instance-a-000000", "A", "foo")
		// Two calls are sent; the page takes one, then reloads.
		first, second := w.start(t.Context(), "a__foo"), w.start(t.Context(), "a__foo")
		ids := a.sent()
		a.link.Closed(Departure{MayReturn: true, SeenKnown: true, Seen: ids[0].ID})
		third := w.start(t.Context(), "a__foo") // comes while there is no socket
		wantKind(t, <-first, PageGone, true)
		time.Sleep(time.Second)
		b := w.join("instance-a-000000", "A", "foo")
		synctest.Wait()
		calls := b.sent()
		if len(calls) != 2 {
			t.Fatalf("%d calls reached the reloaded page, want 2", len(calls))
		}
		for _, c := range calls {
			if err := b.link.Answer(c.ID, Answer{}); err != nil {
				t.Error(err)
			}
		}
		if err := errors.Join(<-second, <-third); err != nil {
			t.Error(err)
		}
	})
}

func TestSeenOfAnotherSocketIsNotBelieved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		defer w.Close()
		a := w.join("instance-a-000000", "A", "foo")
		done := w.start(t.Context(), "a__foo")
		a.link.Closed(Departure{MayReturn: true, SeenKnown: true, Seen: "999-0"})
		wantKind(t, <-done, PageGone, true)
	})
}

func TestReloadWithoutTheTool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		defer w.Close()
		a := w.join("instance-a-000000", "A", "foo")
		a.link.Closed(Departure{MayReturn: true})
		done := w.start(t.Context(), "a__foo")
		w.join("instance-a-000000", "A", "bar")
		wantKind(t, <-done, NotOffered, false)
	})
}

func TestLimitOfACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		defer w.Close()
		a := w.join("instance-a-000000", "A", "foo")
		begun := time.Now()
		_, err := w.call(t.Context(), "a__foo")
		wantKind(t, err, TimedOut, true)
		if d := time.Since(begun); d != DefaultCallTimeout {
			t.Errorf("ended after %s", d)
		}
		for _, want := range []string{`"foo"`, `"A"`, "55 s"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q does not name %s", err, want)
			}
		}
		if len(a.canceled) != 1 || len(a.link.pending) != 0 {
			t.Errorf("cancelled %v, pending %d", a.canceled, len(a.link.pending))
		}
		if err := a.link.Answer(a.sent()[0].ID, Answer{}); !errors.Is(err, ErrLateAnswer) {
			t.Errorf("late answer: %v", err)
		}
	})
}

func TestCancelReachesThePage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		defer w.Close()
		a := w.join("instance-a-000000", "A", "foo")
		ctx, cancel := context.WithCancel(t.Context())
		done := w.start(ctx, "a__foo")
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v", err)
		}
		if len(a.canceled) != 1 || a.canceled[0] != a.sent()[0].ID || w.r.Running() != 0 {
			t.Errorf("cancelled %v, running %d", a.canceled, w.r.Running())
		}
	})
}

func TestFrozenPageFailsItsCallAndThaws(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		defer w.Close()
		a := w.join("instance-a-000000", "A", "foo")
		a.alive = false
		begun := time.Now()
		_, err := w.call(t.Context(), "a__foo")
		wantKind(t, err, PageSuspended, true)
		if d := time.Since(begun); d != 5*time.Second {
			t.Errorf("noticed after %s, want 5s", d)
		}
		if s := w.Pages()[0].Info().State; s != Suspended {
			t.Errorf("state %q", s)
		}
		// Not sent to a page that would run it at some later time.
		_, err = w.call(t.Context(), "a__foo")
		wantKind(t, err, PageSuspended, false)
		if len(a.sent()) != 1 {
			t.Errorf("%d calls were sent to a frozen page", len(a.sent()))
		}
		a.alive = true
		a.answering("1")
		if got, err := w.call(t.Context(), "a__foo"); got != "1" || err != nil {
			t.Errorf("after thaw: %q, %v", got, err)
		}
	})
}

func TestSignsOfLifeKeepALongCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		defer w.Close()
		a := w.join("instance-a-000000", "A", "foo")
		a.on = func(c CallFrame) {
			time.Sleep(50 * time.Second)
			_ = a.link.Answer(c.ID, Answer{})
		}
		if _, err := w.call(t.Context(), "a__foo"); err != nil {
			t.Error(err)
		}
		if a.probes < 10 {
			t.Errorf("%d probes in 50 s", a.probes)
		}
	})
}

func TestOlderScriptIsNotProbed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		defer w.Close()
		f := &fakePage{}
		l, err := w.Join(Joining{Transport: f})
		if err != nil {
			t.Fatal(err)
		}
		f.link = l
		if _, err := l.Register(declare(t, "A", "foo")); err != nil {
			t.Fatal(err)
		}
		_, err = w.call(t.Context(), "a__foo")
		wantKind(t, err, TimedOut, true)
		if f.probes != 0 {
			t.Errorf("%d probes", f.probes)
		}
	})
}

func TestOnlyItsOwnPageMayAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		defer w.Close()
		a := w.join("instance-a-000000", "A", "foo")
		b := w.join("instance-b-000000", "B", "foo")
		done := w.start(t.Context(), "a__foo")
		id := a.sent()[0].ID
		for _, forged := range []string{id, "", "-", "1-", "x-1", id + "0"} {
			if err := b.link.Answer(forged, Answer{Result: json.RawMessage(`"forged"`)}); !errors.Is(err, ErrForeignCall) {
				t.Errorf("answer to %q from another page: %v", forged, err)
			}
		}
		if err := a.link.Answer(id, Answer{}); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := a.link.Answer(id, Answer{}); !errors.Is(err, ErrLateAnswer) {
			t.Errorf("second answer: %v", err)
		}
	})
}

func TestEventsReachTheCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		defer w.Close()
		a := w.join("instance-a-000000", "A", "foo")
		a.on = func(c CallFrame) {
			for i := range 3 {
				_ = a.link.Say(c.ID, Event{Progress: &Progress{Progress: float64(i)}})
			}
			_ = a.link.Answer(c.ID, Answer{})
		}
		var got []float64
		e, _ := w.Snapshot().Find("a__foo")
		_, err := e.Page.Call(t.Context(), e.Tool, Call{OnEvent: func(e Event) { got = append(got, e.Progress.Progress) }})
		if err != nil || fmt.Sprint(got) != "[0 1 2]" {
			t.Errorf("heard %v, %v", got, err)
		}
	})
}

func TestFullQueueIsNotRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		defer w.Close()
		a := w.join("instance-a-000000", "A", "foo")
		a.full = errors.New("queue is full")
		_, err := w.call(t.Context(), "a__foo")
		wantKind(t, err, NotSent, false)
		if len(a.link.pending) != 0 {
			t.Error("an entry was left")
		}
	})
}

func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		a := w.join("instance-a-000000", "A", "foo")
		done := w.start(t.Context(), "a__foo")
		w.r.Drain()
		select {
		case <-w.r.Idle():
			t.Fatal("idle although a call runs")
		default:
		}
		_, err := w.call(t.Context(), "a__foo")
		wantKind(t, err, ServerStopping, false)
		_ = a.link.Answer(a.sent()[0].ID, Answer{})
		if err := <-done; err != nil {
			t.Error(err)
		}
		<-w.r.Idle()
		w.r.Close()
		if fmt.Sprint(a.closed) != fmt.Sprint([]Reason{Stopping}) {
			t.Errorf("closed with %v", a.closed)
		}
	})
}

// Every call ends, once, whatever joins, leaves and answers meanwhile.
func TestRaces(t *testing.T) {
	w := newWorld(t, Options{ReconnectGrace: time.Millisecond, CallTimeout: 2 * time.Second, MaxCallsPerPage: 1 << 20})
	defer w.Close()
	var tabs, callers sync.WaitGroup
	stop := make(chan struct{})
	for i := range 4 {
		tabs.Add(1)
		go func() {
			defer tabs.Done()
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				f := &fakePage{alive: true}
				l, err := w.Join(Joining{Instance: fmt.Sprintf("instance-%d-000000", i), Probes: true, Transport: f})
				if err != nil {
					t.Error(err)
					return
				}
				f.link = l
				f.answering("1")
				if _, err := l.Register(declare(t, "tab", "foo")); err != nil {
					t.Error(err)
				}
				_, _ = w.call(t.Context(), "tab__foo")
				if n%2 == 0 {
					l.Closed(Departure{MayReturn: true, SeenKnown: true})
				}
			}
		}()
	}
	for range 8 {
		callers.Add(1)
		go func() {
			defer callers.Done()
			for range 500 {
				for _, e := range w.Snapshot().Entries() {
					_, err := e.Page.Call(t.Context(), e.Tool, Call{})
					var ce *CallError
					if err != nil && !errors.As(err, &ce) {
						t.Errorf("ended with %v", err)
					}
				}
			}
		}()
	}
	callers.Wait()
	close(stop)
	tabs.Wait()
	if n := w.r.Running(); n != 0 {
		t.Errorf("%d calls still run", n)
	}
}
