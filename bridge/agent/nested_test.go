package agent

//lint:file-ignore SA1019 sampling works in all versions, and clients will have it for long.

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"jsbridge/tenant"
)

// raw is a client of the protocol with sessions that checks nothing itself.
type raw struct {
	t       *testing.T
	url, id string
}

func (c *raw) post(body string) *http.Response {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, c.url, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if c.id != "" {
		req.Header.Set(sessionHeader, c.id)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	return res
}

func (c *raw) initialize() {
	c.t.Helper()
	res := c.post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"raw","version":"1"}}}`)
	c.id = res.Header.Get(sessionHeader)
	_, _ = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
	res = c.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	_ = res.Body.Close()
}

// messages gives what comes in a response, until do is done with it.
func messages(res *http.Response, do func(msg map[string]json.RawMessage) bool) {
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		var msg map[string]json.RawMessage
		if ok && json.Unmarshal(data, &msg) == nil && !do(msg) {
			return
		}
	}
}

// A page's form is compiled by the SDK once the user has accepted it: one that refers
// to itself overflows the stack, a null in it is a nil pointer in a goroutine of ours.
// Neither can be recovered from.
func TestNoFormEndsTheProcess(t *testing.T) {
	schemas := []string{
		`{"type":"object","properties":{"a":{"type":"string","$ref":"#/properties/a"}}}`,
		`{"type":"object","properties":{"a":{"type":"string","oneOf":[null]}}}`,
		`{"type":"object","properties":{"a":{"type":"array","items":{"anyOf":[null]}}}}`,
	}
	if schema := os.Getenv("JSBRIDGE_TEST_SCHEMA"); schema != "" {
		acceptForm(t, schema)
		return
	}
	for _, schema := range schemas {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestNoFormEndsTheProcess$")
		cmd.Env = append(os.Environ(), "JSBRIDGE_TEST_SCHEMA="+schema)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%.400s", schema, err, out)
		}
	}
}

func acceptForm(t *testing.T, schema string) {
	s := newSide(t, Options{}, tenant.Options{})
	c := &raw{t: t, url: s.url + "/w"}
	c.initialize()
	var p *fakePage
	p = s.page(s.tenantOf(s.connectAs(withSessions, "/w", nil)), `[{"name":"t","description":""}]`, asking(&p, `{"message":"m","requestedSchema":`+schema+`}`))
	messages(c.post(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"p__t"}}`), func(msg map[string]json.RawMessage) bool {
		if string(msg["method"]) == `"elicitation/create"` {
			_ = c.post(`{"jsonrpc":"2.0","id":` + string(msg["id"]) + `,"result":{"action":"accept","content":{"a":"x"}}}`).Body.Close()
		}
		return msg["result"] == nil && msg["error"] == nil
	})
}

// A null among the inputRequests is a nil pointer in the SDK's decoder.
func TestNullAmongQuestions(t *testing.T) {
	for _, result := range []string{`{"inputRequests":{"k":null}}`, `{"content":[],"inputRequests":{"k":null}}`} {
		eachEra(t, func(t *testing.T, version string) {
			s := newSide(t, Options{}, tenant.Options{})
			c := s.connectAs(version, "/w", nil)
			s.join(s.tenantOf(c), offerings, answer(result))
			if res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "p__t"}); err != nil && strings.Contains(err.Error(), "internal error; see") {
				t.Errorf("%s: %v, %v", result, res, err)
			}
		})
	}
	s := newSide(t, Options{}, tenant.Options{})
	c := s.connect()
	s.join(s.tenantOf(c), offerings, answer(`{"content":1,"messages":[],"inputRequests":{"k":null}}`))
	if _, err := c.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "p__review", Arguments: map[string]string{"style": "a"}}); err != nil && strings.Contains(err.Error(), "internal error; see") {
		t.Errorf("prompt: %v", err)
	}
}

