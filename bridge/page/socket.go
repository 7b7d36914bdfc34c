package page

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"jsbridge/manifest"
	"jsbridge/tenant"
)

// socket is one page's WebSocket. It implements [tenant.Transport].
//
// There may be very many. So only the reader has a goroutine for as long as the page
// is there; the writer's ends when there is nothing to send, the pinger's when the
// pong has come.
type socket struct {
	h      *Handler
	ws     *websocket.Conn
	origin string
	v1     bool // speaks version 1, not just the older subset
	link   *tenant.Link
	id     atomic.Pointer[string] // link's, for the log; nil before it is there

	logged int // refusals that were logged; of the reader alone

	greeting sync.Mutex // keeps the welcome in front of an approval
	greeted  bool

	probes atomic.Uint64

	mu      sync.Mutex
	outbox  outbox
	writing bool        // the writer is at work, or has failed
	closing bool        // this side wants the socket's end
	why     closing     // set once, with closing
	ended   bool        // the reader has ended: no goroutine begins any more
	pinger  *time.Timer // runs until ended
	missed  int         // pings in a row; of the pinger alone
	overdue *time.Timer // ends the socket; of the writer alone
	workers sync.WaitGroup
}

var (
	errTooSlow = errors.New("the page does not take its messages fast enough and was disconnected")
	errEnded   = errors.New("the connection has ended")
)

func newSocket(h *Handler, ws *websocket.Conn, origin string, v1 bool) *socket {
	s := &socket{h: h, ws: ws, origin: origin, v1: v1}
	s.mu.Lock() // the timer may be as short as it likes
	defer s.mu.Unlock()
	s.pinger = time.AfterFunc(h.opts.PingInterval, s.ping)
	return s
}

// wait ends the socket's goroutines.
func (s *socket) wait() {
	s.mu.Lock()
	s.ended = true
	s.pinger.Stop()
	s.mu.Unlock()
	s.workers.Wait()
	_ = s.ws.CloseNow()
}

// joined notes the connection's id: the link's may not be asked by whoever calls
// the transport, and changes when an older script's page is adopted.
func (s *socket) joined() {
	if id := s.link.ID(); s.id.Load() == nil || *s.id.Load() != id {
		s.id.Store(&id)
	}
}

// log is for lines about this page.
func (s *socket) log() *slog.Logger {
	if id := s.id.Load(); id != nil {
		return s.h.log.With("connection", *id)
	}
	return s.h.log
}

// close asks for the socket's end; the first reason counts. It does not wait.
func (s *socket) close(c closing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closeLocked(c)
}

func (s *socket) closeLocked(c closing) {
	if s.closing {
		return
	}
	c.reason = manifest.Clean(c.reason, 120, false)
	s.closing, s.why = true, c
	s.writeLocked()
}

// closed tells whether this side wants the socket's end, and why.
func (s *socket) closed() (closing, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.why, s.closing
}

// send queues one message.
func (s *socket) send(msg []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closing:
		return fmt.Errorf("the connection is closing (%s)", s.why.reason)
	case s.ended:
		return errEnded
	case s.outbox.len() >= s.h.opts.MaxQueue || s.outbox.bytes+int64(len(msg)) > 4*s.h.opts.MaxFrame:
		s.closeLocked(closing{codeTooSlow, errTooSlow.Error()})
		return errTooSlow
	}
	s.outbox.push(msg)
	s.writeLocked()
	return nil
}

func (s *socket) sendJSON(v any) {
	b, err := json.Marshal(v)
	if err != nil {
		s.log().Error("encoding a message failed", "err", err)
		return
	}
	_ = s.send(b) // an overflow has ended the socket and says so there
}

// writeLocked has the writer at work.
func (s *socket) writeLocked() {
	if s.writing || s.ended {
		return
	}
	s.writing = true
	s.workers.Add(1)
	go s.write()
}

// write is the writer: the queue's messages in order, then the close frame.
func (s *socket) write() {
	defer s.workers.Done()
	for {
		msg, closing := s.next()
		switch {
		case closing:
			// What was queued before the close request still goes out, except
			// to a peer that is too slow for it.
			why, _ := s.closed()
			if why.code != codeTooSlow && s.flush() != nil {
				_ = s.ws.CloseNow()
				return
			}
			// Close waits for the peer's close frame, at most 5 s.
			_ = s.ws.Close(why.code, why.reason)
			return
		case msg == nil:
			return
		}
		if err := s.put(msg); err != nil {
			_ = s.ws.CloseNow()
			return
		}
	}
}

// put writes one message. A context with a deadline for each would cost more than the
// writing.
func (s *socket) put(msg []byte) error {
	if s.overdue == nil {
		s.overdue = time.AfterFunc(s.h.opts.WriteTimeout, func() { _ = s.ws.CloseNow() })
	} else {
		s.overdue.Reset(s.h.opts.WriteTimeout)
	}
	defer s.overdue.Stop()
	return s.ws.Write(context.Background(), websocket.MessageText, msg)
}

// next is what the writer does next: sends a message, closes, or ends.
func (s *socket) next() (msg []byte, closing bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closing:
		return nil, true
	case s.ended:
		return nil, false
	}
	msg = s.outbox.pop()
	s.writing = msg != nil
	return msg, false
}

func (s *socket) flush() error {
	ctx, cancel := context.WithTimeout(context.Background(), s.h.opts.WriteTimeout)
	defer cancel()
	for {
		s.mu.Lock()
		msg := s.outbox.pop()
		s.mu.Unlock()
		if msg == nil {
			return nil
		}
		if err := s.ws.Write(ctx, websocket.MessageText, msg); err != nil {
			return err
		}
	}
}

