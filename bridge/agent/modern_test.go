package agent

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"jsbridge/tenant"
)

// Both protocol eras, by their newest versions.
const (
	withSessions = "2025-11-25"
	stateless    = "2026-07-28"
)

func eachEra(t *testing.T, do func(t *testing.T, version string)) {
	for _, version := range []string{withSessions, stateless} {
		t.Run(version, func(t *testing.T) { do(t, version) })
	}
}

const offerings = `[{"name":"t","description":""}],
	"prompts":[{"name":"review","description":"Reviews","arguments":[{"name":"style","required":true,"complete":true},{"name":"length"}]}],
	"resources":[{"uri":"cart","name":"Cart","mimeType":"application/json"},{"uri":"test://own","name":"own"}],
	"resourceTemplates":[{"uriTemplate":"item/{id}","name":"Item","complete":["id"]}],"x":[]`

// script answers a page's calls by what is asked for, with what it was asked.
func script(results map[tenant.Method]string, asked chan tenant.CallFrame) func(*tenant.Link, tenant.CallFrame) {
	return func(l *tenant.Link, c tenant.CallFrame) {
		if asked != nil {
			asked <- c
		}
		_ = l.Answer(c.ID, tenant.Answer{Result: json.RawMessage(results[c.Method])})
	}
}

func TestPromptsResourcesAndCompletions(t *testing.T) {
	eachEra(t, func(t *testing.T, version string) {
		s := newSide(t, Options{}, tenant.Options{})
		c := s.connectAs(version, "/w", nil)
		asked := make(chan tenant.CallFrame, 10)
		s.join(s.tenantOf(c), offerings, script(map[tenant.Method]string{
			tenant.GetPrompt:    `{"messages":[{"role":"user","content":{"type":"text","text":"Do it"}}],"description":"d","_meta":{"a":1,"io.modelcontextprotocol/x":2}}`,
			tenant.ReadResource: `{"contents":[{"mimeType":"text/plain","text":"hi"},{"uri":"test://own","blob":"AAEC"}]}`,
			tenant.Complete:     `{"values":["formal","","frank"],"total":7,"hasMore":true}`,
		}, asked))
		ctx := t.Context()

		prompts, err := c.ListPrompts(ctx, nil)
		if err != nil || len(prompts.Prompts) != 1 || prompts.Prompts[0].Name != "p__review" || len(prompts.Prompts[0].Arguments) != 2 ||
			!strings.Contains(prompts.Prompts[0].Description, `web page "P"`) {
			t.Fatalf("prompts: %+v, %v", prompts, err)
		}
		resources, err := c.ListResources(ctx, nil)
		if err != nil || len(resources.Resources) != 2 || resources.Resources[0].URI != "page://p/cart" || resources.Resources[1].URI != "test://own" {
			t.Fatalf("resources: %+v, %v", resources, err)
		}
		templates, err := c.ListResourceTemplates(ctx, nil)
		if err != nil || len(templates.ResourceTemplates) != 1 || templates.ResourceTemplates[0].URITemplate != "page://p/item/{id}" {
			t.Fatalf("templates: %+v, %v", templates, err)
		}

		got, err := c.GetPrompt(ctx, &mcp.GetPromptParams{Name: "p__review", Arguments: map[string]string{"style": "short"}})
		if err != nil || len(got.Messages) != 1 || got.Description != "d" || got.Meta["a"] != 1.0 || got.Meta["io.modelcontextprotocol/x"] != nil {
			t.Errorf("prompt: %+v, %v", got, err)
		}
		if frame := <-asked; string(frame.Args) != `{"name":"review","arguments":{"style":"short"}}` {
			t.Errorf("the page was asked %s", frame.Args)
		}
		for _, params := range []*mcp.GetPromptParams{{Name: "p__review"}, {Name: "p__review", Arguments: map[string]string{"style": "a", "colour": "b"}}, {Name: "review"}, {Name: "_"}} {
			if _, err := c.GetPrompt(ctx, params); codeOf(err) != jsonrpc.CodeInvalidParams {
				t.Errorf("%+v: %v", params, err)
			}
		}

		read, err := c.ReadResource(ctx, &mcp.ReadResourceParams{URI: "page://p/item/5"})
		if err != nil || len(read.Contents) != 2 || read.Contents[0].URI != "page://p/item/5" || read.Contents[0].Text != "hi" || read.Contents[1].URI != "test://own" || string(read.Contents[1].Blob) != "\x00\x01\x02" {
			t.Errorf("resource: %+v, %v", read, err)
		}
		if frame := <-asked; string(frame.Args) != `{"uri":"item/5","uriTemplate":"item/{id}","variables":{"id":"5"}}` {
			t.Errorf("the page was asked %s", frame.Args)
		}
		for _, uri := range []string{"page://p/none", "cart", "page://q/cart", "jsbridge:_"} {
			if _, err := c.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri}); codeOf(err) != jsonrpc.CodeInvalidParams {
				t.Errorf("%q: %v", uri, err)
			}
		}

		complete := func(ref *mcp.CompleteReference, arg string) ([]string, error) {
			res, err := c.Complete(ctx, &mcp.CompleteParams{Ref: ref, Argument: mcp.CompleteParamsArgument{Name: arg, Value: "f"}})
			if err != nil {
				return nil, err
			}
			return res.Completion.Values, nil
		}
		if values, err := complete(&mcp.CompleteReference{Type: "ref/prompt", Name: "p__review"}, "style"); err != nil || strings.Join(values, " ") != "formal frank" {
			t.Errorf("completion: %q, %v", values, err)
		}
		if frame := <-asked; string(frame.Args) != `{"ref":{"type":"ref/prompt","name":"review"},"argument":{"name":"style","value":"f"}}` {
			t.Errorf("the page was asked %s", frame.Args)
		}
		if values, err := complete(&mcp.CompleteReference{Type: "ref/resource", URI: "page://p/item/{id}"}, "id"); err != nil || len(values) != 2 {
			t.Errorf("completion: %q, %v", values, err)
		}
		if frame := <-asked; !strings.Contains(string(frame.Args), `"uri":"item/{id}"`) {
			t.Errorf("the page was asked %s", frame.Args)
		}
		if values, err := complete(&mcp.CompleteReference{Type: "ref/prompt", Name: "p__review"}, "length"); err != nil || len(values) != 0 || len(asked) != 0 {
			t.Errorf("an argument without suggestions: %q, %v", values, err)
		}
		if _, err := complete(&mcp.CompleteReference{Type: "ref/prompt", Name: "p__none"}, "style"); codeOf(err) != jsonrpc.CodeInvalidParams {
			t.Errorf("completion of an unknown prompt: %v", err)
		}
	})
}

