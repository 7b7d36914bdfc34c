package page

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"jsbridge/manifest"
	"jsbridge/tenant"
)

// socket is one page's WebSocket. It implements [tenant.Transport].
type socket struct {
	h      *Handler
	ws     *websocket.Conn
	origin string
	v1     bool // speaks version 1, not just the older subset
	link   *tenant.Link

	logged int // refusals that were logged; of the reader alone

	greeting sync.Mutex // keeps the welcome in front of an approval
	greeted  bool

	queue  chan []byte
	queued atomic.Int64 // bytes in queue
	probes atomic.Uint64

	endOnce sync.Once
	ending  chan struct{} // closed when this side wants the socket's end
	why     closing       // set before ending is closed
	read1   chan struct{} // closed when the reader has ended
	workers sync.WaitGroup
}

var errTooSlow = errors.New("the page does not take its messages fast enough and was disconnected")

func newSocket(h *Handler, ws *websocket.Conn, origin string, v1 bool) *socket {
	s := &socket{h: h, ws: ws, origin: origin, v1: v1,
		queue: make(chan []byte, h.opts.MaxQueue), ending: make(chan struct{}), read1: make(chan struct{})}
	s.workers.Add(2)
	go s.write()
	go s.ping()
	return s
}

// wait ends the socket's goroutines.
func (s *socket) wait() {
	close(s.read1)
	s.workers.Wait()
	_ = s.ws.CloseNow()
}

// close asks for the socket's end; the first reason counts. It does not wait.
func (s *socket) close(c closing) {
	s.endOnce.Do(func() {
		c.reason = manifest.Clean(c.reason, 120, false)
		s.why = c
		close(s.ending)
	})
}

// send queues one message.
func (s *socket) send(msg []byte) error {
	select {
	case <-s.ending:
		return fmt.Errorf("the connection is closing (%s)", s.why.reason)
	default:
	}
	if s.queued.Add(int64(len(msg))) <= 4*s.h.opts.MaxFrame {
		select {
		case s.queue <- msg:
			return nil
		default:
		}
	}
	s.queued.Add(-int64(len(msg)))
	s.close(closing{codeTooSlow, errTooSlow.Error()})
	return errTooSlow
}

func (s *socket) sendJSON(v any) {
	b, err := json.Marshal(v)
	if err != nil {
		s.h.log.Error("encoding a message failed", "err", err)
		return
	}
	_ = s.send(b) // an overflow has ended the socket and says so there
}

// write is the writer: the queue's messages in order, then the close frame.
func (s *socket) write() {
	defer s.workers.Done()
	for {
		select {
		case msg := <-s.queue:
			s.queued.Add(-int64(len(msg)))
			ctx, cancel := context.WithTimeout(context.Background(), s.h.opts.WriteTimeout)
			err := s.ws.Write(ctx, websocket.MessageText, msg)
			cancel()
			if err != nil {
				_ = s.ws.CloseNow()
				return
			}
		case <-s.ending:
			// What was queued before the close request still goes out, except
			// to a peer that is too slow for it.
			if s.why.code != codeTooSlow && s.flush() != nil {
				_ = s.ws.CloseNow()
				return
			}
			// Close waits for the peer's close frame, at most 5 s.
			_ = s.ws.Close(s.why.code, s.why.reason)
			return
		case <-s.read1:
			return
		}
	}
}

