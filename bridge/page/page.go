// Package page is the page side of the bridge: the WebSocket endpoint that web
// pages connect out to, and what is said over it (PROTOCOL: the page protocol,
// version 1). It is the only importer of the WebSocket library.
//
// A socket has up to three goroutines, which [Handler.Wait] waits for: the reader, for
// as long as the page is there; the writer, the only one that sends data, while there
// is some; and the pinger, now and then, which notices a peer that is gone without
// saying so.
package page

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"jsbridge/manifest"
	"jsbridge/tenant"
)

// Defaults of [Options]; the command line shares them.
const (
	DefaultMaxFrame     = 16 << 20
	DefaultMaxQueue     = 1024
	DefaultPingInterval = 15 * time.Second
	DefaultWriteTimeout = 10 * time.Second

	// Sockets that are told 4404 at one time: anybody may ask for one.
	maxRefusals = 64

	// What a page may send that waits for approval, and one that is refused.
	pendingFrame = 2 << 20
	refusedFrame = 4 << 10

	// Refusals of one socket that are logged one by one.
	maxLogged = 20

	maxNote  = 1 << 10 // bytes of a progress message or logger name
	maxLabel = 256     // bytes of a page's label
)

// Options configures a [Handler]. A zero field means its default.
type Options struct {
	Logger *slog.Logger // default: slog.Default
	// MaxFrame bounds one message of a page, in bytes.
	MaxFrame int64
	// MaxQueue bounds the messages waiting to be sent to one page, and
	// 4 × MaxFrame their bytes. Overflow ends that page's socket.
	MaxQueue int
	// MaxTools bounds one page's tools.
	MaxTools int
	// RefuseCode leaves out tools that were made from an agent's code, such as a
	// page brings back after a reload.
	RefuseCode bool
	// PingInterval is the time between protocol pings; two that are missed
	// close the socket.
	PingInterval time.Duration
	// WriteTimeout bounds the sending of one message.
	WriteTimeout time.Duration
}

// Handler serves the WebSocket endpoint.
type Handler struct {
	registry *tenant.Registry
	opts     Options
	log      *slog.Logger
	refused  atomic.Int64 // frames that were answered with an error, or dropped
	counts   counts
	sockets  sync.WaitGroup
	refusals chan struct{} // one entry for each socket that is being refused

	mu       sync.Mutex
	open     map[*socket]struct{}
	stopping bool // no further socket is counted
	cut      bool // none stays open
}

// New returns a handler that brings pages into the registry.
func New(r *tenant.Registry, opts Options) *Handler {
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	if opts.MaxFrame == 0 {
		opts.MaxFrame = DefaultMaxFrame
	}
	if opts.MaxQueue == 0 {
		opts.MaxQueue = DefaultMaxQueue
	}
	if opts.MaxTools == 0 {
		opts.MaxTools = manifest.DefaultTools
	}
	if opts.PingInterval == 0 {
		opts.PingInterval = DefaultPingInterval
	}
	if opts.WriteTimeout == 0 {
		opts.WriteTimeout = DefaultWriteTimeout
	}
	return &Handler{registry: r, opts: opts, log: opts.Logger, refusals: make(chan struct{}, maxRefusals), open: make(map[*socket]struct{})}
}

// Refused counts the frames that were dropped or answered with an error.
func (h *Handler) Refused() int64 { return h.refused.Load() }