func codeOf(err error) int64 {
	var e *jsonrpc.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}

func TestOfferingsThatFail(t *testing.T) {
	eachEra(t, func(t *testing.T, version string) {
		s := newSide(t, Options{MaxResult: 100}, tenant.Options{})
		c := s.connectAs(version, "/w", nil)
		result := make(chan tenant.Answer, 1)
		p := s.page(s.tenantOf(c), offerings, func(l *tenant.Link, c tenant.CallFrame) { _ = l.Answer(c.ID, <-result) })
		for _, bad := range []string{`null`, `"text"`, `{"messages":[]}`, `{"messages":[{"role":"system","content":{"type":"text","text":""}}]}`, `{"messages":[{"role":"user"}]}`, `{"messages":[null]}`} {
			result <- tenant.Answer{Result: json.RawMessage(bad)}
			if _, err := c.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "p__review", Arguments: map[string]string{"style": "a"}}); codeOf(err) != jsonrpc.CodeInternalError {
				t.Errorf("prompt %s: %v", bad, err)
			}
			if said := <-p.heard; !strings.Contains(said, "review") {
				t.Errorf("the page's console: %q", said)
			}
		}
		for _, bad := range []string{`null`, `{"contents":null}`, `{"contents":[null]}`, `{"contents":[{"text":"` + strings.Repeat("x", 101) + `"}]}`, `{"contents":[{"blob":"!"}]}`} {
			result <- tenant.Answer{Result: json.RawMessage(bad)}
			if _, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "page://p/cart"}); codeOf(err) != jsonrpc.CodeInternalError {
				t.Errorf("resource %s: %v", bad, err)
			}
			<-p.heard
		}
		result <- tenant.Answer{Err: &tenant.PageError{Message: "out of stock"}}
		if _, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "page://p/cart"}); err == nil || !strings.Contains(err.Error(), "out of stock") {
			t.Errorf("a thrown error: %v", err)
		}
		result <- tenant.Answer{Result: json.RawMessage(`[1]`)}
		if _, err := c.Complete(t.Context(), &mcp.CompleteParams{Ref: &mcp.CompleteReference{Type: "ref/prompt", Name: "p__review"}, Argument: mcp.CompleteParamsArgument{Name: "style"}}); codeOf(err) != jsonrpc.CodeInternalError {
			t.Errorf("bad suggestions: %v", err)
		}
	})
}

