package page

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"jsbridge/tenant"
)

// A large answer takes its time, on a busy machine more than a probe's. While it comes
// the page is alive; when it stops coming, it is not.
func TestAnAnswerOnItsWayIsASignOfLife(t *testing.T) {
	const timeout = 2 * time.Second
	for _, arrives := range []bool{true, false} {
		t.Run(map[bool]string{true: "it arrives", false: "it stops"}[arrives], func(t *testing.T) {
			t.Parallel() // it waits
			s := newSide(t, Options{PingInterval: time.Minute}, tenant.Options{ProbeAfter: 50 * time.Millisecond, ProbeTimeout: timeout})
			ws := s.dial("&v=1", "big")
			e, _ := s.Snapshot().Find("big__x")
			done := make(chan error, 1)
			go func() {
				_, err := e.Page.Call(t.Context(), e.Tool, tenant.Call{Args: json.RawMessage(`{}`)})
				done <- err
			}()
			var f struct{ Type, ID string }
			for f.Type != "call" {
				_, b, err := ws.Read(t.Context())
				if err != nil || json.Unmarshal(b, &f) != nil {
					t.Fatal(string(b), err)
				}
			}
			w, err := ws.Writer(t.Context(), websocket.MessageText)
			if err != nil {
				t.Fatal(err)
			}
			write := func(text string) {
				if _, err := w.Write([]byte(text)); err != nil {
					t.Fatal(err)
				}
			}
			write(`{"type":"call_result","id":"` + f.ID + `","result":"`)
			piece := strings.Repeat("x", 5<<10) // more than is kept back for a full frame
			write(piece)
			tick := time.NewTicker(timeout / 20)
			defer tick.Stop()
			for begun := time.Now(); arrives && time.Since(begun) < 3*timeout/2; <-tick.C {
				write(piece)
			}
			if arrives {
				write(`"}`)
				if err := w.Close(); err != nil {
					t.Fatal(err)
				}
			}
			select {
			case err = <-done:
			case <-time.After(patience):
				t.Fatal("the call never ended")
			}
			var ce *tenant.CallError
			if suspended := errors.As(err, &ce) && ce.Kind == tenant.PageSuspended; suspended == arrives || arrives && err != nil {
				t.Errorf("the call ended with %v", err)
			}
		})
	}
}