// ping is the pinger, once for each ping. It finds a network that is gone; a page
// whose JavaScript does not run still answers pings, which is why calls probe.
func (s *socket) ping() {
	s.mu.Lock()
	if s.ended || s.closing {
		s.mu.Unlock()
		return
	}
	s.workers.Add(1)
	s.mu.Unlock()
	defer s.workers.Done()
	begun := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), s.h.opts.PingInterval)
	err := s.ws.Ping(ctx)
	cancel()
	if err == nil {
		s.missed = 0
	} else if s.missed++; s.missed == 2 || !errors.Is(err, context.DeadlineExceeded) {
		_ = s.ws.CloseNow()
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.pinger.Reset(max(0, s.h.opts.PingInterval-time.Since(begun)))
	}
}

// turnAway ends the socket of a page that may not join, with a reason that it
// can read. Anybody may ask for that, so few are given the time at once.
func (s *socket) turnAway(c closing) {
	s.h.counts.refuse(refusalFor(c.code))
	s.h.log.Warn("page refused", "origin", clip(s.origin), "reason", c.reason)
	select {
	case s.h.refusals <- struct{}{}:
		defer func() { <-s.h.refusals }()
	default:
		return
	}
	s.ws.SetReadLimit(refusedFrame)
	s.close(c)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for { // so that the close handshake can end
		if _, _, err := s.ws.Read(ctx); err != nil {
			return
		}
	}
}

// read is the reader. When it ends, the page knows. It has no context, which would
// cost each message more than all else that is done to read it: the handler closes the
// socket instead.
func (s *socket) read() {
	var end tenant.Departure
	for {
		typ, data, err := s.receive()
		if err != nil {
			end = s.departure(err)
			break
		}
		if _, closing := s.closed(); closing { // only the peer's close frame is awaited
			continue
		}
		if typ != websocket.MessageText {
			s.refuse(closing{websocket.StatusUnsupportedData, errNotObject.Error()})
			continue
		}
		s.message(data)
	}
	s.link.Closed(end)
}

// receive reads one message. A large one takes its time: while it comes, so long the page
// is alive, although its answer to a probe has to wait behind.
func (s *socket) receive() (websocket.MessageType, []byte, error) {
	typ, r, err := s.ws.Reader(context.Background())
	if err != nil {
		return 0, nil, err
	}
	data, err := io.ReadAll(heard{r, s.link})
	return typ, data, err
}

// heard notes each piece of a message as a sign of life.
type heard struct {
	io.Reader
	link *tenant.Link
}

func (h heard) Read(b []byte) (int, error) {
	n, err := h.Reader.Read(b)
	if n > 0 {
		h.link.Heard()
	}
	return n, err
}

// refuse ends the socket of a peer that speaks another protocol.
func (s *socket) refuse(c closing) {
	s.h.refused.Add(1)
	s.log().Warn("page refused", "origin", clip(s.origin), "reason", c.reason)
	s.link.Closed(tenant.Departure{})
	s.close(c)
}

// departure reads off how the socket ended.
func (s *socket) departure(err error) tenant.Departure {
	code := websocket.CloseStatus(err)
	if why, closing := s.closed(); closing {
		code = why.code
	}
	if errors.Is(err, websocket.ErrMessageTooBig) {
		code = websocket.StatusMessageTooBig
		s.h.refused.Add(1)
		s.log().Warn("page refused: a frame was too large (--max-frame)", "limit", s.h.opts.MaxFrame)
	}
	if code == -1 {
		code = websocket.StatusAbnormalClosure // no close frame came
	}
	s.h.counts.close(code)
	d := tenant.Departure{MayReturn: mayReturn(code)}
	var ce websocket.CloseError
	if code == codePageHide && errors.As(err, &ce) {
		d.Seen, d.SeenKnown = strings.CutPrefix(ce.Reason, "pagehide ")
		d.Seen = strings.TrimPrefix(d.Seen, "-")
	}
	s.log().Info("page disconnected", "code", int(code))
	return d
}

// greet is the first message to a page.
func (s *socket) greet(connect tenant.Connect) {
	s.greeting.Lock()
	defer s.greeting.Unlock()
	s.greeted = true
	pending := s.link.Pending()
	if pending {
		s.log().Warn("page waits for approval of its origin: allow it with jsbridge allow, --allow-origin or the dashboard", "origin", clip(s.origin))
	}
	if !s.v1 {
		s.sendJSON(initMsg{Type: "init", ResolvedName: connect.Name})
		return
	}
	msg := welcomeMsg{Type: "welcome", ConnectionID: s.link.ID(), State: "ready", Channel: connect.Channel,
		Limits: limitsMsg{FrameBytes: s.h.opts.MaxFrame, Tools: s.h.opts.MaxTools}}
	if pending {
		s.ws.SetReadLimit(min(s.h.opts.MaxFrame, pendingFrame))
		msg.State, msg.Reason = "pending", pendingReason(clip(s.origin))
	}
	s.sendJSON(msg)
}

// pendingReason tells a page, and with it its user, what it waits for.
func pendingReason(origin string) string {
	if origin == "null" {
		return "pages without an origin of their own (file:// or sandboxed) get in only when jsbridge is started with --allow-origin null"
	}
	return fmt.Sprintf("%[1]s is not approved yet: run jsbridge allow %[1]s, or start jsbridge with --allow-origin %[1]s", origin)
}
