package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/segmentio/encoding/json"
)

// The shortcut answers one kind of request without the SDK, whose way costs more
// than the rest of a call: a plain tools/call for a page's tool, in a session. As
// soon as anything but its result is to be sent (progress, logs, a question, a sign
// of life) the request is the SDK's after all, which joins the call that runs.
// So is, untouched, whatever is not as usual.

// callHeader leads a request from the shortcut to the call that it has begun; a
// value sent by a client is removed.
const callHeader = "X-Jsbridge-Call"

// plainRun is a call that the shortcut makes.
type plainRun struct {
	pageCall
	*running
	key    string // its request's id
	begun  time.Time
	toSDK  func()        // has the SDK answer the request
	served chan struct{} // closed once it has; set by leave

	deciding sync.Mutex
	decided  bool
	isLeft   bool // to the SDK

	// Guarded by session.mu.
	joined bool // by the SDK's request
	over   bool // the SDK has returned from it
}

// shortcut answers a POST of a session, or tells that it is the SDK's.
func (h *Handler) shortcut(w http.ResponseWriter, r *http.Request, s *session) (answered bool) {
	if h.opts.NoShortcut || !s.isUsual(r) {
		return false
	}
	p, ok := h.readPlain(r)
	if !ok {
		return false
	}
	req := s.plainRequest(r, p)
	c, refused := s.prepare(req, p.name, p.args)
	if refused != nil {
		return false // in the SDK's order of checks
	}
	h.count(1)
	defer h.count(-1)
	s.begin()
	defer s.end()
	call, err := s.enter(p, req, c)
	switch {
	case err != nil:
		return false
	case call == nil:
		writeErrorTo(w, http.StatusBadRequest, p.id, jsonrpc.CodeInvalidRequest, fmt.Sprintf("duplicate in-flight request ID %.80s", p.id))
		return true
	}
	call.toSDK = func() {
		defer close(call.served)
		_ = s.safely("a call", func() error {
			answer := h.guarded(w, r)
			r.Header.Set(callHeader, call.key)
			s.nameVersion(r)
			h.post(h.classic, answer, r)
			return nil
		})
		s.left(call, r.Context())
	}
	call.spoke = call.leave
	late := time.AfterFunc(h.progressEvery, call.spoke)
	call.run()
	late.Stop()
	if bytes.Contains(call.answer.Result, []byte(`"inputRequests"`)) {
		call.leave()
	}
	if !call.stay() {
		<-call.served
		return true
	}
	s.forget(call) // the client may use the id again once it has the answer
	var res *mcp.CallToolResult
	err = s.safely("a call", func() (err error) {
		res, err = s.conclude(req, c, reply{answer: call.answer}, call.err)
		return err
	})
	h.writeAnswer(w, p.id, res, err)
	return true
}

// leave has the SDK answer the request; a second time it does nothing.
func (c *plainRun) leave() {
	c.deciding.Lock()
	defer c.deciding.Unlock()
	if c.decided {
		return
	}
	c.decided, c.isLeft = true, true
	c.served = make(chan struct{})
	go c.toSDK()
}

// stay tells whether the shortcut answers the request: the SDK does not, from then on.
func (c *plainRun) stay() bool {
	c.deciding.Lock()
	defer c.deciding.Unlock()
	c.decided = true
	return !c.isLeft
}

// isUsual tells whether the SDK would look at the request's body without further
// ado, for a client that takes JSON.
func (s *session) isUsual(r *http.Request) bool {
	version := s.protocol()
	if v := r.Header.Get(versionHeader); version == "" || v != "" && v != version {
		return false
	}
	if t := r.Header.Get("Content-Type"); t != "application/json" && contentType(r) != "application/json" {
		return false
	}
	json, _ := accepted(r)
	return json && r.Header["Last-Event-Id"] == nil && s.ctx.Err() == nil
}

