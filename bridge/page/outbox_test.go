package page

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// Whatever comes and goes, messages leave in the order they came in, and are counted.
func TestOutboxKeepsOrder(t *testing.T) {
	var o outbox
	rnd := rand.New(rand.NewPCG(1, 2))
	in, out, bytes := 0, 0, 0
	for range 2000 {
		if n := rnd.IntN(40); rnd.IntN(2) == 0 {
			for range n {
				msg := fmt.Append(nil, in)
				o.push(msg)
				bytes += len(msg)
				in++
			}
		} else {
			for range n {
				msg := o.pop()
				if msg == nil {
					break
				}
				if string(msg) != fmt.Sprint(out) {
					t.Fatalf("got %s, want %d", msg, out)
				}
				bytes -= len(msg)
				out++
			}
		}
		if o.len() != in-out || o.bytes != int64(bytes) {
			t.Fatalf("%d messages of %d bytes wait, want %d of %d", o.len(), o.bytes, in-out, bytes)
		}
	}
	for o.pop() != nil {
	}
	if o.bytes != 0 || cap(o.queue) > outboxKept {
		t.Errorf("the empty outbox counts %d bytes and keeps room for %d messages", o.bytes, cap(o.queue))
	}
}

// A queue that is never quite empty must not grow at its end.
func TestOutboxReusesItsRoom(t *testing.T) {
	var o outbox
	o.push([]byte("first"))
	for range 10_000 {
		o.push([]byte("next"))
		o.pop()
	}
	if cap(o.queue) > outboxKept {
		t.Errorf("two messages at a time took room for %d", cap(o.queue))
	}
}
