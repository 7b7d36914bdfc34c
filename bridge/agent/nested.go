package agent

//lint:file-ignore SA1019 roots and sampling work in all versions, and clients will have them for long.

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"time"

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

// maxMessage bounds the text that a user is shown, maxState what a page may have
// the client keep, both in bytes.
const (
	maxMessage = 4 << 10
	maxState   = 64 << 10
)

// can is what of MCP a client is able to do for a page.
type can struct{ form, url, sampling, tools, context, roots bool }

func capabilitiesOf(c *mcp.ClientCapabilities) can {
	if c == nil {
		return can{}
	}
	e, sampling := c.Elicitation, c.Sampling
	return can{
		// A client that names neither mode is of a version that had forms only.
		form:     e != nil && (e.Form != nil || e.URL == nil),
		url:      e != nil && e.URL != nil,
		sampling: sampling != nil,
		tools:    sampling != nil && sampling.Tools != nil,
		context:  sampling != nil && sampling.Context != nil,
		roots:    c.RootsV2 != nil,
	}
}

// json is the client's capabilities as MCP writes them.
func (c can) json() json.RawMessage {
	if c == (can{}) {
		return noCapabilities
	}
	type object map[string]any
	all := object{}
	add := func(is bool, to object, name string, value object) {
		if is {
			to[name] = value
		}
	}
	modes, sampling := object{}, object{}
	add(c.form, modes, "form", object{})
	add(c.url, modes, "url", object{})
	add(c.tools, sampling, "tools", object{})
	add(c.context, sampling, "context", object{})
	add(c.form || c.url, all, "elicitation", modes)
	add(c.sampling, all, "sampling", sampling)
	add(c.roots, all, "roots", object{})
	raw, err := json.Marshal(all)
	if err != nil {
		return noCapabilities // which can't be, of what is above
	}
	return raw
}

var noCapabilities = json.RawMessage("{}")

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
// wrong with the question. It takes out what is not the page's to say.
func (c can) check(agent tenant.Agent, q mcp.InputRequest) error {
	lacks := func(what string, needs mcp.ClientCapabilities) error { return &lackError{agent, what, needs} }
	switch q := q.(type) {
	case *mcp.ElicitParams:
		q.Meta = nil
		if q.Mode == "url" {
			if !c.url {
				return lacks("elicitation by URL", mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{URL: &mcp.URLElicitationCapabilities{}}})
			}
		} else if !c.form {
			return lacks("elicitation", mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}}})
		}
		return checkElicit(q)
	case *mcp.CreateMessageWithToolsParams:
		q.Meta = nil
		switch needs := new(mcp.SamplingCapabilities); {
		case !c.sampling:
			return lacks("sampling", mcp.ClientCapabilities{Sampling: needs})
		case !c.tools && (q.Tools != nil || q.ToolChoice != nil):
			needs.Tools = &mcp.SamplingToolsCapabilities{}
			return lacks("sampling with tools", mcp.ClientCapabilities{Sampling: needs})
		case !c.context && q.IncludeContext != "" && q.IncludeContext != "none":
			needs.Context = &mcp.SamplingContextCapabilities{}
			return lacks("sampling with context", mcp.ClientCapabilities{Sampling: needs})
		}
		return checkSample(q)
	case *mcp.ListRootsParams:
		q.Meta = nil
		if !c.roots {
			return lacks("roots", mcp.ClientCapabilities{RootsV2: &mcp.RootCapabilities{}})
		}
		return nil
	}
	return fmt.Errorf("%T can't be asked", q)
}

// kindOf is the kind of a question in MCP's form.
func kindOf(q mcp.InputRequest) tenant.AskKind {
	switch q.(type) {
	case *mcp.ElicitParams:
		return tenant.Elicit
	case *mcp.CreateMessageWithToolsParams:
		return tenant.Sample
	}
	return tenant.ListRoots
}