func TestListChangesAndUpdates(t *testing.T) {
	eachEra(t, func(t *testing.T, version string) {
		s := newSide(t, Options{}, tenant.Options{})
		c := s.connectAs(version, "/w", nil)
		p := s.page(s.tenantOf(c), offerings, answer("1"))
		uri := "page://p/item/7"
		if err := c.Subscribe(t.Context(), &mcp.SubscribeParams{URI: uri}); err != nil {
			t.Fatal(err)
		}
		if w := take(t, p.watched); w != "+item/7" {
			t.Errorf("the page was told %s", w)
		}
		for range 100 {
			p.link.Updated("item/7")
			p.link.Updated("item/8")
		}
		if got := take(t, c.updated); got != uri {
			t.Errorf("updated: %s", got)
		}
		s.register(p.link, `[{"name":"t","description":""}],"prompts":[{"name":"other"}]`)
		take(t, c.prompts)
		take(t, c.resources)
		if len(c.changed) > 1 { // one is that of the page's coming
			t.Errorf("tools changed: %d", len(c.changed))
		}
	})
}

func take[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatal("nothing came")
	}
	panic("not reached")
}

func TestWorkspacesOfStatelessClients(t *testing.T) {
	s := newSide(t, Options{}, tenant.Options{})
	bare, other, named := s.connectAs(stateless, "/", nil), s.connectAs(stateless, "/", nil), s.connectAs(stateless, "/w", nil)
	classic := s.connectAs(withSessions, "/w", nil)
	if s.tenantOf(bare) != s.tenantOf(other) {
		t.Error("two clients without a name have two workspaces")
	}
	if s.tenantOf(named) == s.tenantOf(bare) || s.tenantOf(named) != s.tenantOf(classic) {
		t.Error("a name is not what decides")
	}
	byToken := make(map[tenant.Connect]string)
	for _, token := range []string{"one", "two", "one"} {
		c, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: s.url, HTTPClient: &http.Client{Transport: bearer(token)}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		at := s.tenantOf(&cl{ClientSession: c, t: t})
		if before, ok := byToken[at]; ok && before != token {
			t.Errorf("the tokens %s and %s share a workspace", before, token)
		}
		byToken[at] = token
		_ = c.Close()
	}
	if len(byToken) != 2 {
		t.Errorf("2 tokens gave %d workspaces", len(byToken))
	}
	for at := range byToken {
		if at == s.tenantOf(bare) {
			t.Error("a token's workspace is the default one")
		}
	}
	if n := s.Sessions(); n != 5 {
		t.Errorf("%d sessions, want 5: one of a client, four workspaces", n)
	}
}

type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

func TestSharedSessionsAreReaped(t *testing.T) {
	s := newSide(t, Options{SessionIdle: time.Millisecond}, tenant.Options{EmptyTimeout: time.Hour})
	ss, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: s.url + "/w"}, nil) // which listens to nothing
	if err != nil {
		t.Fatal(err)
	}
	defer ss.Close()
	c := &cl{ClientSession: ss, t: t}
	before := s.tenantOf(c)
	waitUntil(t, "the session's end", func() bool { return s.Sessions() == 0 })
	if s.tenantOf(c) != before {
		t.Error("another tenant after it was reaped")
	}
}

var form = `{"message":"Which size?","requestedSchema":{"type":"object","properties":{"size":{"type":"string","enum":["s","m"]}},"required":["size"]}}`

// asking is a page's tool that asks and returns the answer, or throws what it was
// refused with.
func asking(p **fakePage, params string) func(*tenant.Link, tenant.CallFrame) {
	return func(l *tenant.Link, c tenant.CallFrame) {
		if err := l.Ask(c.ID, "q", tenant.Elicit, json.RawMessage(params)); err != nil {
			_ = l.Answer(c.ID, tenant.Answer{Err: &tenant.PageError{Message: err.Error()}})
			return
		}
		_ = l.Answer(c.ID, <-(*p).answers)
	}
}

