package page

// outbox is the messages that wait to be sent to one page. It takes no room for those
// that it may have, as a channel would: almost always it is empty.
type outbox struct {
	queue [][]byte // from head on
	head  int
	bytes int64 // of all that wait
}

// What an empty outbox may keep, in messages, so that a page which is called again and
// again needs no new one each time.
const outboxKept = 8

func (o *outbox) len() int { return len(o.queue) - o.head }

func (o *outbox) push(msg []byte) {
	if o.head > 0 && len(o.queue) == cap(o.queue) { // a long-lived queue must not grow at its end
		n := copy(o.queue, o.queue[o.head:])
		clear(o.queue[n:])
		o.queue, o.head = o.queue[:n], 0
	}
	o.queue = append(o.queue, msg)
	o.bytes += int64(len(msg))
}

// pop gives the oldest message; nil if there is none.
func (o *outbox) pop() []byte {
	if o.len() == 0 {
		return nil
	}
	msg := o.queue[o.head]
	o.queue[o.head] = nil
	o.head++
	o.bytes -= int64(len(msg))
	if o.len() == 0 {
		o.queue, o.head = o.queue[:0], 0
		if cap(o.queue) > outboxKept {
			o.queue = nil
		}
	}
	return msg
}
