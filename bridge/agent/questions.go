package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"jsbridge/manifest"
	"jsbridge/tenant"
)

// askMethods are what a page can ask, by MCP's names.
var askMethods = map[tenant.AskKind]string{tenant.Elicit: "elicitation/create", tenant.Sample: "sampling/createMessage", tenant.ListRoots: "roots/list"}

// parseAsk reads a question that a page asks during a call.
func (h *Handler) parseAsk(a *tenant.Ask) (mcp.InputRequest, error) {
	params := a.Params
	if params == nil {
		params = json.RawMessage("{}")
	}
	raw, err := json.Marshal(map[string]any{"q": map[string]any{"method": askMethods[a.Kind], "params": params}})
	if err != nil {
		return nil, err
	}
	m, err := h.parseQuestions(raw)
	if err != nil {
		return nil, err
	}
	return m["q"], nil
}

// maxQuestion bounds a question to the user, in bytes; one to the model may be as
// long as a result.
const maxQuestion = 64 << 10

// parseQuestions reads questions by key. The SDK's decoder panics on a null, and
// what nests too deep it could not pass on.
func (h *Handler) parseQuestions(raw json.RawMessage) (mcp.InputRequestMap, error) {
	var each map[string]json.RawMessage
	if err := json.Unmarshal(raw, &each); err != nil {
		return nil, err
	}
	if len(each) == 0 || len(each) > maxQuestions {
		return nil, fmt.Errorf("there are %d questions; 1 to %d are allowed", len(each), maxQuestions)
	}
	for key, q := range each {
		var shape struct {
			Method string          `json:"method"`
			Params json.RawMessage `json:"params"`
		}
		limit := maxQuestion
		switch err := json.Unmarshal(q, &shape); {
		case err != nil || shape.Method == "":
			return nil, fmt.Errorf("%.40q is no question: it must be {method, params}", key)
		case shape.Method == askMethods[tenant.Sample]:
			limit = h.opts.MaxResult
		}
		params := bytes.TrimSpace(shape.Params)
		switch {
		case len(params) == 0 || params[0] != '{':
			return nil, fmt.Errorf("%s: the params must be an object", shape.Method)
		case len(params) > limit:
			return nil, fmt.Errorf("%s: the params have %d bytes, the limit is %d", shape.Method, len(params), limit)
		case manifest.TooDeep(params):
			return nil, fmt.Errorf("%s: the params nest deeper than %d levels", shape.Method, manifest.MaxDepth)
		}
	}
	var m mcp.InputRequestMap
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, fmt.Errorf("the params can't be read: %v", err)
	}
	return m, nil
}

// questions are what a page returned in place of a result.
type questions struct {
	requests mcp.InputRequestMap
	state    string
}

// questionsIn finds them in a result; nil: it is one.
func (h *Handler) questionsIn(raw json.RawMessage) (*questions, error) {
	if !bytes.Contains(raw, []byte(`"inputRequests"`)) { // the usual case, cheaply
		return nil, nil
	}
	var shape map[string]json.RawMessage
	if json.Unmarshal(raw, &shape) != nil {
		return nil, nil
	}
	requests := shape["inputRequests"]
	if len(requests) == 0 || requests[0] != '{' || shape["content"] != nil {
		return nil, nil // some other object that has such a member
	}
	var q questions
	var err error
	if q.requests, err = h.parseQuestions(requests); err != nil {
		return nil, fmt.Errorf("the page returned inputRequests that are no use: %v", err)
	}
	if state := shape["requestState"]; state != nil && json.Unmarshal(state, &q.state) != nil {
		return nil, errors.New("the page returned a requestState that is no text")
	}
	if len(q.state) > maxState {
		return nil, fmt.Errorf("the page returned a requestState of %d bytes, the limit is %d", len(q.state), maxState)
	}
	if strings.HasPrefix(q.state, parkedState) {
		return nil, fmt.Errorf("the page returned a requestState that begins with %q, which is reserved", parkedState)
	}
	return &q, nil
}