// plainRequest is the request for what is behind the SDK.
func (s *session) plainRequest(r *http.Request, p plainCall) *request {
	s.introduce.Do(func() {
		init := s.ss.InitializeParams()
		s.can = capabilitiesOf(init.Capabilities)
		s.agent = agentFrom(init.ClientInfo, s.can)
	})
	req := &request{ctx: r.Context(), ss: s.ss, can: s.can, agent: s.agent, begun: time.Now()}
	if p.token != nil {
		req.token = p.token
	}
	return req
}

// enter makes the call findable by its id. It gives nil if there is one already.
func (s *session) enter(p plainCall, r *request, c pageCall) (*plainRun, error) {
	run, err := s.prepared(r, c.errand)
	if err != nil {
		return nil, err
	}
	call := &plainRun{pageCall: c, running: run, key: string(p.id), begun: r.begun}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.plain[call.key] != nil {
		run.cancel(nil)
		return nil, nil
	}
	if s.plain == nil {
		s.plain = make(map[string]*plainRun)
	}
	s.plain[call.key] = call
	return call, nil
}

func (s *session) forget(c *plainRun) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.plain, c.key)
}

// left is forget for a call of the SDK's request, which has ended.
func (s *session) left(c *plainRun, client context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !c.joined && client.Err() != nil { // the SDK returns at once then, and joins soon
		c.over = true
		return
	}
	if !c.joined { // the SDK has refused it
		c.cancel(context.Canceled)
	}
	delete(s.plain, c.key)
}

// begunBefore is the id of a request whose call the shortcut has begun, or "".
func begunBefore(extra *mcp.RequestExtra) string {
	if extra == nil {
		return ""
	}
	return extra.Header.Get(callHeader)
}

// errRefused is for a request of the shortcut's whose call was cancelled already.
var errRefused = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the call has ended"}

// join takes over the call that the shortcut has begun for a request, if it has.
func (s *session) join(r *request) (c pageCall, begun bool, err error) {
	id := begunBefore(r.extra)
	if id == "" {
		return c, false, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	call := s.plain[id]
	if call == nil || call.joined {
		return c, false, errRefused
	}
	call.joined = true
	if call.over {
		delete(s.plain, id)
	}
	r.running, r.begun = call.running, call.begun
	return call.pageCall, true, nil
}

// cancelled ends the call that the client wants ended.
func (s *session) cancelled(p *mcp.CancelledParams) {
	if p == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.plain[callKey(p.RequestID)]; c != nil {
		c.cancel(context.Canceled)
	}
}

// callKey is how a client names a call that it cancels, as isPlainID wants it.
func callKey(id any) string {
	switch id := id.(type) {
	case string:
		return `"` + id + `"`
	case float64:
		return strconv.FormatInt(int64(id), 10)
	}
	return ""
}

// writeAnswer answers with JSON.
func (h *Handler) writeAnswer(w http.ResponseWriter, id json.RawMessage, res *mcp.CallToolResult, err error) {
	b := make([]byte, 0, 256+roomFor(res))
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = append(b, id...)
	if err == nil {
		b = append(b, `,"result":`...)
		b, err = appendResult(b, res)
	}
	if err != nil {
		var rpc *jsonrpc.Error
		if !errors.As(err, &rpc) {
			rpc = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
		}
		writeRPCError(w, http.StatusOK, id, rpc)
		return
	}
	b = append(b, '}')
	header := w.Header()
	header["Content-Type"] = jsonType
	header["Cache-Control"] = noCache
	header["Content-Length"] = []string{strconv.Itoa(len(b))}
	rc := http.NewResponseController(w)
	_ = rc.SetWriteDeadline(time.Now().Add(streamWriteTimeout))
	if _, err := w.Write(b); err == nil && rc.Flush() == nil {
		_ = rc.SetWriteDeadline(time.Time{}) // the connection may serve further requests
	}
}

// What each answer's header shares.
var (
	jsonType = []string{"application/json"}
	noCache  = []string{"no-cache, no-transform"}
)
