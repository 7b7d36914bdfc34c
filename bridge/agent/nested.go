package agent

//lint:file-ignore SA1019 roots and sampling work in all versions, and clients will have them for long.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"jsbridge/manifest"
	"jsbridge/tenant"
)

// A page may have questions for the client that called it: for its user
// (elicitation), its model (sampling) and its roots. It asks during the call, or
// returns them in place of a result (MCP 2026-07-28, multi round-trip requests).

// maxQuestions bounds what a page may return at once, maxRounds how often in a row.
const (
	maxQuestions = 16
	maxRounds    = 10
)

// maxMessage bounds the text that a user is shown, in bytes.
const maxMessage = 4 << 10

// can is what of MCP a client is able to do for a page.
type can struct{ form, url, sampling, roots bool }

func capabilitiesOf(c *mcp.ClientCapabilities) can {
	if c == nil {
		return can{}
	}
	e := c.Elicitation
	return can{
		// A client that names neither mode is of a version that had forms only.
		form:     e != nil && (e.Form != nil || e.URL == nil),
		url:      e != nil && e.URL != nil,
		sampling: c.Sampling != nil,
		roots:    c.RootsV2 != nil,
	}
}

// json is the client's capabilities as MCP writes them.
func (c can) json() json.RawMessage {
	var parts []string
	if c.form || c.url {
		var modes []string
		if c.form {
			modes = append(modes, `"form":{}`)
		}
		if c.url {
			modes = append(modes, `"url":{}`)
		}
		parts = append(parts, `"elicitation":{`+strings.Join(modes, ",")+`}`)
	}
	if c.sampling {
		parts = append(parts, `"sampling":{}`)
	}
	if c.roots {
		parts = append(parts, `"roots":{}`)
	}
	return json.RawMessage("{" + strings.Join(parts, ",") + "}")
}

// lackError is a question that the client can't be asked.
type lackError struct {
	agent tenant.Agent
	what  string
	needs mcp.ClientCapabilities
}

func (e *lackError) Error() string {
	return fmt.Sprintf("the MCP client (%s) does not support %s, so the page can't ask through it", nameOf(e.agent), e.what)
}

// protocol is the error as the stateless protocol wants it.
func (e *lackError) protocol() error {
	data, err := json.Marshal(mcp.MissingRequiredClientCapabilityData{RequiredCapabilities: &e.needs})
	if err != nil {
		return refusal(err)
	}
	return &jsonrpc.Error{Code: mcp.CodeMissingRequiredClientCapabilities, Message: e.Error(), Data: data}
}

// codeLacks tells a page, and the server when the page throws it on, that the
// client lacks a capability.
var codeLacks = strconv.Itoa(mcp.CodeMissingRequiredClientCapabilities)

// codeInvalid is the code of an error that a page throws at a client which comes back
// with something else than it was given.
var codeInvalid = strconv.Itoa(jsonrpc.CodeInvalidParams)

// check tells why a client can't be asked a question: a [*lackError], or what is
// wrong with the question.
func (c can) check(agent tenant.Agent, q mcp.InputRequest) error {
	lacks := func(what string, needs mcp.ClientCapabilities) error { return &lackError{agent, what, needs} }
	switch q := q.(type) {
	case *mcp.ElicitParams:
		if q.Mode == "url" {
			if !c.url {
				return lacks("elicitation by URL", mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{URL: &mcp.URLElicitationCapabilities{}}})
			}
		} else if !c.form {
			return lacks("elicitation", mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}}})
		}
		return checkElicit(q)
	case *mcp.CreateMessageParams, *mcp.CreateMessageWithToolsParams:
		if !c.sampling {
			return lacks("sampling", mcp.ClientCapabilities{Sampling: &mcp.SamplingCapabilities{}})
		}
	case *mcp.ListRootsParams:
		if !c.roots {
			return lacks("roots", mcp.ClientCapabilities{RootsV2: &mcp.RootCapabilities{}})
		}
	}
	return nil
}

// checkElicit refuses what clients would refuse less clearly (MCP, client features,
// elicitation), and makes the page's text fit to be shown.
func checkElicit(q *mcp.ElicitParams) error {
	if q.Message = manifest.Clean(q.Message, maxMessage, true); q.Message == "" {
		return errors.New("elicitation: the message is missing: say what you ask the user for")
	}
	switch q.Mode {
	case "url":
		u, err := url.Parse(q.URL)
		if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			return fmt.Errorf("elicitation: %.80q is no http or https URL", q.URL)
		}
		return nil
	case "", "form":
		q.Mode = "form"
	default:
		return fmt.Errorf("elicitation: %.20q is no mode; there are form and url", q.Mode)
	}
	raw, err := json.Marshal(q.RequestedSchema)
	if err != nil {
		return err
	}
	var schema struct {
		Type       string                     `json:"type"`
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(raw, &schema) != nil || schema.Type != "object" || schema.Properties == nil {
		return errors.New(`elicitation: the schema must be {"type":"object","properties":{…}}: a flat form`)
	}
	for name, p := range schema.Properties {
		var property struct {
			Type string `json:"type"`
		}
		if json.Unmarshal(p, &property) != nil {
			return fmt.Errorf("elicitation: the property %.40q is no schema", name)
		}
		switch property.Type {
		case "string", "number", "integer", "boolean", "array":
		default:
			return fmt.Errorf("elicitation: the property %.40q has the type %.20q; a form has string, number, integer, boolean and, for a choice of several, array", name, property.Type)
		}
	}
	return nil
}