// What is asked is put three levels deeper into the answer than it was in the page's
// frame: if that is more than encoding/json allows, the SDK drops the answer.
func TestADeepQuestionIsAnswered(t *testing.T) {
	s := newSide(t, Options{}, tenant.Options{})
	c := s.connectAs(stateless, "/w", func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: "decline"}, nil
	})
	deep := strings.Repeat("[", 9996) + strings.Repeat("]", 9996)
	var p *fakePage
	p = s.page(s.tenantOf(c), `[{"name":"t","description":""}]`, asking(&p, `{"message":"m","requestedSchema":{"type":"object","properties":{},"x":`+deep+`}}`))
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	res, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "p__t"})
	if errors.Is(err, context.DeadlineExceeded) || err != nil && res == nil && codeOf(err) == 0 {
		t.Errorf("the call was not answered: %v", err)
	}
	select { // ends the page's function
	case p.answers <- tenant.Answer{}:
	default:
	}
}

// What could not be told is told on the next stream.
func TestUpdatesSurviveABrokenStream(t *testing.T) {
	reg := tenant.NewRegistry(tenant.Options{})
	defer reg.Close()
	tn, err := reg.Open()
	if err != nil {
		t.Fatal(err)
	}
	v := tn.NewView(func() {})
	defer v.Close()
	var told []string
	broken := true
	tl := (&session{h: new(Handler)}).newTeller(t.Context(), func(context.Context, tenant.List) error { return nil }, func(_ context.Context, uri string) error {
		if broken {
			return errors.New("broken")
		}
		told = append(told, uri)
		return nil
	})
	tl.begin(v)
	tl.open(true)
	tl.updated([]string{"page://p/cart"})
	tl.end() // the test is the timer
	tl.tell()
	tl.end()
	broken = false
	tl.tell()
	tl.end()
	if len(told) != 1 {
		t.Errorf("told %q", told)
	}
}

// An answer to a bad cursor is no list, and a second page is not the first one.
func TestWhatCountsAsRead(t *testing.T) {
	for name, cursor := range map[string]string{"bad cursor": "!", "a later page": encodeCursor("zzz")} {
		t.Run(name, func(t *testing.T) {
			s := newSide(t, Options{}, tenant.Options{})
			c := s.connect()
			at := s.tenantOf(c)
			s.Handler.mu.Lock()
			ss := s.Handler.sessions[c.ID()]
			s.Handler.mu.Unlock()
			var known *tenant.Snapshot
			look := func() *tenant.Snapshot {
				ss.teller.mu.Lock()
				defer ss.teller.mu.Unlock()
				return ss.teller.known[tenant.Tools]
			}
			ss.teller.open(false) // so that it is told nothing by itself
			known = look()
			s.join(at, `[{"name":"new","description":""}]`, answer("1"))
			_, _ = c.ListTools(t.Context(), &mcp.ListToolsParams{Cursor: cursor})
			if look() != known {
				t.Error("the client is taken to know the new tool, which it has not seen")
			}
		})
	}
}

// A page's error is bounded wherever it goes.
func TestThrownTextIsBounded(t *testing.T) {
	s := newSide(t, Options{MaxResult: 1000}, tenant.Options{})
	c := s.connect()
	s.join(s.tenantOf(c), offerings, func(l *tenant.Link, f tenant.CallFrame) {
		_ = l.Answer(f.ID, tenant.Answer{Err: &tenant.PageError{Message: "\x1b[2J" + strings.Repeat("x", 1<<20)}})
	})
	for what, do := range map[string]func() error{
		"prompt": func() error {
			_, err := c.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "p__review", Arguments: map[string]string{"style": "a"}})
			return err
		},
		"resource": func() error {
			_, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "page://p/cart"})
			return err
		},
		"completion": func() error {
			_, err := c.Complete(t.Context(), &mcp.CompleteParams{Ref: &mcp.CompleteReference{Type: "ref/prompt", Name: "p__review"}, Argument: mcp.CompleteParamsArgument{Name: "style"}})
			return err
		},
	} {
		if err := do(); err == nil || len(err.Error()) > 10_000 {
			t.Errorf("%s: an error of %d bytes, with --max-result 1000", what, len(fmt.Sprint(err)))
		}
	}
}

