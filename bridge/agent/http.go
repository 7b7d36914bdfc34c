package agent

import (
	"context"
	"encoding/json"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const sessionHeader = "Mcp-Session-Id"

// baseHeader carries the address that the client used from the HTTP request to
// the built-in tools; a value sent by a client is overwritten.
const baseHeader = "X-Jsbridge-Base"

// postHeader leads a call to the HTTP response that waits for it, likewise.
const postHeader = "X-Jsbridge-Post"

// jsonHeader marks a call whose client takes nothing but its answer, likewise.
const jsonHeader = "X-Jsbridge-Json"

// ServeHTTP serves the MCP endpoint, in both protocol eras: a request whose
// MCP-Protocol-Version is 2026-07-28 or later stands alone, unless it names a
// session that lives here, which is that client's mistake. Host and Origin have been
// checked. The path value "key" names a workspace.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.Contains(r.PathValue("key"), ":") { // as in the keys that stand for bearer tokens
		h.counts.refuse(noSuchWorkspace)
		writeError(w, http.StatusNotFound, jsonrpc.CodeInvalidRequest, "there is no such workspace: its name is 1 to 64 letters, digits, - and _")
		return
	}
	r.Header.Del(callHeader)
	s := h.sessionOf(r)
	here := s != nil && s.key == r.PathValue("key")
	if here && r.Method == http.MethodPost && h.shortcut(w, r, s) {
		return
	}
	answer := h.guarded(w, r)
	if s == nil && isStateless(r) {
		h.serveStateless(answer, r)
		return
	}
	h.serve(answer, r, s, here)
}

