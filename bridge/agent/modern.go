package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"jsbridge/tenant"
)

// firstStateless is the first protocol version without sessions.
const firstStateless = "2026-07-28"

const (
	versionHeader = "Mcp-Protocol-Version"
	methodHeader  = "Mcp-Method"
)

// defaultWorkspace is that of stateless clients which name none.
const defaultWorkspace = "default"

// isStateless tells the eras apart. What does not look like a date is an old
// client's mistake.
func isStateless(r *http.Request) bool {
	v := r.Header.Get(versionHeader)
	if _, err := time.Parse(time.DateOnly, v); err != nil {
		return false
	}
	return v >= firstStateless
}

// workspaceOf is the workspace of a stateless client: that of its URL, else one
// that only those have who know its bearer token.
func workspaceOf(r *http.Request) string {
	if key := r.PathValue("key"); key != "" {
		return key
	}
	// The scheme has no case (RFC 9110, 11.1).
	if scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " "); strings.EqualFold(scheme, "Bearer") && token != "" {
		sum := sha256.Sum256([]byte(token))
		return "bearer:" + hex.EncodeToString(sum[:])
	}
	return defaultWorkspace
}

// serveStateless serves a client of the protocol without sessions.
func (h *Handler) serveStateless(w *refuser, r *http.Request) {
	if r.Method != http.MethodPost {
		h.modern.ServeHTTP(w, r)
		return
	}
	s, err := h.sharedSession(workspaceOf(r))
	if err != nil {
		h.counts.refuse(tooManySessions)
		h.log.Warn("MCP request refused", "err", err)
		writeError(w, http.StatusServiceUnavailable, jsonrpc.CodeInternalError, err.Error())
		return
	}
	defer s.end()
	s.met(tenant.Agent{}, r.Header.Get(versionHeader))
	server := s.server
	if r.Header.Get(methodHeader) == methodListen {
		server = s.newListener().server
	} else {
		h.count(1)
		defer h.count(-1)
	}
	r = r.WithContext(context.WithValue(r.Context(), serverKey{}, func() *mcp.Server { return server }))
	h.post(h.modern, w, r)
}

// sharedSession gives the session of a workspace, made if need be, and begins a
// request on it.
func (h *Handler) sharedSession(key string) (*session, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.shared[key]
	if s == nil {
		if h.closed {
			return nil, tenant.ErrStopping
		}
		if err := h.roomLocked(); err != nil {
			return nil, err
		}
		s = h.newShared(key)
		h.shared[key] = s
	}
	s.begin()
	return s, nil
}

func (h *Handler) newShared(key string) *session {
	s := &session{h: h, id: h.nextID(), since: time.Now(), key: key, shared: true, listeners: make(map[*listener]struct{}), parked: make(map[string]*exchange)}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	s.server = s.newServer(s.middleware)
	return s
}

// ensureOpen gives a shared session its view, once somebody asks for what takes
// one.
func (s *session) ensureOpen() error {
	s.opening.Lock()
	defer s.opening.Unlock()
	if s.view != nil {
		return nil
	}
	if err := s.ctx.Err(); err != nil {
		return context.Cause(s.ctx)
	}
	view, err := s.newView(s.changed)
	if err != nil {
		return err
	}
	view.Updates(func(uris []string) { s.eachListener(func(t *teller) { t.updated(uris) }) })
	s.view = view
	s.log().Info("workspace opened by a stateless client")
	return nil
}

// finish ends a shared session.
func (s *session) finish(why string) {
	s.cancel(errors.New(why))
	s.opening.Lock()
	defer s.opening.Unlock()
	if s.view != nil {
		s.view.Close()
	}
}

// changed is told of each change of the view.
func (s *session) changed() {
	if s.teller != nil {
		s.teller.changed()
		return
	}
	s.eachListener((*teller).changed)
}

func (s *session) eachListener(do func(*teller)) {
	s.mu.Lock()
	tellers := make([]*teller, 0, len(s.listeners))
	for l := range s.listeners {
		tellers = append(tellers, l.teller)
	}
	s.mu.Unlock()
	for _, t := range tellers {
		do(t)
	}
}

const methodListen = "subscriptions/listen"

// listener is one subscriptions/listen of a stateless client. It has a server of
// its own, so that no stalled client delays another's notifications.
type listener struct {
	s      *session
	server *mcp.Server
	teller *teller
}

func (s *session) newListener() *listener {
	l := &listener{s: s}
	l.server = s.newServer(l.middleware)
	return l
}

func (l *listener) middleware(next mcp.MethodHandler) mcp.MethodHandler {
	plain := l.s.middleware(next)
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if method != methodListen {
			return plain(ctx, method, req)
		}
		if err := l.s.ensureOpen(); err != nil {
			return nil, refusal(err)
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(l.s.ctx, cancel)()
		l.teller = l.s.newTeller(ctx, l.change, l.update)
		l.s.h.counts.listeners.Add(1)
		defer l.s.h.counts.listeners.Add(-1)
		l.teller.open(true)
		defer l.teller.end()
		l.s.mu.Lock()
		l.s.listeners[l] = struct{}{} // first, so that no change falls in between
		l.s.mu.Unlock()
		l.teller.begin(l.s.view)
		defer func() {
			l.s.mu.Lock()
			defer l.s.mu.Unlock()
			delete(l.s.listeners, l)
		}()
		return plain(ctx, method, req)
	}
}

// change tells the client that a list has changed. Only the SDK knows what the
// client wants to hear of and under which id, and it tells when something is
// added.
func (l *listener) change(_ context.Context, list tenant.List) error {
	switch list {
	case tenant.Tools:
		l.s.addTool(l.server)
	case tenant.Prompts:
		l.s.addPrompt(l.server)
	case tenant.Resources:
		l.s.addResource(l.server)
	}
	return nil
}

func (l *listener) update(ctx context.Context, uri string) error {
	return l.server.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: uri})
}