func TestElicitation(t *testing.T) {
	for name, answer := range map[string]*mcp.ElicitResult{
		"accept":  {Action: "accept", Content: map[string]any{"size": "m"}},
		"decline": {Action: "decline"},
		"cancel":  {Action: "cancel"},
		"misfit":  {Action: "accept", Content: map[string]any{"size": "xl"}},
	} {
		t.Run(name, func(t *testing.T) {
			eachEra(t, func(t *testing.T, version string) {
				s := newSide(t, Options{}, tenant.Options{})
				c := s.connectAs(version, "/w", func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					if r.Params.Message != "Which size?\n\n[Asked by the web page \"P\", http://a.test]" {
						t.Errorf("asked %q", r.Params.Message)
					}
					return answer, nil
				})
				var p *fakePage
				p = s.page(s.tenantOf(c), `[{"name":"t","description":""}]`, asking(&p, form))
				res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "p__t"})
				if name == "misfit" { // the client itself may refuse to send it
					if err == nil && !res.IsError {
						t.Errorf("%+v", res)
					}
					p.answers <- tenant.Answer{} // ends the page's function, if it waits
					return
				}
				if err != nil || res.IsError || !strings.Contains(firstText(res), `"action":"`+name+`"`) || name == "accept" != strings.Contains(firstText(res), `"size":"m"`) {
					t.Errorf("%v, %v", firstText(res), err)
				}
				s.wantQuestions(t, "answered", 1)
			})
		})
	}
}

func TestElicitationThatCannotBe(t *testing.T) {
	eachEra(t, func(t *testing.T, version string) {
		s := newSide(t, Options{}, tenant.Options{})
		c := s.connectAs(version, "/w", nil)
		var p *fakePage
		p = s.page(s.tenantOf(c), `[{"name":"t","description":""}]`, asking(&p, form))
		res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "p__t"})
		if version == stateless {
			if codeOf(err) != mcp.CodeMissingRequiredClientCapabilities {
				t.Errorf("%v, %v", res, err)
			}
		} else if err != nil || !res.IsError || !strings.Contains(firstText(res), "does not support elicitation") {
			t.Errorf("%v, %v", res, err)
		}
		s.wantQuestions(t, "refused", 1)
	})
}

func TestElicitationOfBadForms(t *testing.T) {
	yes := func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		t.Error("the user was asked")
		return &mcp.ElicitResult{Action: "accept"}, nil
	}
	for _, params := range []string{
		`null`, `{}`, `{"message":"m"}`, `{"message":"m","requestedSchema":{"type":"string"}}`, `{"message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"object"}}}}`,
		`{"message":"m","requestedSchema":{"type":"object","properties":{"a":true}}}`, `{"message":"m","mode":"url","url":"javascript:alert(1)"}`, `{"message":"m","mode":"dance"}`, `[1]`, `{"message":7}`,
	} {
		eachEra(t, func(t *testing.T, version string) {
			s := newSide(t, Options{}, tenant.Options{})
			c := s.connectAs(version, "/w", yes)
			var p *fakePage
			p = s.page(s.tenantOf(c), `[{"name":"t","description":""}]`, asking(&p, params))
			res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "p__t"})
			if err == nil && !res.IsError || codeOf(err) != 0 && codeOf(err) != mcp.CodeMissingRequiredClientCapabilities {
				t.Errorf("%s: %v, %v", params, res, err)
			}
		})
	}
}

func TestNobodyAnswers(t *testing.T) {
	eachEra(t, func(t *testing.T, version string) {
		s := newSide(t, Options{AskTimeout: 50 * time.Millisecond}, tenant.Options{})
		var p *fakePage
		c := s.connectAs(version, "/w", func(ctx context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			if version == stateless { // coming back late, when the call has ended
				take(t, p.stopped)
				return &mcp.ElicitResult{Action: "decline"}, nil
			}
			<-ctx.Done()
			return nil, ctx.Err()
		})
		p = s.page(s.tenantOf(c), `[{"name":"t","description":""}]`, asking(&p, form))
		res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "p__t"})
		s.wantQuestions(t, "unanswered", 1)
		if version == stateless {
			if codeOf(err) != jsonrpc.CodeInvalidParams || !strings.Contains(err.Error(), "requestState") {
				t.Errorf("%v, %v", res, err)
			}
			p.answers <- tenant.Answer{} // ends the page's function
			return
		}
		if err != nil || !res.IsError || !strings.Contains(firstText(res), "nobody answered within") {
			t.Errorf("%v, %v", firstText(res), err)
		}
	})
}