// sessionOf finds the session that a request names.
func (h *Handler) sessionOf(r *http.Request) *session {
	id := r.Header.Get(sessionHeader)
	if id == "" {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sessions[id]
}

// guarded makes a request ready for the SDK, and its answer.
func (h *Handler) guarded(w http.ResponseWriter, r *http.Request) *refuser {
	r.Header.Set(baseHeader, "http://"+r.Host)
	sent := &sentBody{ReadCloser: r.Body}
	r.Body = sent
	return &refuser{ResponseWriter: w, sent: sent, counts: &h.counts}
}

func (h *Handler) serve(w *refuser, r *http.Request, s *session, here bool) {
	if r.Header.Get(sessionHeader) != "" {
		if !here {
			// At once, and 404: that is what makes clients initialize again
			// (MCP 2025-11-25, transports, session management).
			h.counts.refuse(noSuchSession)
			writeError(w, http.StatusNotFound, jsonrpc.CodeInvalidRequest, "this session is not known here (jsbridge was restarted, or the session was idle too long); initialize a new one")
			return
		}
	}
	// The SDK takes what is no date for a version to come.
	if v := r.Header.Get(versionHeader); v != "" && !slices.Contains(mcp.SupportedProtocolVersions(), v) {
		h.counts.refuse(unknownVersion)
		h.refuseVersion(w, r, v)
		return
	}
	switch r.Method {
	case http.MethodGet:
		h.serveStream(w, r, s)
	case http.MethodDelete:
		if s != nil {
			// The SDK would wait for the calls that run.
			s.cancel(context.Canceled)
			s.cutStream()
		}
		h.classic.ServeHTTP(w, r)
	case http.MethodPost:
		h.servePost(w, r, s)
	default:
		h.classic.ServeHTTP(w, r)
	}
}

func (h *Handler) servePost(w *refuser, r *http.Request, s *session) {
	h.count(1)
	defer h.count(-1)
	if s != nil {
		s.begin()
		defer s.end()
		s.nameVersion(r)
	} else {
		if contentType(r) == "application/json" && !h.opens(w, r) {
			return
		}
		key := r.PathValue("key") // what the function holds on to lives as long as the session
		var once sync.Once
		var created *session
		r = r.WithContext(context.WithValue(r.Context(), serverKey{}, func() *mcp.Server {
			once.Do(func() { created = h.newSession(key) })
			return created.server
		}))
	}
	h.post(h.classic, w, r)
}

// post has the SDK answer, on a stream if the client takes one.
func (h *Handler) post(sdk http.Handler, w *refuser, r *http.Request) {
	r.Header.Del(jsonHeader)
	r.Header.Del(postHeader)
	if acceptAll(r) {
		if r.Header.Get(methodHeader) == methodListen {
			h.counts.refuse(notAcceptable)
			writeError(w, http.StatusNotAcceptable, jsonrpc.CodeInvalidRequest, methodListen+" is answered with a stream: accept text/event-stream")
			return
		}
		r.Header.Set(jsonHeader, "true")
		jw := &jsonWriter{ResponseWriter: w, sent: w.sent}
		defer jw.finish()
		sdk.ServeHTTP(jw, r)
		return
	}
	st := newStream(w, r, h.opts.KeepAlive)
	defer st.end()
	key := strconv.FormatUint(h.postKeys.Add(1), 10)
	r.Header.Set(postHeader, key)
	h.posts.Store(key, st)
	defer h.posts.Delete(key)
	sdk.ServeHTTP(st, st.request)
}

// serveStream serves the standalone stream. A client that opens it again has
// lost the old one, whatever the old one's TCP connection believes.
func (h *Handler) serveStream(w http.ResponseWriter, r *http.Request, s *session) {
	if s == nil {
		h.counts.refuse(sessionMissing)
		writeError(w, http.StatusBadRequest, jsonrpc.CodeInvalidRequest, "GET opens the stream of a session: send its Mcp-Session-Id (this is the MCP endpoint, to be used by an MCP client)")
		return
	}
	acceptAll(r)
	// Streams have no event store: after a reconnect the list is compared
	// instead of replayed.
	r.Header.Del("Last-Event-ID")
	out, ok := h.takeOver(w, r)
	if !ok {
		h.stream(newStream(w, r, h.opts.KeepAlive), s)
		return
	}
	st := newStream(&refuser{ResponseWriter: out, sent: new(sentBody), counts: &h.counts}, streamRequest(r), h.opts.KeepAlive)
	h.streams.Go(func() {
		defer st.cancel()
		out.watch()
	})
	go func() {
		defer h.streams.Done()
		defer out.close()
		_ = s.safely("a stream", func() error { // it is not net/http any more that catches a panic
			h.stream(st, s)
			return nil
		})
	}()
}

// stream has the SDK serve the standalone stream, until its end.
func (h *Handler) stream(st *stream, s *session) {
	h.counts.streams.Add(1)
	defer h.counts.streams.Add(-1)
	st.opened = s.teller.changed
	defer close(st.gone)
	if old := s.attach(st); old != nil {
		old.cut()
		select {
		case <-old.gone:
		case <-st.request.Context().Done():
		}
	}
	defer s.detach(st)
	defer st.end()
	h.classic.ServeHTTP(st, st.request)
}

// acceptAll widens Accept to what the SDK insists on, for clients that leave it
// out or name just one type. It tells whether the client takes JSON only.
func acceptAll(r *http.Request) (jsonOnly bool) {
	takesJSON, takesStream := accepted(r)
	if !takesJSON && !takesStream {
		r.Header.Set("Accept", "none/none") // the SDK refuses, but overlooks q
		return false
	}
	r.Header.Set("Accept", "application/json, text/event-stream")
	return !takesStream
}

// accepted tells what the client takes.
func accepted(r *http.Request) (takesJSON, takesStream bool) {
	accept := strings.Join(r.Header.Values("Accept"), ",")
	switch accept {
	case "", "application/json, text/event-stream": // as MCP has it
		return true, true
	}
	for part := range strings.SplitSeq(accept, ",") {
		kind, params, err := mime.ParseMediaType(part)
		if q, bad := strconv.ParseFloat(params["q"], 64); err != nil || bad == nil && q == 0 {
			continue // q=0 names what is not taken
		}
		takesJSON = takesJSON || kind == "application/json" || kind == "application/*" || kind == "*/*"
		takesStream = takesStream || kind == "text/event-stream" || kind == "text/*" || kind == "*/*"
	}
	return takesJSON, takesStream
}

func contentType(r *http.Request) string {
	t, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")) // "" for none or a wrong one
	return t
}

// writeError answers with a JSON-RPC error that belongs to no request.
func writeError(w http.ResponseWriter, status int, code int64, message string) {
	writeErrorTo(w, status, json.RawMessage("null"), code, message)
}

// writeErrorTo answers the request with this id.
func writeErrorTo(w http.ResponseWriter, status int, id json.RawMessage, code int64, message string) {
	writeRPCError(w, status, id, &jsonrpc.Error{Code: code, Message: message})
}

func writeRPCError(w http.ResponseWriter, status int, id json.RawMessage, e *jsonrpc.Error) {
	writeJSON(w, status, rpcError(id, e))
}

// rpcError is the answer to the request with this id.
func rpcError(id json.RawMessage, e *jsonrpc.Error) any {
	return map[string]any{"jsonrpc": "2.0", "id": id, "error": e}
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	body, _ := json.Marshal(v) // ids that were parsed, texts and numbers only
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}