// ServeHTTP accepts a page's socket: GET /ws?tenant=<connect
// string>&v=1&instance=<tab's own random id>. A connect string that names
// nothing is accepted and closed with 4404, since a page can read a close
// reason but not a refused handshake.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !h.enter() {
		h.counts.refuse(stoppingRefusal)
		http.Error(w, tenant.ErrStopping.Error(), http.StatusServiceUnavailable)
		return
	}
	defer h.sockets.Done()
	q := r.URL.Query()
	origin := r.Header.Get("Origin")
	connect := tenant.ParseConnect(q.Get("tenant"))
	known := h.registry.Knows(connect)
	if !known && len(h.refusals) == cap(h.refusals) {
		h.counts.refuse(busyRefusal)
		h.log.Warn("page refused: too many connect strings that name nothing", "origin", clip(origin))
		http.Error(w, "too many connections with a connect string that names nothing", http.StatusServiceUnavailable)
		return
	}
	// A session tenant's id is a capability, so any origin that holds one may
	// join; where a name is enough, the registry holds foreign origins back.
	ws, err := websocket.Accept(lean{w}, r, &websocket.AcceptOptions{InsecureSkipVerify: true, CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		h.counts.refuse(handshakeRefusal)
		h.log.Warn("page refused", "origin", clip(origin), "err", err) // Accept has answered
		return
	}
	ws.SetReadLimit(h.opts.MaxFrame)
	s := newSocket(h, ws, origin, q.Get("v") == "1")
	j := tenant.Joining{Instance: instance(q.Get("instance")), Origin: clip(origin), Probes: s.v1, Remote: isRemote(r.RemoteAddr), Transport: s}
	h.sockets.Add(1)
	// In a goroutine of its own: this one would keep the request, net/http's buffers
	// and a stack that has grown, for as long as the page is there.
	go s.serve(connect, j)
}

// serve brings the page in and reads what it says, until the socket's end.
func (s *socket) serve(connect tenant.Connect, j tenant.Joining) {
	h := s.h
	defer h.sockets.Done()
	h.keep(s)
	defer h.forget(s)
	defer s.wait()
	defer func() { // nothing that a page says may end more than its socket
		if p := recover(); p != nil {
			s.log().Error("panic in a page's message", "origin", clip(s.origin), "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			s.close(closing{websocket.StatusInternalError, "internal error; see jsbridge's log"})
		}
		if s.link != nil {
			s.link.Closed(tenant.Departure{})
		}
	}()
	link, err := h.registry.Join(connect, j)
	if err != nil {
		s.turnAway(refusalOf(err, connect))
		return
	}
	s.link = link
	s.joined()
	s.log().Info("page connected", "origin", clip(s.origin))
	s.greet(connect)
	s.read()
}

// lean gives a socket small buffers: those of net/http have 4 KB each, and most messages
// fit into these; larger ones go past them.
type lean struct{ http.ResponseWriter }

// socketBuffer is the size of a socket's two buffers, in bytes.
const socketBuffer = 1 << 10

// Hijack implements http.Hijacker.
func (l lean) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(l.ResponseWriter).Hijack()
	if err != nil || rw.Reader.Buffered() > 0 { // a peer that spoke before its turn must not lose what it said
		return conn, rw, err
	}
	return conn, bufio.NewReadWriter(bufio.NewReaderSize(conn, socketBuffer), bufio.NewWriterSize(conn, socketBuffer)), nil
}

// isRemote tells a peer on another machine, whose word on its origin proves
// nothing.
func isRemote(addr string) bool {
	peer, err := netip.ParseAddrPort(addr)
	return err != nil || !peer.Addr().Unmap().IsLoopback()
}

func (h *Handler) enter() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopping {
		return false
	}
	h.sockets.Add(1)
	return true
}

// keep notes an open socket, for the end.
func (h *Handler) keep(s *socket) {
	h.mu.Lock()
	h.open[s] = struct{}{}
	cut := h.cut
	h.mu.Unlock()
	if cut {
		_ = s.ws.CloseNow()
	}
}

func (h *Handler) forget(s *socket) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.open, s)
}

// Wait takes no further socket, and returns when none is open any more, or with
// ctx; those that are open then are cut.
func (h *Handler) Wait(ctx context.Context) {
	h.mu.Lock()
	h.stopping = true
	h.mu.Unlock()
	done := make(chan struct{})
	go func() {
		h.sockets.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		h.cutAll()
	}
}

func (h *Handler) cutAll() {
	h.mu.Lock()
	h.cut = true
	open := slices.Collect(maps.Keys(h.open))
	h.mu.Unlock()
	for _, s := range open {
		go func() { _ = s.ws.CloseNow() }() // it waits for what is being read
	}
}

// instance takes a tab's id only in a form that the page script makes.
func instance(s string) string {
	if len(s) < 16 || len(s) > 64 {
		return ""
	}
	for _, c := range s {
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-' || c == '_') {
			return ""
		}
	}
	return s
}

// clip makes foreign header text safe to show and to keep.
func clip(s string) string { return manifest.Clean(s, 256, false) }