// parseAsk reads a question that a page asks during a call.
func parseAsk(a *tenant.Ask) (mcp.InputRequest, error) {
	method := map[tenant.AskKind]string{tenant.Elicit: "elicitation/create", tenant.Sample: "sampling/createMessage", tenant.ListRoots: "roots/list"}[a.Kind]
	params := a.Params
	if params == nil {
		params = json.RawMessage("{}")
	}
	raw, err := json.Marshal(map[string]any{"q": map[string]any{"method": method, "params": params}})
	if err != nil {
		return nil, err
	}
	var m mcp.InputRequestMap
	if err := json.Unmarshal(raw, &m); err != nil || m["q"] == nil {
		return nil, fmt.Errorf("%s: the params can't be read: %w", method, err)
	}
	return m["q"], nil
}

// questions are what a page returned in place of a result.
type questions struct {
	requests mcp.InputRequestMap
	state    string
}

// questionsIn finds them in a result; nil: it is one.
func questionsIn(raw json.RawMessage) (*questions, error) {
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
	if err := json.Unmarshal(requests, &q.requests); err != nil {
		return nil, fmt.Errorf("the page returned inputRequests that can't be read: %w", err)
	}
	if len(q.requests) > maxQuestions {
		return nil, fmt.Errorf("the page returned %d inputRequests, the limit is %d", len(q.requests), maxQuestions)
	}
	if state := shape["requestState"]; state != nil && json.Unmarshal(state, &q.state) != nil {
		return nil, errors.New("the page returned a requestState that is no text")
	}
	if strings.HasPrefix(q.state, parkedState) {
		return nil, fmt.Errorf("the page returned a requestState that begins with %q, which is reserved", parkedState)
	}
	return &q, nil
}

// put asks the client of a session one question.
func put(ctx context.Context, ss *mcp.ServerSession, q mcp.InputRequest) (mcp.InputResponse, error) {
	switch q := q.(type) {
	case *mcp.ElicitParams:
		return ss.Elicit(ctx, q)
	case *mcp.CreateMessageParams:
		return ss.CreateMessage(ctx, q)
	case *mcp.CreateMessageWithToolsParams:
		return ss.CreateMessageWithTools(ctx, q)
	case *mcp.ListRootsParams:
		return ss.ListRoots(ctx, q)
	}
	return nil, fmt.Errorf("%T can't be asked", q)
}

// putAll asks all that a page returned, at the same time.
func (s *session) putAll(r *request, q *questions) (mcp.InputResponseMap, error) {
	ctx, cancel := context.WithTimeoutCause(r.ctx, s.h.opts.AskTimeout, s.h.nobodyAnswered())
	defer cancel()
	var (
		group     sync.WaitGroup
		mu        sync.Mutex
		failed    error
		responses = make(mcp.InputResponseMap)
	)
	for key, question := range q.requests {
		group.Go(func() {
			answer, err := put(ctx, r.ss, question)
			if err != nil {
				s.awaitCancelled(ctx, r)
			}
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				responses[key] = answer
			} else if failed == nil {
				failed = fmt.Errorf("the page asked through this client (%q), in vain: %w", manifest.Clean(key, 40, false), why(ctx, err))
				cancel() // whoever is asked the others need not answer
			}
		})
	}
	group.Wait()
	return responses, failed
}

func (h *Handler) nobodyAnswered() error {
	return fmt.Errorf("nobody answered within %s (--ask-timeout)", h.opts.AskTimeout)
}

// why prefers the reason for which a context has ended.
func why(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// answered makes the answer to a page's question.
func answered(q mcp.InputRequest, response mcp.InputResponse, err error) tenant.Answer {
	if err == nil {
		err = matches(q, response)
	}
	if err != nil {
		return tenant.Answer{Err: pageError(err)}
	}
	raw, err := json.Marshal(response)
	if err != nil {
		return tenant.Answer{Err: pageError(err)}
	}
	return tenant.Answer{Result: raw}
}

// matches refuses answers to another question.
func matches(q mcp.InputRequest, response mcp.InputResponse) error {
	ok := false
	switch q := q.(type) {
	case *mcp.ElicitParams:
		var a *mcp.ElicitResult
		if a, ok = response.(*mcp.ElicitResult); ok && a.Action == "accept" && q.Mode == "form" {
			return checkForm(q, a)
		}
	case *mcp.CreateMessageParams, *mcp.CreateMessageWithToolsParams:
		switch response.(type) {
		case *mcp.CreateMessageResult, *mcp.CreateMessageWithToolsResult:
			ok = true
		}
	case *mcp.ListRootsParams:
		_, ok = response.(*mcp.ListRootsResult)
	}
	if !ok {
		return errors.New("the client answered something else than it was asked")
	}
	return nil
}

// checkForm checks what the user has filled in.
func checkForm(q *mcp.ElicitParams, a *mcp.ElicitResult) error {
	schema, err := json.Marshal(q.RequestedSchema)
	if err != nil {
		return err
	}
	content := json.RawMessage("{}")
	if a.Content != nil {
		if content, err = json.Marshal(a.Content); err != nil {
			return err
		}
	}
	form := &manifest.Tool{OutputSchema: schema}
	if err := form.CheckOutput(content); err != nil {
		return fmt.Errorf("what the user filled in does not fit the form: %w", err)
	}
	return nil
}

// pageError is an error as the page's promise is rejected with.
func pageError(err error) *tenant.PageError {
	e := &tenant.PageError{Message: manifest.Clean(err.Error(), maxMessage, true)}
	var lacks *lackError
	var rpc *jsonrpc.Error
	switch {
	case errors.As(err, &lacks):
		e.Name, e.Code = "NotSupportedError", codeLacks
	case errors.As(err, &rpc):
		e.Code = strconv.FormatInt(rpc.Code, 10)
	case errors.Is(err, context.DeadlineExceeded):
		e.Name = "TimeoutError"
	}
	return e
}