// MCP 2025-11-25, sampling: servers must not send tools to clients that have not
// declared sampling.tools.
func TestSamplingWithToolsNeedsItsCapability(t *testing.T) {
	q, err := (&Handler{opts: Options{MaxResult: 1 << 20}}).parseAsk(&tenant.Ask{Kind: tenant.Sample, Params: json.RawMessage(`{"maxTokens":1,"messages":[{"role":"user","content":{"type":"text","text":"t"}}],"tools":[{"name":"x","inputSchema":{"type":"object"}}]}`)})
	if err != nil {
		t.Fatal(err)
	}
	can := capabilitiesOf(&mcp.ClientCapabilities{Sampling: &mcp.SamplingCapabilities{}})
	var lacks *lackError
	if err := can.check(tenant.Agent{}, q); !errors.As(err, &lacks) {
		t.Errorf("tools are sent to a client without sampling.tools: %v", err)
	}
}

// Messages that no client can read are the page's fault, and are to be told to it.
func TestSamplingOfNothing(t *testing.T) {
	can := can{sampling: true}
	for _, params := range []string{`{"maxTokens":1,"messages":[null]}`, `{"maxTokens":1,"messages":[]}`, `{"maxTokens":1}`, `{"maxTokens":1,"messages":[{"role":"system","content":{"type":"text","text":"t"}}]}`, `null`} {
		q, err := (&Handler{opts: Options{MaxResult: 1 << 20}}).parseAsk(&tenant.Ask{Kind: tenant.Sample, Params: json.RawMessage(params)})
		if err == nil {
			err = can.check(tenant.Agent{}, q)
		}
		if err == nil {
			t.Errorf("%s: passed on", params)
		}
	}
}

// No question is no reason to call again at once.
func TestNoQuestions(t *testing.T) {
	s := newSide(t, Options{}, tenant.Options{})
	c := s.connectAs(withSessions, "", func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: "accept"}, nil
	})
	var calls atomic.Int32
	s.join(s.tenantOf(c), `[{"name":"t","description":""}]`, func(l *tenant.Link, f tenant.CallFrame) {
		calls.Add(1)
		_ = l.Answer(f.ID, tenant.Answer{Result: json.RawMessage(`{"inputRequests":{}}`)})
	})
	_, _ = c.CallTool(t.Context(), &mcp.CallToolParams{Name: "p__t"})
	if n := calls.Load(); n != 1 {
		t.Errorf("the page's function ran %d times for one call", n)
	}
}

// The protocol's own keys are not for a page to say, in a question either.
func TestMetaOfQuestions(t *testing.T) {
	eachEra(t, func(t *testing.T, version string) {
		s := newSide(t, Options{}, tenant.Options{})
		c := s.connectAs(version, "/w", func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			if r.Params.Meta["io.modelcontextprotocol/related-task"] != nil || r.Params.Meta["progressToken"] != nil {
				t.Errorf("the page's _meta: %v", r.Params.Meta)
			}
			return &mcp.ElicitResult{Action: "decline"}, nil
		})
		var p *fakePage
		p = s.page(s.tenantOf(c), `[{"name":"t","description":""}]`, asking(&p, `{"_meta":{"progressToken":1,"io.modelcontextprotocol/related-task":{"taskId":"x"}},`+form[1:]))
		_, _ = c.CallTool(t.Context(), &mcp.CallToolParams{Name: "p__t"})
	})
}

// Completions have no questions.
func TestNobodyIsAskedDuringACompletion(t *testing.T) {
	s := newSide(t, Options{}, tenant.Options{})
	c := s.connectAs(withSessions, "/w", func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		t.Error("the user was asked, while typing a prompt's argument")
		return &mcp.ElicitResult{Action: "decline"}, nil
	})
	var p *fakePage
	p = s.page(s.tenantOf(c), offerings, asking(&p, form))
	_, _ = c.Complete(t.Context(), &mcp.CompleteParams{Ref: &mcp.CompleteReference{Type: "ref/prompt", Name: "p__review"}, Argument: mcp.CompleteParamsArgument{Name: "style"}})
}

type countingLog struct {
	slog.Handler
	n *atomic.Int32
}

func (c countingLog) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, "question was not asked") {
		c.n.Add(1)
	}
	return nil
}

