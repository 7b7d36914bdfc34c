// Package agent is the MCP side of the bridge. It is the only importer of the
// MCP SDK.
//
//	HTTP ─▶ Handler ─▶ SDK's streamable handler ─▶ middleware ─▶ built-ins
//	        sessions,   framing, versions,          list, call     └▶ tenant.Page.Call
//	        streams     initialize
//
// Every session has an [mcp.Server] of its own, so that no stalled client
// delays another's notifications. That server holds one internal tool, prompt and
// resource. The middleware answers the lists from the snapshot of the session's
// view and turns each call into one of the internal tool, which keeps all that the
// SDK does around a call. Nothing a page says reaches Server.AddTool and its like,
// which panic on what they dislike.
//
// There are two protocol eras behind one address, see [Handler.ServeHTTP]. Up to
// 2025-11-25 a client has a session. From 2026-07-28 on requests stand alone: those
// of one workspace share a session here (its server is connected anew by the SDK
// for each), and a subscriptions/listen has a server of its own, as a [listener].
//
// Goroutines: one per session of a client, which waits for its end; one reaper; both
// are waited for by [Handler.Close]. One per call of a page that may outlive its
// request, and one per open question, end with their session's context; timers keep
// open streams alive.
package agent

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"jsbridge/tenant"
)

// Defaults of [Options]; the command line shares them.
const (
	DefaultSessionIdle = 30 * time.Minute
	DefaultKeepAlive   = 15 * time.Second
	DefaultMaxSessions = 10_000
	DefaultMaxResult   = 10 << 20
	DefaultMaxBody     = 16 << 20
	DefaultAskTimeout  = 5 * time.Minute

	// A call that is watched reports at least this often.
	progressEvery = 10 * time.Second
)

// Options configures a [Handler]. A zero field means its default, unless said
// otherwise.
type Options struct {
	Logger *slog.Logger // default: slog.Default
	// Version is what the server says of itself.
	Version string
	// SessionIdle ends a session without a request or an open stream.
	SessionIdle time.Duration
	// KeepAlive is the time between comments on a silent stream.
	KeepAlive time.Duration
	// MaxSessions counts open sessions.
	MaxSessions int
	// MaxResult bounds what one call gives to the client, in bytes of text and
	// encoded data; longer text is cut with a note of its size.
	MaxResult int
	// MaxBody bounds a request's body, in bytes.
	MaxBody int64
	// AskTimeout bounds the wait for the client's answer to a page's question,
	// which a human may have to give.
	AskTimeout time.Duration
	// NoShortcut has the SDK answer every request, for comparison.
	NoShortcut bool
	// Workspace gives the id of a named workspace's tenant; an error beside an id
	// is a warning. Nil: there are no workspaces.
	Workspace func(key string) (id string, err error)
	// HidePageTools leaves pages' tools out of tools/list, for clients that take
	// few tools: agents find them by describe_tools and call them by
	// call_page_tool.
	HidePageTools bool
	// Inline is the page script as one expression that takes the server's
	// address and a connect string; "" for none.
	Inline string
}

// Handler serves MCP over Streamable HTTP. Use [New], and [Handler.Close] when
// done.
type Handler struct {
	registry *tenant.Registry
	opts     Options
	log      *slog.Logger
	classic  *mcp.StreamableHTTPHandler // with sessions, up to 2025-11-25
	modern   *mcp.StreamableHTTPHandler // stateless, from 2026-07-28 on
	idle     *mcp.Server                // never connected: tells the SDK which versions there are

	builtins     builtins    // by name
	builtinTools []*mcp.Tool // in the order of the list

	posts    sync.Map // postHeader's value → *stream, while the POST runs
	postKeys atomic.Uint64
	ids      atomic.Uint64 // of sessions, for people
	counts   counts

	progressEvery time.Duration // fixed but for tests

	stop   chan struct{}
	reaper sync.WaitGroup

	mu       sync.Mutex
	sessions map[string]*session // by session id, from initialize to the session's end
	shared   map[string]*session // stateless clients' by workspace, from their first request on
	answers  int                 // POSTs under way
	quiet    chan struct{}       // made by Settle, closed when answers is 0
	opening  int                 // sessions between the limit's check and their entry
	closed   bool
	ended    sync.WaitGroup // one count per session
	streams  sync.WaitGroup // of goroutines that serve streams
}

