package agent

//lint:file-ignore SA1019 MCP logging works in all versions before 2026-07-28, which clients will speak for long.

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"jsbridge/manifest"
	"jsbridge/tenant"
)

// A change of the tool list is told after listQuiet without another one, or
// after listPatience under a stream of them.
const (
	listQuiet    = 20 * time.Millisecond
	listPatience = 250 * time.Millisecond
)

// tellTimeout bounds the sending of one notification to a stalled client.
const tellTimeout = 10 * time.Second

// internalTool is the one tool the SDK knows of: what every call is turned into.
const internalTool = "_"

// session is one MCP client's connection.
type session struct {
	h      *Handler
	key    string // the workspace's name, "" for a tenant of its own
	server *mcp.Server
	send   mcp.MethodHandler // of notifications, through the SDK's middleware
	ctx    context.Context   // ends with the session: its calls stop
	cancel context.CancelCauseFunc

	// Set by open, before the client learns of the session.
	ss   *mcp.ServerSession
	view *tenant.View

	mu       sync.Mutex
	used     time.Time // last request's begin or end
	requests int       // running POSTs
	stream   *stream   // the open standalone stream, if any
	known    *tenant.Snapshot
	timer    *time.Timer // pending notification
	first    time.Time   // of the changes it will tell
	telling  bool        // one is being sent
	missed   bool        // what changed since then
}

// newSession makes the server for a client that may be about to initialize. It
// costs no tenant yet: anybody can post garbage.
func (h *Handler) newSession(key string) *session {
	s := &session{h: h, key: key, used: time.Now()}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	s.server = mcp.NewServer(h.implementation(), &mcp.ServerOptions{
		Instructions: instructions,
		Capabilities: &mcp.ServerCapabilities{
			Tools:   &mcp.ToolCapabilities{ListChanged: true},
			Logging: &mcp.LoggingCapabilities{},
		},
		SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.CacheScope = "private" },
	})
	s.server.AddTool(&mcp.Tool{Name: internalTool, InputSchema: emptyObject}, s.callTool)
	s.server.AddReceivingMiddleware(s.middleware)
	s.server.AddSendingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		s.send = next
		return next
	})
	return s
}

// open gives the session its tenant and enters it. Called for initialize.
func (s *session) open(ss *mcp.ServerSession) error {
	h := s.h
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return tenant.ErrStopping
	}
	if len(h.sessions)+h.opening >= h.opts.MaxSessions {
		h.mu.Unlock()
		return &tenant.LimitError{What: "MCP sessions", Max: h.opts.MaxSessions, Flag: "--max-sessions"}
	}
	h.opening++
	h.mu.Unlock()

	view, err := s.newView()
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
	s.mu.Lock() // a change of the roots may come before this is done
	s.ss, s.view = ss, view
	s.known = s.view.Snapshot()
	s.mu.Unlock()
	h.sessions[ss.ID()] = s
	h.ended.Add(1)
	go s.awaitEnd()
	return nil
}

// newView gives the session its tenant: its own, or the workspace's. A workspace
// may end just now, when its last page leaves; then it is made anew.
func (s *session) newView() (*tenant.View, error) {
	if s.key == "" {
		t, err := s.h.registry.Open()
		if err != nil {
			return nil, err
		}
		return t.NewView(s.changed), nil
	}
	id, err := s.h.opts.Workspace(s.key)
	if id == "" {
		return nil, err
	}
	if err != nil {
		s.h.log.Warn("a workspace will be forgotten when this server ends", "err", err)
	}
	for {
		t, err := s.h.registry.OpenWorkspace(id)
		if err != nil {
			return nil, err
		}
		v := t.NewView(s.changed)
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
	s.mu.Lock()
	if s.timer != nil {
		s.timer.Stop()
	}
	st := s.stream
	s.mu.Unlock()
	if st != nil {
		st.end()
	}
	s.h.mu.Lock()
	delete(s.h.sessions, s.ss.ID())
	s.h.mu.Unlock()
	s.h.log.Info("session ended", "client", s.clientName())
}

// close ends the session. The SDK waits for running calls, so they are
// cancelled first.
func (s *session) close(why string) {
	s.cancel(errors.New(why))
	_ = s.ss.Close()
}

func (s *session) clientName() string {
	a := s.agent()
	if a.Name == "" {
		return "unknown"
	}
	return fmt.Sprintf("%s %s", a.Name, a.Version)
}

// agent is the client's own name, made safe to show.
func (s *session) agent() tenant.Agent {
	p := s.ss.InitializeParams()
	if p == nil || p.ClientInfo == nil {
		return tenant.Agent{}
	}
	return tenant.Agent{Name: manifest.Clean(p.ClientInfo.Name, 64, false), Version: manifest.Clean(p.ClientInfo.Version, 32, false)}
}

// idleFor is how long nobody has used the session.
func (s *session) idleFor() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.requests > 0 || s.stream != nil {
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

// changed is told of each change of the view.
func (s *session) changed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.timer == nil {
		s.first = now
		s.timer = time.AfterFunc(listQuiet, s.tellChange)
		return
	}
	s.timer.Reset(max(0, min(listQuiet, listPatience-now.Sub(s.first))))
}

// tellChange tells the client, if what it knows is out of date. Without an open
// stream there is no way to; opening one tells it then.
//
// The SDK's own way, to add a tool, decodes that tool's schema each time, which
// is most of what a change would cost a thousand sessions.
func (s *session) tellChange() {
	s.mu.Lock()
	s.timer = nil
	view := s.view
	s.mu.Unlock()
	if view == nil { // it is being made; its first look comes after
		return
	}
	now := view.Snapshot()
	s.mu.Lock()
	s.missed = s.missed || s.telling
	tell := !s.telling && s.ctx.Err() == nil && s.stream != nil && (s.known == nil || !now.Same(s.known))
	if tell {
		s.known, s.telling = now, true
	}
	s.mu.Unlock()
	if !tell {
		return
	}
	ctx, cancel := context.WithTimeout(s.ctx, tellTimeout)
	_, err := s.send(ctx, "notifications/tools/list_changed", &mcp.ServerRequest[*mcp.ToolListChangedParams]{Session: s.ss, Params: &mcp.ToolListChangedParams{}})
	cancel()

	s.mu.Lock()
	again := s.missed
	s.telling, s.missed = false, false
	if err != nil { // the stream broke, or another is taking over
		s.known = nil
		again = s.stream != nil
	}
	s.mu.Unlock()
	if again {
		s.changed()
	}
}

// listed notes what the client has just read.
func (s *session) listed(snap *tenant.Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = snap
}

// attach makes st the session's standalone stream; one that was open is ended
// and returned, to be waited for.
func (s *session) attach(st *stream) (old *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, s.stream = s.stream, st
	s.used = time.Now()
	return old
}

func (s *session) detach(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used = time.Now()
	if s.stream == st {
		s.stream = nil
	}
}

// refusal makes a protocol error of what open says.
func refusal(err error) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
}