// A page can't fill the log.
func TestRefusedQuestionsDoNotFloodTheLog(t *testing.T) {
	s := newSide(t, Options{}, tenant.Options{})
	var lines atomic.Int32
	s.Handler.log = slog.New(countingLog{slog.NewTextHandler(io.Discard, nil), &lines})
	c := s.connect()
	var p *fakePage
	p = s.page(s.tenantOf(c), `[{"name":"t","description":""}]`, func(l *tenant.Link, f tenant.CallFrame) {
		for l.Ask(f.ID, "q", tenant.Elicit, json.RawMessage(form)) == nil {
			<-p.answers
		}
		_ = l.Answer(f.ID, tenant.Answer{})
	})
	_, _ = c.CallTool(t.Context(), &mcp.CallToolParams{Name: "p__t"})
	if n := lines.Load(); n > 20 {
		t.Errorf("one call wrote %d lines at level warn", n)
	}
}

// The scheme of Authorization has no case (RFC 9110, 11.1).
func TestBearerHasNoCase(t *testing.T) {
	r := httptest.NewRequest(http.MethodPost, "/mcp", nil)
	r.Header.Set("Authorization", "bearer secret")
	if key := workspaceOf(r); key == defaultWorkspace {
		t.Error("a client with a token of its own shares the workspace of those that have none")
	}
}

// A client that fails to ask is not the caller's protocol error: the code would be the
// asked client's own.
func TestTheClientsErrorIsNotTheCalls(t *testing.T) {
	s := newSide(t, Options{}, tenant.Options{})
	c := s.connectAs(withSessions, "", func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		return nil, &jsonrpc.Error{Code: -32601, Message: "no window to ask in"}
	})
	s.join(s.tenantOf(c), offerings, answer(`{"inputRequests":{"k":{"method":"elicitation/create","params":`+form+`}}}`))
	res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "p__t"})
	if err != nil || !res.IsError {
		t.Errorf("tools/call itself failed with the code %d: %v", codeOf(err), err)
	}
}

// A page's promise is told apart by its name.
func TestTimeoutErrorHasItsName(t *testing.T) {
	s := newSide(t, Options{AskTimeout: time.Millisecond}, tenant.Options{})
	c := s.connectAs(withSessions, "", func(ctx context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	var p *fakePage
	got := make(chan tenant.Answer, 1)
	p = s.page(s.tenantOf(c), `[{"name":"t","description":""}]`, func(l *tenant.Link, f tenant.CallFrame) {
		_ = l.Ask(f.ID, "q", tenant.Elicit, json.RawMessage(form))
		a := <-p.answers
		got <- a
		_ = l.Answer(f.ID, a)
	})
	_, _ = c.CallTool(t.Context(), &mcp.CallToolParams{Name: "p__t"})
	if a := take(t, got); a.Err == nil || a.Err.Name != "TimeoutError" {
		t.Errorf("%+v", a.Err)
	}
}

// Once the page has gone, the client is not asked again.
func TestAnEndedCallAsksNoMore(t *testing.T) {
	s := newSide(t, Options{}, tenant.Options{})
	client := mcp.NewClient(&mcp.Implementation{Name: "test"}, &mcp.ClientOptions{
		MultiRoundTrip:     &mcp.MultiRoundTripOptions{Disabled: true},
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) { return nil, errors.New("unused") },
	})
	ss, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: s.url + "/w"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ss.Close()
	var p *fakePage
	p = s.page(s.tenantOf(&cl{ClientSession: ss, t: t}), `[{"name":"t","description":""}]`, asking(&p, form))
	first, err := ss.CallTool(t.Context(), &mcp.CallToolParams{Name: "p__t"})
	if err != nil || !first.NeedsInput() {
		t.Fatalf("%+v, %v", first, err)
	}
	p.link.Leave()
	p.answers <- tenant.Answer{} // ends the page's function
	again, err := ss.CallTool(t.Context(), &mcp.CallToolParams{Name: "p__t", RequestState: first.RequestState})
	if err == nil && again.NeedsInput() {
		t.Error("the page has gone, and its question is asked again")
	}
}
