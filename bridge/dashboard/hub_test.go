package dashboard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"jsbridge/bridge/state"
	"jsbridge/tenant"
)

func newTestHub(t testing.TB) (*hub, *tenant.Registry, *Journal) {
	f, err := state.Open("", nil)
	if err != nil {
		t.Fatal(err)
	}
	j := NewJournal(false)
	r := tenant.NewRegistry(tenant.Options{Observer: j})
	t.Cleanup(r.Close)
	return newHub(&Options{Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), Registry: r, Journal: j, State: f,
		Sessions: func() []Session { return nil }, Refused: func() int64 { return 0 }}), r, j
}

func changeOf(t *testing.T, event []byte) (c Change) {
	t.Helper()
	_, data, ok := bytes.Cut(event, []byte("\nevent: change\ndata: "))
	if !ok || !bytes.HasSuffix(data, []byte("\n\n")) || json.Unmarshal(data, &c) != nil {
		t.Fatalf("no change: %s", event)
	}
	return c
}

// However much happens, it is told four times a second.
func TestEventsAreCoalesced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, r, j := newTestHub(t)
		at, first, err := h.join("", Server{})
		if err != nil || !bytes.HasPrefix(first, []byte("id: "+h.epoch+"-0\nevent: snapshot\n")) {
			t.Fatalf("%s, %v", first, err)
		}
		join(t, r, "app", 1)
		time.Sleep(hubQuiet)
		synctest.Wait()
		events, _, ok := h.after(at)
		if !ok || len(events) != 1 || len(changeOf(t, events[0]).Connections.Set) != 1 {
			t.Fatalf("a connection made the events %q", events)
		}
		at++
		for range 3000 { // three seconds
			begin(j, "", `{}`).End(result("1"), nil)
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		events, _, ok = h.after(at)
		calls := map[string]bool{} // one may be told while it runs, and again
		for _, e := range events {
			c := changeOf(t, e)
			for _, call := range c.Calls.Set {
				calls[call.ID] = true
			}
			if c.Connections != nil {
				t.Error("an unchanged connection is told")
			}
		}
		if !ok || len(events) > 14 || len(calls) != 3000 {
			t.Errorf("3000 calls in 3 s made %d events of %d calls", len(events), len(calls))
		}
		h.leave()
		h.close()
	})
}

// Without streams nothing is looked at.
func TestHubRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _, j := newTestHub(t)
		if _, _, err := h.join("", Server{}); err != nil || !j.watched.Load() {
			t.Fatal(err)
		}
		h.leave()
		synctest.Wait()
		begin(j, "", `{}`)
		time.Sleep(time.Minute)
		if h.last != 0 || j.watched.Load() {
			t.Errorf("%d events without a stream", h.last)
		}
		// The next one is told what has changed since.
		at, first, err := h.join(h.epoch+"-0", Server{})
		if events, _, ok := h.after(at); err != nil || first != nil || at != 0 || !ok || len(events) != 1 || len(changeOf(t, events[0]).Calls.Set) != 1 {
			t.Errorf("resumed at %d with %s, %q, %v", at, first, events, err)
		}
		h.leave()
		h.close()
		if _, _, err := h.join("", Server{}); err == nil {
			t.Error("a closed hub takes streams")
		}
	})
}

// A dashboard that was closed leaves nothing behind, once it is clear that it does not
// come back.
func TestHubForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, r, j := newTestHub(t)
		if _, _, err := h.join("", Server{}); err != nil {
			t.Fatal(err)
		}
		join(t, r, "app", 1)
		begin(j, "", `{}`).End(result("1"), nil)
		time.Sleep(time.Second)
		synctest.Wait()
		last := fmt.Sprintf("%s-%d", h.epoch, h.last)
		h.leave()
		time.Sleep(forgetAfter - time.Second)
		if _, first, err := h.join(last, Server{}); err != nil || first != nil {
			t.Errorf("a stream that comes back in time is told %s, %v", first, err)
		}
		time.Sleep(2 * forgetAfter) // it was cut short, so this one is not counted
		h.leave()
		time.Sleep(forgetAfter + time.Second)
		synctest.Wait()
		if len(h.ring)+h.size+len(h.calls)+len(h.connections.list)+len(h.connections.byID) != 0 {
			t.Errorf("%d events, %d bytes, %d calls, %d connections are kept", len(h.ring), h.size, len(h.calls), len(h.connections.list))
		}
		if at, first, err := h.join(last, Server{}); err != nil || !bytes.Contains(first, []byte("\nevent: snapshot\n")) || !bytes.Contains(first, []byte(`"label":"app"`)) {
			t.Errorf("a stream that comes back late is told %s at %d, %v", first, at, err)
		} else if _, _, ok := h.after(at); !ok {
			t.Error("it is not told on")
		}
		h.leave()
		h.close()
	})
}

func TestRingIsBounded(t *testing.T) {
	h, _, _ := newTestHub(t)
	h.mu.Lock()
	defer h.mu.Unlock()
	notice := func(size int) Change { return Change{Notices: []Notice{{Description: strings.Repeat("x", size)}}} }
	for range ringEvents + 10 {
		h.addLocked(notice(1))
	}
	if len(h.ring) != ringEvents {
		t.Errorf("%d events are kept", len(h.ring))
	}
	for lastID, want := range map[uint64]bool{h.last: true, h.last - ringEvents: true, h.last - ringEvents - 1: false, h.last + 1: false} {
		if _, ok := h.resumesLocked(fmt.Sprintf("%s-%d", h.epoch, lastID)); ok != want {
			t.Errorf("after %d of %d: resumes %v", lastID, h.last, ok)
		}
	}
	for range 20 {
		h.addLocked(notice(ringBytes / 8))
	}
	size := 0
	for _, e := range h.ring {
		size += len(e)
	}
	if size > ringBytes || size != h.size {
		t.Errorf("%d bytes are kept, %d counted", size, h.size)
	}
	h.addLocked(notice(2 * ringBytes))
	if len(h.ring) != 1 {
		t.Errorf("%d events are kept beside a huge one", len(h.ring)-1)
	}
	h.mu.Unlock()
	if _, _, ok := h.after(h.last - 2); ok {
		t.Error("a stream that lags too far behind is told on")
	}
	if events, _, ok := h.after(h.last - 1); !ok || len(events) != 1 {
		t.Error("a stream that lags a little is not told on")
	}
	h.mu.Lock()
}
