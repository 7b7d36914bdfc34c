package dashboard

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	maxStreams = 32
	// What changed is told after hubQuiet, and changeGap after the last time at
	// the earliest.
	hubQuiet  = 20 * time.Millisecond
	changeGap = 250 * time.Millisecond
	// hubLook finds what nobody tells of, such as refused frames.
	hubLook = 5 * time.Second
	// What is kept for streams that lag, or were cut.
	ringEvents = 512
	ringBytes  = 8 << 20
)

// hub makes events out of what there is: it looks, compares with what it told
// last, and tells what differs, once for all streams. Nothing that it looks at
// waits for it or for a stream. It looks only while there are streams.
type hub struct {
	opts  *Options
	epoch string
	ended sync.WaitGroup // of the worker

	mu      sync.Mutex
	streams int
	stop    chan struct{} // ends the worker; nil: there is none
	closed  bool
	last    uint64   // number of the last event
	ring    [][]byte // the last events, as they are sent
	size    int      // bytes in ring
	wake    chan struct{}

	// What was told last.
	looked      bool
	sessions    table[SessionRow]
	connections table[Connection]
	channels    table[Channel]
	workspaces  table[Workspace]
	origins     Origins
	counters    Counters
	calls       map[string]uint64 // versions by id
}

func newHub(o *Options) *hub {
	return &hub{opts: o, epoch: strings.ToLower(rand.Text()[:10]), wake: make(chan struct{}), calls: make(map[string]uint64)}
}

// table is a list that was told.
type table[T any] struct {
	list []T // never changed, only replaced
	byID map[string]T
}

// update replaces the list and gives what differs, nil for nothing.
func (t *table[T]) update(next []T, id func(T) string, same func(a, b T) bool) *Diff[T] {
	var d Diff[T]
	byID := make(map[string]T, len(next))
	for _, item := range next {
		key := id(item)
		byID[key] = item
		if old, ok := t.byID[key]; !ok || !same(old, item) {
			d.Set = append(d.Set, item)
		}
	}
	for key := range t.byID {
		if _, ok := byID[key]; !ok {
			d.Gone = append(d.Gone, key)
		}
	}
	t.list, t.byID = next, byID
	if d.Set == nil && d.Gone == nil {
		return nil
	}
	return &d
}

func equal[T comparable](a, b T) bool { return a == b }

// lookLocked finds what has changed, and makes an event of it.
func (h *hub) lookLocked() {
	calls, gone, read := h.opts.Journal.diff(h.calls)
	now := h.opts.look(read)
	change := Change{
		Sessions: h.sessions.update(now.Sessions, func(s SessionRow) string { return s.ID }, func(a, b SessionRow) bool {
			joined := slices.Equal(a.Channels, b.Channels)
			a.Channels, b.Channels = nil, nil
			return joined && reflect.DeepEqual(a, b)
		}),
		Connections: h.connections.update(now.Connections, func(c Connection) string { return c.ID }, equal[Connection]),
		Channels:    h.channels.update(now.Channels, func(c Channel) string { return c.ID }, equal[Channel]),
		Workspaces:  h.workspaces.update(now.Workspaces, func(w Workspace) string { return w.ID }, equal[Workspace]),
		Notices:     read.notices,
	}
	if !reflect.DeepEqual(h.origins, now.Origins) {
		h.origins, change.Origins = now.Origins, &now.Origins
	}
	if h.counters != now.Counters {
		h.counters, change.Counters = now.Counters, &now.Counters
	}
	if len(calls)+len(gone) > 0 {
		change.Calls = &Diff[Call]{calls, gone}
	}
	first := !h.looked
	h.looked = true
	if first { // nobody knows anything that this could differ from
		change = Change{Notices: read.notices}
	}
	if !reflect.ValueOf(change).IsZero() {
		h.addLocked(change)
	}
}

func (h *hub) addLocked(c Change) {
	data, err := json.Marshal(c)
	if err != nil {
		h.opts.Logger.Error("encoding an event of the dashboard failed", "err", err)
		return
	}
	h.last++
	event := h.event("change", h.last, data)
	h.ring = append(h.ring, event)
	for h.size += len(event); len(h.ring) > 1 && (len(h.ring) > ringEvents || h.size > ringBytes); {
		h.size -= len(h.ring[0])
		h.ring[0] = nil
		h.ring = h.ring[1:]
	}
	close(h.wake)
	h.wake = make(chan struct{})
}

