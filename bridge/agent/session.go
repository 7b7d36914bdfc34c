package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"jsbridge/manifest"
	"jsbridge/tenant"
)

// session is what requests are served from: one MCP client's connection or, for
// those that have none, all clients of one workspace.
type session struct {
	h      *Handler
	id     string // no secret, unlike the SDK's; only for people
	since  time.Time
	key    string            // the workspace's name, "" for a tenant of its own
	server *mcp.Server       // a shared session's serves all but subscriptions/listen
	send   mcp.MethodHandler // of notifications, through the SDK's middleware
	shared bool              // by stateless clients
	ctx    context.Context
	cancel context.CancelCauseFunc // ends the session's calls
	teller *teller                 // nil if shared

	opening sync.Mutex // held while the view is made, before all others

	// Set by open, before anybody asks for them.
	ss   *mcp.ServerSession // nil if shared
	view *tenant.View

	subscribing   sync.Mutex      // held through the view's Watch and Unwatch
	subscriptions map[string]bool // of a session's client, by URI

	mu       sync.Mutex
	used     time.Time            // last request's begin or end
	requests int                  // running POSTs
	stream   *stream              // the open standalone stream, if any
	version  string               // of the protocol, settled by initialize; of a shared session the last request's
	client   tenant.Agent         // likewise
	plain    map[string]*plainRun // that the shortcut has begun and whose request is open, by request id

	hearsLogs atomic.Bool // its client has set a level

	introduce sync.Once // sets the two below, once the client has initialized
	can       can
	agent     tenant.Agent

	// Of a shared session.
	listeners map[*listener]struct{}
	parked    map[string]*exchange // calls that wait for their client, by token
}

// newSession makes the server for a client that may be about to initialize. It
// costs no tenant yet: anybody can post garbage.
func (h *Handler) newSession(key string) *session {
	s := &session{h: h, id: h.nextID(), since: time.Now(), key: key, used: time.Now()}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	s.server = s.newServer(s.middleware)
	s.server.AddSendingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		s.send = next
		return next
	})
	s.teller = s.newTeller(s.ctx, s.sendChange, s.sendUpdate)
	return s
}

// log is for lines about this session.
func (s *session) log() *slog.Logger { return s.h.log.With("session", s.id) }

// logOf is for lines about an error, which may be one of a call of a page.
func (s *session) logOf(err error) *slog.Logger {
	var ce *tenant.CallError
	if !errors.As(err, &ce) {
		return s.log()
	}
	return s.logCall(ce.Page, ce.ID)
}

// logCall is for lines about a call of a page; id is "" for one that was not sent.
func (s *session) logCall(page, id string) *slog.Logger {
	log := s.log().With("connection", page)
	if id == "" {
		return log
	}
	return log.With("call", id)
}

// open gives the session its tenant and enters it. Called for initialize.
func (s *session) open(ss *mcp.ServerSession) error {
	h := s.h
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return tenant.ErrStopping
	}
	if err := h.roomLocked(); err != nil {
		h.mu.Unlock()
		return err
	}
	h.opening++
	h.mu.Unlock()

	view, err := s.newView(s.changed)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.opening--
	if err == nil && h.closed {
		err = tenant.ErrStopping
		view.Close()
	}
	if err != nil {
		return err
	}
	view.Updates(s.teller.updated)
	s.ss, s.view = ss, view
	s.teller.begin(view)
	h.sessions[ss.ID()] = s
	h.ended.Add(1)
	go s.awaitEnd()
	return nil
}

// roomLocked tells whether a further session may be. h.mu must be held.
func (h *Handler) roomLocked() error {
	if len(h.sessions)+len(h.shared)+h.opening >= h.opts.MaxSessions {
		return &tenant.LimitError{What: "MCP sessions", Max: h.opts.MaxSessions, Flag: "--max-sessions"}
	}
	return nil
}

// newView gives the session its tenant: its own, or the workspace's. A workspace
// may end just now, when its last page leaves; then it is made anew.
func (s *session) newView(changed func()) (*tenant.View, error) {
	if s.key == "" {
		t, err := s.h.registry.Open()
		if err != nil {
			return nil, err
		}
		return t.NewView(changed), nil
	}
	id, err := s.h.opts.Workspace(s.key)
	if id == "" {
		return nil, err
	}
	if err != nil {
		s.log().Warn("a workspace will be forgotten when this server ends", "err", err)
	}
	for {
		t, err := s.h.registry.OpenWorkspace(id)
		if err != nil {
			return nil, err
		}
		v := t.NewView(changed)
		if !t.Ended() {
			return v, nil
		}
		v.Close()
	}
}

// awaitEnd frees what the session holds once the SDK has ended it, for
// whichever reason.
func (s *session) awaitEnd() {
	defer s.h.ended.Done()
	_ = s.ss.Wait()
	s.cancel(errors.New("the session has ended"))
	s.view.Close()
	s.teller.end()
	s.cutStream()
	s.h.mu.Lock()
	delete(s.h.sessions, s.ss.ID())
	s.h.mu.Unlock()
	s.log().Info("session ended", "client", nameOf(agentOf(s.ss.InitializeParams())))
}

// close ends the session. The SDK waits for running calls, so they are
// cancelled first.
func (s *session) close(why string) {
	s.cancel(errors.New(why))
	s.cutStream()
	_ = s.ss.Close()
}

// cutStream ends the standalone stream, if there is one.
func (s *session) cutStream() {
	s.mu.Lock()
	st := s.stream
	s.mu.Unlock()
	if st != nil {
		st.cut()
	}
}

// protocol is the version that initialize settled, "" before.
func (s *session) protocol() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// nameVersion adds the session's version to a request without one, which the SDK takes
// for 2025-03-26.
func (s *session) nameVersion(r *http.Request) {
	if v := s.protocol(); v != "" && r.Header.Get(versionHeader) == "" {
		r.Header.Set(versionHeader, v)
	}
}

// agentOf is the client's own name, made safe to show.
func agentOf(p *mcp.InitializeParams) tenant.Agent {
	if p == nil {
		return tenant.Agent{}
	}
	return agentFrom(p.ClientInfo, can{})
}

func agentFrom(client *mcp.Implementation, c can) tenant.Agent {
	a := tenant.Agent{Capabilities: c.json()}
	if client != nil {
		a.Name, a.Version = manifest.Clean(client.Name, 64, false), manifest.Clean(client.Version, 32, false)
	}
	return a
}

func nameOf(a tenant.Agent) string {
	if a.Name == "" {
		return "unknown"
	}
	return fmt.Sprintf("%s %s", a.Name, a.Version)
}

// idleFor is how long nobody has used the session.
func (s *session) idleFor() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.requests > 0 || s.stream != nil || len(s.parked) > 0 {
		return 0
	}
	return time.Since(s.used)
}

// begin and end bracket a POST.
func (s *session) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	s.used = time.Now()
}

func (s *session) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests--
	s.used = time.Now()
}

// attach makes st the session's standalone stream; one that was open is ended
// and returned, to be waited for.
func (s *session) attach(st *stream) (old *stream) {
	s.mu.Lock()
	old, s.stream = s.stream, st
	s.used = time.Now()
	s.mu.Unlock()
	s.teller.open(true)
	return old
}

func (s *session) detach(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used = time.Now()
	if s.stream == st {
		s.stream = nil
		s.teller.open(false)
	}
}

// refusal makes a protocol error of what open says.
func refusal(err error) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
}