// checkSample refuses what no model can be asked (MCP, client features, sampling).
func checkSample(q *mcp.CreateMessageWithToolsParams) error {
	if len(q.Messages) == 0 {
		return errors.New("sampling: there are no messages")
	}
	for i, m := range q.Messages {
		if m == nil || len(m.Content) == 0 || slices.Contains(m.Content, nil) || m.Role != "user" && m.Role != "assistant" {
			return fmt.Errorf("sampling: message %d (from 0) must have the role user or assistant, and content", i)
		}
	}
	if slices.Contains(q.Tools, nil) {
		return errors.New("sampling: a tool is null")
	}
	if q.MaxTokens <= 0 {
		return errors.New("sampling: maxTokens must be more than 0")
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
		q.ElicitationID = manifest.Clean(q.ElicitationID, 256, false)
		if q.ElicitationID == "" {
			q.ElicitationID = rand.Text()
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
	return checkFormSchema(raw)
}

// put asks the client of a session one question, by no more of the SDK than it
// takes: its Elicit compiles the page's schema, which can end the process.
func (s *session) put(ctx context.Context, q mcp.InputRequest) (mcp.InputResponse, error) {
	var res mcp.Result
	var err error
	switch q := q.(type) {
	case *mcp.ElicitParams:
		res, err = s.send(ctx, askMethods[tenant.Elicit], &mcp.ServerRequest[*mcp.ElicitParams]{Session: s.ss, Params: q})
	case *mcp.CreateMessageWithToolsParams:
		res, err = s.send(ctx, askMethods[tenant.Sample], &mcp.ServerRequest[*mcp.CreateMessageWithToolsParams]{Session: s.ss, Params: q})
	case *mcp.ListRootsParams:
		res, err = s.send(ctx, askMethods[tenant.ListRoots], &mcp.ServerRequest[*mcp.ListRootsParams]{Session: s.ss, Params: q})
	}
	if err != nil {
		return nil, err
	}
	response, ok := res.(mcp.InputResponse)
	if !ok {
		return nil, fmt.Errorf("the client's answer can't be read: %T", res)
	}
	return response, nil
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
			var answer mcp.InputResponse
			err := s.safely("a page's question", func() (err error) {
				answer, err = s.put(ctx, question)
				return err
			})
			if err != nil {
				s.awaitCancelled(ctx, r)
			} else {
				err = matches(question, answer)
			}
			became := answeredFate
			if err != nil {
				became = fateOf(why(ctx, err))
			}
			s.h.counts.question(kindOf(question), became)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				responses[key] = answer
			} else if failed == nil {
				// Not wrapped: its code would be taken for this call's.
				failed = fmt.Errorf("the page asked through this client (%q), in vain: %v", manifest.Clean(key, 40, false), why(ctx, err))
				cancel() // whoever is asked the others need not answer
			}
		})
	}
	group.Wait()
	return responses, failed
}

// unansweredError is a question that waited too long.
type unansweredError struct{ limit time.Duration }

func (e *unansweredError) Error() string {
	return fmt.Sprintf("nobody answered within %s (--ask-timeout)", e.limit)
}

func (h *Handler) nobodyAnswered() error { return &unansweredError{h.opts.AskTimeout} }

// safely does what is none of an HTTP request's goroutines: a panic in one of those
// would end the process.
func (s *session) safely(what string, do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			s.log().Error("panic", "in", what, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = errors.New("internal error; see jsbridge's log")
		}
	}()
	return do()
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
	case *mcp.CreateMessageWithToolsParams:
		_, ok = response.(*mcp.CreateMessageWithToolsResult) // the only kind that the SDK decodes
	case *mcp.ListRootsParams:
		_, ok = response.(*mcp.ListRootsResult)
	}
	if !ok {
		return errors.New("the client answered something else than it was asked")
	}
	return nil
}

// pageError is an error as the page's promise is rejected with.
func pageError(err error) *tenant.PageError {
	e := &tenant.PageError{Message: manifest.Clean(err.Error(), maxMessage, true)}
	var lacks *lackError
	var rpc *jsonrpc.Error
	var late *unansweredError
	switch {
	case errors.As(err, &lacks):
		e.Name, e.Code = "NotSupportedError", codeLacks
	case errors.As(err, &rpc):
		e.Code = strconv.FormatInt(rpc.Code, 10)
	case errors.As(err, &late):
		e.Name = "TimeoutError"
	}
	return e
}