func (s *socket) flush() error {
	ctx, cancel := context.WithTimeout(context.Background(), s.h.opts.WriteTimeout)
	defer cancel()
	for {
		select {
		case msg := <-s.queue:
			s.queued.Add(-int64(len(msg)))
			if err := s.ws.Write(ctx, websocket.MessageText, msg); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

// ping is the pinger. It finds a network that is gone; a page whose JavaScript
// does not run still answers pings, which is why calls probe.
func (s *socket) ping() {
	defer s.workers.Done()
	tick := time.NewTicker(s.h.opts.PingInterval)
	defer tick.Stop()
	missed := 0
	for {
		select {
		case <-s.read1:
			return
		case <-s.ending:
			return
		case <-tick.C:
		}
		ctx, cancel := context.WithTimeout(context.Background(), s.h.opts.PingInterval)
		err := s.ws.Ping(ctx)
		cancel()
		if err == nil {
			missed = 0
			continue
		}
		if missed++; missed == 2 || !errors.Is(err, context.DeadlineExceeded) {
			_ = s.ws.CloseNow()
			return
		}
	}
}

// turnAway ends the socket of a page that may not join, with a reason that it
// can read. Anybody may ask for that, so few are given the time at once.
func (s *socket) turnAway(ctx context.Context, c closing) {
	s.h.log.Warn("page refused", "origin", clip(s.origin), "reason", c.reason)
	select {
	case s.h.refusals <- struct{}{}:
		defer func() { <-s.h.refusals }()
	default:
		return
	}
	s.ws.SetReadLimit(refusedFrame)
	s.close(c)
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for { // so that the close handshake can end
		if _, _, err := s.ws.Read(ctx); err != nil {
			return
		}
	}
}

// read is the reader. When it ends, the page knows.
func (s *socket) read(ctx context.Context) {
	var end tenant.Departure
	for {
		typ, data, err := s.next(ctx)
		if err != nil {
			end = s.departure(err)
			break
		}
		select {
		case <-s.ending: // only the peer's close frame is awaited
			continue
		default:
		}
		if typ != websocket.MessageText {
			s.refuse(closing{websocket.StatusUnsupportedData, errNotObject.Error()})
			continue
		}
		s.message(data)
	}
	s.link.Closed(end)
}

// next reads one message. A large one takes its time: while it comes, so long the page
// is alive, although its answer to a probe has to wait behind.
func (s *socket) next(ctx context.Context) (websocket.MessageType, []byte, error) {
	typ, r, err := s.ws.Reader(ctx)
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
	s.h.log.Warn("page refused", "connection", s.link.ID(), "origin", clip(s.origin), "reason", c.reason)
	s.link.Closed(tenant.Departure{})
	s.close(c)
}

// departure reads off how the socket ended.
func (s *socket) departure(err error) tenant.Departure {
	code := websocket.CloseStatus(err)
	select {
	case <-s.ending:
		code = s.why.code
	default:
	}
	if errors.Is(err, websocket.ErrMessageTooBig) {
		code = websocket.StatusMessageTooBig
		s.h.refused.Add(1)
		s.h.log.Warn("page refused: a frame was too large (--max-frame)", "connection", s.link.ID(), "limit", s.h.opts.MaxFrame)
	}
	if code == -1 {
		code = websocket.StatusAbnormalClosure // no close frame came
	}
	d := tenant.Departure{MayReturn: mayReturn(code)}
	var ce websocket.CloseError
	if code == codePageHide && errors.As(err, &ce) {
		d.Seen, d.SeenKnown = strings.CutPrefix(ce.Reason, "pagehide ")
		d.Seen = strings.TrimPrefix(d.Seen, "-")
	}
	s.h.log.Info("page disconnected", "connection", s.link.ID(), "code", int(code))
	return d
}

// greet is the first message to a page.
func (s *socket) greet(connect tenant.Connect) {
	s.greeting.Lock()
	defer s.greeting.Unlock()
	s.greeted = true
	pending := s.link.Pending()
	if pending {
		s.h.log.Warn("page waits for approval of its origin: allow it with jsbridge allow, --allow-origin or the dashboard", "connection", s.link.ID(), "origin", clip(s.origin))
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

// tenant.Transport.

func (s *socket) Call(c tenant.CallFrame) error { return s.send(encodeCall(c, s.v1)) }

func (s *socket) Cancel(id, reason string) {
	if s.v1 {
		s.sendJSON(cancelMsg{"cancel", id, reason})
	}
}

func (s *socket) Probe() {
	if s.v1 {
		s.sendJSON(probeMsg{"probe", fmt.Sprint(s.probes.Add(1))})
	}
}

func (s *socket) Answer(askID string, a tenant.Answer) {
	if s.v1 {
		s.sendJSON(answerMsg{"answer", askID, a.Result, a.Err})
	}
}

func (s *socket) Watch(uri string, on bool) {
	if !s.v1 {
		return
	}
	msg := watchMsg{"unsubscribe", uri}
	if on {
		msg.Type = "subscribe"
	}
	s.sendJSON(msg)
}

func (s *socket) Complain(message string) {
	if s.v1 {
		s.sendJSON(errorMsg{Type: "error", Message: message})
	}
}

func (s *socket) Identify(label string) { s.sendJSON(identifyMsg{"identify", label}) }

func (s *socket) Approved(reg *tenant.Registration) {
	s.greeting.Lock()
	defer s.greeting.Unlock()
	if !s.greeted { // the welcome will say it
		return
	}
	s.h.log.Info("page approved", "origin", clip(s.origin))
	s.ws.SetReadLimit(s.h.opts.MaxFrame)
	if s.v1 {
		s.sendJSON(approvedMsg{"approved"})
	}
	if reg != nil {
		s.tellRegistered(*reg)
	}
}

func (s *socket) Registered(reg tenant.Registration) { s.tellRegistered(reg) }

func (s *socket) Move(to tenant.Connect) { s.sendJSON(moveMsg{"move_channel", to.String()}) }

func (s *socket) Close(r tenant.Reason) { s.close(closingFor(r)) }
