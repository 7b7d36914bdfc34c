package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// refuser answers in JSON-RPC where the SDK answers in plain text, which some
// clients take for a server that is broken.
type refuser struct {
	http.ResponseWriter
	sent   *sentBody
	counts *counts
	status int // of a plain text whose answer is still to come
}

// Unwrap lets http.ResponseController find the connection.
func (r *refuser) Unwrap() http.ResponseWriter { return r.ResponseWriter }

func (r *refuser) WriteHeader(status int) {
	if status < 400 || !strings.HasPrefix(r.Header().Get("Content-Type"), "text/plain") {
		r.ResponseWriter.WriteHeader(status)
		return
	}
	r.status = status
}

func (r *refuser) Write(b []byte) (int, error) {
	if r.status == 0 {
		return r.ResponseWriter.Write(b)
	}
	r.refuse(strings.TrimSpace(string(b)))
	return len(b), nil
}

func (r *refuser) refuse(text string) {
	r.counts.refuse(invalidRequest)
	method, id := r.sent.request()
	switch {
	case strings.HasPrefix(text, "malformed payload"), strings.Contains(text, "non-empty body"):
		code := int64(jsonrpc.CodeInvalidRequest)
		if !json.Valid(r.sent.begin) {
			code = jsonrpc.CodeParseError
		}
		writeError(r.ResponseWriter, r.status, code, text)
	case strings.HasPrefix(text, "JSON RPC not handled") && r.sent.isBatch():
		r.refuseBatch(text)
	// The request's own error, none of the transport: clients look for it in
	// an answer like any other.
	case strings.HasPrefix(text, "JSON RPC not handled") && id != nil:
		writeErrorTo(r.ResponseWriter, http.StatusOK, id, jsonrpc.CodeMethodNotFound, fmt.Sprintf("method not found: %.80q", method))
	case strings.HasPrefix(text, "JSON RPC not handled"): // notifications are never answered
		r.Header().Del("Content-Type")
		r.ResponseWriter.WriteHeader(http.StatusAccepted)
	case strings.Contains(text, `missing required "params"`) && id != nil:
		writeErrorTo(r.ResponseWriter, http.StatusOK, id, jsonrpc.CodeInvalidParams, text)
	default:
		writeError(r.ResponseWriter, r.status, jsonrpc.CodeInvalidRequest, text)
	}
}

// refuseBatch answers each request of a batch that the SDK refused for one unknown
// method: whoever sent it waits for all.
func (r *refuser) refuseBatch(text string) {
	var batch []struct {
		Method string          `json:"method"`
		ID     json.RawMessage `json:"id"`
	}
	if json.Unmarshal(r.sent.begin, &batch) != nil { // not all of it was kept
		writeError(r.ResponseWriter, r.status, jsonrpc.CodeInvalidRequest, text)
		return
	}
	answers := []any{}
	for _, msg := range batch {
		if msg.ID == nil || string(msg.ID) == "null" {
			continue
		}
		e := &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: fmt.Sprintf("nothing of this batch was done, for the sake of another request in it: %.200s", text)}
		if strings.Contains(text, fmt.Sprintf("%q", msg.Method)) {
			e = &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("method not found: %.80q", msg.Method)}
		}
		answers = append(answers, rpcError(msg.ID, e))
	}
	if len(answers) == 0 { // notifications are never answered
		r.Header().Del("Content-Type")
		r.ResponseWriter.WriteHeader(http.StatusAccepted)
		return
	}
	writeJSON(r.ResponseWriter, http.StatusOK, answers)
}

// sentBytes is how much of a request's body is kept for its refusal.
const sentBytes = 64 << 10

// sentBody keeps what a body begins with.
type sentBody struct {
	io.ReadCloser
	begin []byte
}

func (s *sentBody) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	s.begin = append(s.begin, p[:min(n, sentBytes-len(s.begin))]...)
	return n, err
}

// isBatch tells whether it is a list, as there were until 2025-03-26.
func (s *sentBody) isBatch() bool {
	text := bytes.TrimLeft(s.begin, " \t\r\n")
	return len(text) > 0 && text[0] == '['
}

// request reads off what was asked; id is nil when it can't be told.
func (s *sentBody) request() (method string, id json.RawMessage) {
	var msg struct {
		Method string          `json:"method"`
		ID     json.RawMessage `json:"id"`
	}
	if json.Unmarshal(s.begin, &msg) != nil || string(msg.ID) == "null" {
		return "", nil
	}
	return msg.Method, msg.ID
}

// refuseVersion answers in the words of 2026-07-28, which has some for it.
func (h *Handler) refuseVersion(w *refuser, r *http.Request, version string) {
	_, _ = io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, h.opts.MaxBody)) // for its id
	_, id := w.sent.request()
	if id == nil {
		id = json.RawMessage("null")
	}
	supported := mcp.SupportedProtocolVersions()
	data, err := json.Marshal(mcp.UnsupportedProtocolVersionData{Supported: supported, Requested: version})
	if err != nil {
		data = nil
	}
	writeRPCError(w, http.StatusBadRequest, id, &jsonrpc.Error{Code: mcp.CodeUnsupportedProtocolVersion, Data: data,
		Message: fmt.Sprintf("protocol version %.40q is not supported; these are: %s", version, strings.Join(supported, ", "))})
}

// opens tells whether a request without a session may have none. Otherwise it
// is answered: the SDK would build a session for it, and say that its method is
// invalid "during session initialization".
func (h *Handler) opens(w http.ResponseWriter, r *http.Request) bool {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, h.opts.MaxBody))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		h.counts.refuse(invalidRequest)
		writeError(w, http.StatusRequestEntityTooLarge, jsonrpc.CodeInvalidRequest, fmt.Sprintf("the request is larger than %d bytes", tooLarge.Limit))
		return false
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var msg struct{ Method string }
	if err != nil || json.Unmarshal(body, &msg) != nil {
		return true // the SDK's to refuse
	}
	switch msg.Method {
	case "", "initialize", "ping", "server/discover":
		return true
	}
	h.counts.refuse(sessionMissing)
	writeError(w, http.StatusBadRequest, jsonrpc.CodeInvalidRequest, fmt.Sprintf("%.80q needs a session: initialize, then send the Mcp-Session-Id that came with the answer", msg.Method))
	return false
}