func (h *hub) event(kind string, n uint64, data []byte) []byte {
	b := make([]byte, 0, len(data)+64)
	b = append(b, "id: "...)
	b = append(b, h.epoch...)
	b = append(b, '-')
	b = strconv.AppendUint(b, n, 10)
	b = append(b, "\nevent: "...)
	b = append(b, kind...)
	b = append(b, "\ndata: "...)
	b = append(b, data...) // JSON, which has no line break of its own
	return append(b, "\n\n"...)
}

// join lets a stream in that was told everything up to the event lastID, "" for
// nothing. It gives the number of the last event that the stream knows then, and
// what to tell it first, nil for nothing.
func (h *hub) join(lastID string, server Server) (at uint64, first []byte, err error) {
	h.mu.Lock()
	if h.closed || h.streams >= maxStreams {
		h.mu.Unlock()
		return 0, nil, fmt.Errorf("there are %d event streams, the most there may be: close a tab of the dashboard", maxStreams)
	}
	h.streams++
	if h.stop == nil {
		h.opts.Journal.watched.Store(true)
		h.stop = make(chan struct{})
		stop := h.stop
		h.ended.Go(func() { h.work(stop) })
	}
	before := h.last
	h.lookLocked()
	if at, ok := h.resumesLocked(lastID); ok {
		h.mu.Unlock()
		return at, nil, nil
	}
	at = h.last
	if h.streams == 1 { // nobody was there to be told what agents did meanwhile
		at = before
	}
	s := State{Server: server, Sessions: h.sessions.list, Connections: h.connections.list, Channels: h.channels.list, Workspaces: h.workspaces.list,
		Origins: h.origins, Counters: h.counters, Calls: []Call{}}
	h.mu.Unlock()
	for _, c := range h.opts.Journal.all() { // perhaps newer than the rest, which does no harm
		s.Calls = append(s.Calls, c.Call)
	}
	data, err := json.Marshal(s)
	if err != nil {
		h.leave()
		return 0, nil, err
	}
	return at, h.event("snapshot", at, data), nil
}

// resumesLocked tells whether all that came after an event is still here.
func (h *hub) resumesLocked(lastID string) (at uint64, ok bool) {
	epoch, n, _ := strings.Cut(lastID, "-")
	at, err := strconv.ParseUint(n, 10, 64)
	if err != nil || epoch != h.epoch {
		return 0, false
	}
	return at, at <= h.last && h.last-at <= uint64(len(h.ring))
}

// open is how many streams there are.
func (h *hub) open() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.streams
}

// leave takes a stream out.
func (h *hub) leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.streams--; h.streams == 0 {
		h.restLocked()
	}
}

func (h *hub) restLocked() {
	if h.stop != nil {
		close(h.stop)
		h.stop = nil
		h.opts.Journal.watched.Store(false)
	}
}

// after gives the events that come after one, and what is closed once there are
// more. A stream that lags too far behind is not ok.
func (h *hub) after(at uint64) (events [][]byte, more <-chan struct{}, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	behind := h.last - at
	if h.closed || behind > uint64(len(h.ring)) {
		return nil, nil, false
	}
	return slices.Clone(h.ring[uint64(len(h.ring))-behind:]), h.wake, true
}

// work is the worker.
func (h *hub) work(stop chan struct{}) {
	look := time.NewTicker(hubLook)
	defer look.Stop()
	var last time.Time
	for {
		select {
		case <-stop:
			return
		case <-h.opts.Registry.Changes():
		case <-h.opts.Journal.changed:
		case <-look.C:
		}
		wait := time.NewTimer(max(hubQuiet, changeGap-time.Since(last)))
		select {
		case <-stop: // perhaps for another worker, which is to hear of what this one took
			wait.Stop()
			h.opts.Registry.Note()
			return
		case <-wait.C:
		}
		last = time.Now()
		h.mu.Lock()
		h.lookLocked()
		h.mu.Unlock()
	}
}

// close ends every stream and waits for the worker.
func (h *hub) close() {
	h.mu.Lock()
	h.closed = true
	h.restLocked()
	close(h.wake)
	h.wake = make(chan struct{})
	h.mu.Unlock()
	h.ended.Wait()
}