func TestThePageGoesWhileItsQuestionIsOpen(t *testing.T) {
	eachEra(t, func(t *testing.T, version string) {
		s := newSide(t, Options{}, tenant.Options{})
		var p *fakePage
		c := s.connectAs(version, "/w", func(ctx context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			p.link.Leave()
			if version == withSessions {
				<-ctx.Done() // it is told to stop asking
			}
			return &mcp.ElicitResult{Action: "decline"}, nil
		})
		p = s.page(s.tenantOf(c), `[{"name":"t","description":""}]`, asking(&p, form))
		res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "p__t"})
		if err != nil || !res.IsError || !strings.Contains(firstText(res), "went away") {
			t.Errorf("%+v, %v", res, err)
		}
		s.wantQuestions(t, map[string]string{withSessions: "ended", stateless: "answered"}[version], 1) // which nobody waited for
		p.answers <- tenant.Answer{}                                                                    // ends the page's function
	})
}

func TestQuestionsInPlaceOfAResult(t *testing.T) {
	eachEra(t, func(t *testing.T, version string) {
		s := newSide(t, Options{}, tenant.Options{})
		c := s.connectAs(version, "/w", func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"size": "m"}}, nil
		})
		on := func(l *tenant.Link, c tenant.CallFrame) {
			ask := func(state string) {
				_ = l.Answer(c.ID, tenant.Answer{Result: json.RawMessage(`{"inputRequests":{"k":{"method":"elicitation/create","params":` + form + `}},"requestState":"` + state + `"}`)})
			}
			switch c.Retry.State {
			case "":
				ask("one")
			case "one": // twice in a row
				ask("two")
			default:
				result := map[tenant.Method]string{
					tenant.RunTool:      string(c.Retry.Responses),
					tenant.GetPrompt:    `{"messages":[{"role":"user","content":{"type":"text","text":"filled"}}]}`,
					tenant.ReadResource: `{"contents":[{"text":"read"}]}`,
				}[c.Method]
				_ = l.Answer(c.ID, tenant.Answer{Result: json.RawMessage(result)})
			}
		}
		s.join(s.tenantOf(c), offerings, on)
		res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "p__t"})
		if err != nil || res.IsError || firstText(res) != `{"k":{"action":"accept","content":{"size":"m"}}}` {
			t.Errorf("tool: %+v, %v", res, err)
		}
		got, err := c.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "p__review", Arguments: map[string]string{"style": "a"}})
		if err != nil || len(got.Messages) != 1 {
			t.Errorf("prompt: %+v, %v", got, err)
		}
		read, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "page://p/cart"})
		if err != nil || len(read.Contents) != 1 {
			t.Errorf("resource: %+v, %v", read, err)
		}
		s.wantQuestions(t, map[string]string{withSessions: "answered", stateless: "passed"}[version], 6)
	})
}

func TestBareNames(t *testing.T) {
	eachEra(t, func(t *testing.T, version string) {
		s := newSide(t, Options{}, tenant.Options{Bare: "P"})
		c := s.connectAs(version, "/w", nil)
		l := s.join(s.tenantOf(c), `[{"name":"t","description":""},{"name":"describe_tools","description":""},{"name":"a__b","description":""}],"prompts":[{"name":"ask"}]`, answer("1"))
		names := strings.Join(c.names()[len(s.builtinTools):], " ")
		if names != "p__a__b p__describe_tools t" {
			t.Errorf("tools: %s", names)
		}
		if prompts, err := c.ListPrompts(t.Context(), nil); err != nil || prompts.Prompts[0].Name != "ask" {
			t.Errorf("prompts: %+v, %v", prompts, err)
		}
		if res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "t"}); err != nil || firstText(res) != "1" {
			t.Errorf("call: %+v, %v", res, err)
		}
		l.Leave()
		if res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "t"}); err != nil || !res.IsError || !strings.Contains(firstText(res), "left") {
			t.Errorf("after it left: %+v, %v", res, err)
		}
	})
}