// New returns a handler whose sessions have their tenants in r.
func New(r *tenant.Registry, opts Options) *Handler {
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	if opts.SessionIdle == 0 {
		opts.SessionIdle = DefaultSessionIdle
	}
	if opts.KeepAlive == 0 {
		opts.KeepAlive = DefaultKeepAlive
	}
	if opts.MaxSessions == 0 {
		opts.MaxSessions = DefaultMaxSessions
	}
	if opts.MaxResult == 0 {
		opts.MaxResult = DefaultMaxResult
	}
	if opts.MaxBody == 0 {
		opts.MaxBody = DefaultMaxBody
	}
	if opts.AskTimeout == 0 {
		opts.AskTimeout = DefaultAskTimeout
	}
	if opts.Workspace == nil {
		opts.Workspace = func(string) (string, error) { return "", errors.New("there are no workspaces here") }
	}
	h := &Handler{registry: r, opts: opts, log: opts.Logger, progressEvery: progressEvery, stop: make(chan struct{}), sessions: make(map[string]*session), shared: make(map[string]*session)}
	h.builtins = builtinNames()
	h.builtinTools = h.builtins.list()
	h.idle = mcp.NewServer(h.implementation(), nil)
	h.classic = mcp.NewStreamableHTTPHandler(h.serverFor, &mcp.StreamableHTTPOptions{
		MaxRequestBodyBytes: opts.MaxBody,
		// The guard in front has checked Host, with the names that
		// --allow-host adds; the SDK's own check knows none of those.
		DisableLocalhostProtection: true,
	})
	h.modern = mcp.NewStreamableHTTPHandler(h.serverFor, &mcp.StreamableHTTPOptions{
		Stateless:                    true,
		PropagateRequestCancellation: true,
		MaxRequestBodyBytes:          opts.MaxBody,
		DisableLocalhostProtection:   true,
	})
	h.reaper.Add(1)
	go h.reap()
	return h
}

func (h *Handler) implementation() *mcp.Implementation {
	return &mcp.Implementation{Name: "jsbridge", Title: "jsbridge", Version: h.opts.Version}
}

// serverKey carries the request's server from ServeHTTP to serverFor, which the
// SDK calls twice for each request that opens a session.
type serverKey struct{}

func (h *Handler) serverFor(r *http.Request) *mcp.Server {
	if server, ok := r.Context().Value(serverKey{}).(func() *mcp.Server); ok {
		return server()
	}
	return h.idle
}

// Sessions is the number of open sessions; the stateless clients of a workspace
// count as one.
func (h *Handler) Sessions() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.sessions) + len(h.shared)
}

// IsBuiltin tells whether a name is that of a tool of jsbridge's own.
func IsBuiltin(name string) bool {
	_, ok := builtinNames()[name]
	return ok
}

var builtinNames = sync.OnceValue(makeBuiltins)

// Settle returns when no POST is under way, or with ctx. It is for the end: once
// the pages have failed their calls, their callers still want to hear of it.
func (h *Handler) Settle(ctx context.Context) {
	h.mu.Lock()
	if h.answers == 0 {
		h.mu.Unlock()
		return
	}
	if h.quiet == nil {
		h.quiet = make(chan struct{})
	}
	quiet := h.quiet
	h.mu.Unlock()
	select {
	case <-quiet:
	case <-ctx.Done():
	}
}

func (h *Handler) count(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answers += n
	if h.answers == 0 && h.quiet != nil {
		close(h.quiet)
		h.quiet = nil
	}
}

// Close ends every session and waits for their goroutines.
func (h *Handler) Close() {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return
	}
	h.closed = true
	all := make([]*session, 0, len(h.sessions))
	for _, s := range h.sessions {
		all = append(all, s)
	}
	shared := slices.Collect(maps.Values(h.shared))
	clear(h.shared)
	h.mu.Unlock()
	close(h.stop)
	for _, s := range all {
		go s.close("jsbridge is stopping")
	}
	for _, s := range shared {
		s.finish("jsbridge is stopping")
	}
	h.ended.Wait()
	h.streams.Wait()
	h.reaper.Wait()
}

// reap ends sessions whose client is gone: most clients never say good-bye.
func (h *Handler) reap() {
	defer h.reaper.Done()
	tick := time.NewTicker(min(h.opts.SessionIdle/4+time.Millisecond, time.Minute))
	defer tick.Stop()
	for {
		select {
		case <-h.stop:
			return
		case <-tick.C:
		}
		h.mu.Lock()
		var idle []*session
		for _, s := range h.sessions {
			if s.idleFor() > h.opts.SessionIdle {
				idle = append(idle, s)
			}
		}
		var unused []*session
		for key, s := range h.shared {
			if s.idleFor() > h.opts.SessionIdle {
				unused = append(unused, s)
				delete(h.shared, key)
			}
		}
		h.mu.Unlock()
		for _, s := range unused {
			s.finish("idle")
		}
		for _, s := range idle {
			s.log().Info("session ended: no request and no open stream", "client", nameOf(agentOf(s.ss.InitializeParams())), "idle", h.opts.SessionIdle.String())
			// It has no call running, so this does not wait for a page.
			s.close("idle")
		}
	}
}
