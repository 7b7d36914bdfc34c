package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// question is one that the human at a client is asked.
type question struct {
	*mcp.ElicitParams
	answer chan<- *mcp.ElicitResult
	gone   <-chan struct{} // closed when the client is told that nobody waits any more
}

// asks is the first line of the question; the next says who asks.
func (q question) asks() string {
	line, _, _ := strings.Cut(q.Message, "\n")
	return line
}

// human has the questions to a client's user put to a test.
func human(t *testing.T) (asked <-chan question, more func(*mcp.ClientOptions)) {
	questions := make(chan question, 10)
	return questions, func(o *mcp.ClientOptions) {
		o.Capabilities = &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{}}}
		o.ElicitationHandler = func(ctx context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			answer := make(chan *mcp.ElicitResult, 1)
			questions <- question{r.Params, answer, ctx.Done()}
			select {
			case a := <-answer:
				return a, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-t.Context().Done(): // it failed
				return nil, t.Context().Err()
			}
		}
	}
}

// ended is how a call ended.
type ended struct {
	*mcp.CallToolResult
	err error
}

// said is what the agent gets to read.
func (e ended) said(t *testing.T) string {
	t.Helper()
	if e.err != nil {
		return e.err.Error()
	}
	return text(t, e.CallToolResult)
}

// begin calls a tool and does not wait.
func (c *client) begin(ctx context.Context, name string, args any) <-chan ended {
	done := make(chan ended, 1)
	go func() {
		r, err := c.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: args})
		done <- ended{r, err}
	}()
	return done
}

var accepted = &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ada"}}

const askTools = `[
	{name: 'ask', description: 'asks for a name', fn: async (_, ctx) => {
		window.aborted = '';
		ctx.signal.addEventListener('abort', () => window.aborted = String(ctx.signal.reason));
		try {
			const { action, content } = await ctx.elicit('Your name?', nameForm);
			return action + ' ' + content?.name;
		} catch (e) {
			window.refused = e.message;
			throw e;
		}
	}},
	{name: 'quick', description: '', fn: () => 'quick'},
	{name: 'load', description: '', fn: () => String(performance.timeOrigin)},
	{name: 'sign_in', description: '', fn: async (_, ctx) => (await ctx.elicit('Sign in', '/login?a=b')).action},
	{name: 'params', description: '', fn: (_, ctx) => ctx.elicit({message: 'Your name?', requestedSchema: nameForm})},
	{name: 'two', description: '', fn: async (_, ctx) => (await Promise.all(['First?', 'Second?'].map((message) => ctx.elicit(message, nameForm)))).map(({ content }) => content.name).join(' ')},
	{name: 'busy', description: '', fn: async (_, ctx) => {
		for (let i = 1; i <= 20; i++) ctx.progress(i, 30, 'step');
		ctx.log('debug', 'for nobody');
		ctx.log('warning', {step: 'before'});
		const { content } = await ctx.elicit('Your name?', nameForm);
		ctx.progress(21, 30, 'asked');
		ctx.log('info', content.name);
		ctx.progress(30, 30, 'done');
		return 'busy for ' + content.name;
	}},
	{name: 'sample', description: '', fn: async (_, ctx) => {
		const short = await ctx.sample('Hello');
		const long = await ctx.sample({messages: [{role: 'user', content: 'Hello'}, {role: 'assistant', content: {type: 'text', text: 'Hi'}}], maxTokens: 7, systemPrompt: 'Be brief'});
		return [short, long].map(({ content, model }) => [content].flat()[0].text + ' by ' + model).join(', ');
	}},
	{name: 'roots', description: '', fn: async (_, ctx) => (await ctx.roots()).map(({ uri, name }) => uri + ' ' + name).join()},
	{name: 'who', description: '', fn: (_, ctx) => ctx.agent},
	{name: 'try', description: '', params: {what: 'string', rethrow: {type: 'boolean', optional: true}}, fn: async ({ what, rethrow }, ctx) => {
		const asking = {form: () => ctx.elicit('Your name?', nameForm), url: () => ctx.elicit('Sign in', '/login'), sample: () => ctx.sample('Hello'), roots: () => ctx.roots()};
		try {
			return await asking[what]();
		} catch (e) {
			if (rethrow) throw e;
			return [e instanceof Error, e.name, e.code, e.message].join('|');
		}
	}},
	{name: 'rounds', description: '', fn: (_, { inputResponses: answers, requestState }) => {
		const ask = (message) => ({name: {method: 'elicitation/create', params: {message, requestedSchema: nameForm}}});
		if (requestState == undefined) return {inputRequests: ask('First?'), requestState: 'one'};
		if (requestState == 'one') return {inputRequests: ask('Second?'), requestState: 'two:' + answers.name.content.name};
		return requestState + ' ' + answers.name.content.name;
	}},
];
const nameForm = {type: 'object', properties: {name: {type: 'string', title: 'Name', minLength: 1}}, required: ['name']};
window.__mcpPrompts = [
	{name: 'ask', fn: async (_, ctx) => 'for ' + (await ctx.elicit('Your name?', nameForm)).content.name},
	{name: 'rounds', fn: (_, { inputResponses: answers }) => answers ? 'for ' + answers.name.content.name : {inputRequests: {name: {method: 'elicitation/create', params: {message: 'Your name?', requestedSchema: nameForm}}}}},
];
window.__mcpResources = [
	{uri: 'ask', fn: async (_, ctx) => 'of ' + (await ctx.elicit('Your name?', nameForm)).content.name},
	{uriTemplate: 'rounds/{id}', fn: ({ id }, { inputResponses: answers }) => answers ? id + ' of ' + answers.name.content.name : {inputRequests: {name: {method: 'elicitation/create', params: {message: 'Your name?', requestedSchema: nameForm}}}}},
]`

// askPage is a page that asks, in the workspace w and connected at each load.
func askPage(t *testing.T, s *server, title string) *tab {
	t.Helper()
	c := s.connectTo("/mcp/w")
	tb := newTab(t).open(newSite(t).page("/", fixture(title, askTools, c.snippet())))
	waitFor(t, "the page", func() bool { return c.tool(strings.ToLower(title)+"__ask") != nil })
	return tb
}

func TestHumanAnswers(t *testing.T) {
	s := serve(t)
	tb := askPage(t, s, "P")
	s.eras(tb, func(t *testing.T, version string) {
		asked, more := human(t)
		c := s.connectAs(version, "/mcp/w", more)
		for want, answer := range map[string]*mcp.ElicitResult{"accept Ada": accepted, "decline undefined": {Action: "decline"}, "cancel undefined": {Action: "cancel"}} {
			done := c.begin(c.ctx(), "p__ask", nil)
			q := take(t, asked)
			if want := fmt.Sprintf("Your name?\n\n[Asked by the web page \"P\", %s]", eval[string](tb, `location.origin`)); q.Message != want || !strings.Contains(fmt.Sprint(q.RequestedSchema), "title:Name") {
				t.Errorf("asked %q with %v", q.Message, q.RequestedSchema)
			}
			q.answer <- answer
			if r := take(t, done); r.err != nil || r.IsError || text(t, r.CallToolResult) != want {
				t.Errorf("want %s: %s", want, r.said(t))
			}
		}
		done := c.begin(c.ctx(), "p__params", nil)
		take(t, asked).answer <- accepted
		if r := take(t, done); r.err != nil || fmt.Sprint(r.StructuredContent) != "map[action:accept content:map[name:Ada]]" {
			t.Errorf("by MCP's own params: %s", r.said(t))
		}
		done = c.begin(c.ctx(), "call_page_tool", map[string]any{"name": "p__ask"})
		take(t, asked).answer <- accepted
		if r := take(t, done); r.said(t) != "accept Ada" {
			t.Errorf("by call_page_tool: %s", r.said(t))
		}

		done = c.begin(c.ctx(), "p__sign_in", nil)
		q := take(t, asked)
		if want := eval[string](tb, `location.origin`) + "/login?a=b"; q.Mode != "url" || q.asks() != "Sign in" || q.URL != want || q.ElicitationID == "" {
			t.Errorf("asked by URL: %+v, want %s", q.ElicitParams, want)
		}
		q.answer <- &mcp.ElicitResult{Action: "accept"}
		if r := take(t, done); r.said(t) != "accept" {
			t.Errorf("by URL: %s", r.said(t))
		}
		testTwoQuestions(t, c, asked)
	})
}

func testTwoQuestions(t *testing.T, c *client, asked <-chan question) {
	done := c.begin(c.ctx(), "p__two", nil)
	answer := func(q question) {
		q.answer <- &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "to " + q.asks()}}
	}
	first := take(t, asked)
	if c.InitializeResult().ProtocolVersion == stateless { // the second may be in the next round
		answer(first)
		answer(take(t, asked))
	} else {
		answer(take(t, asked))
		answer(first)
	}
	if r := take(t, done); r.said(t) != "to First? to Second?" {
		t.Errorf("two at once: %s", r.said(t))
	}
}

func TestPromptsAndResourcesAsk(t *testing.T) {
	s := serve(t)
	tb := askPage(t, s, "P")
	s.eras(tb, func(t *testing.T, version string) {
		c := s.connectAs(version, "/mcp/w", func(o *mcp.ClientOptions) {
			n := 0
			o.ElicitationHandler = func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				n++
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": fmt.Sprint("Ada", n)}}, nil
			}
		})
		got := []string{c.ok("p__rounds", nil), c.asked("p__ask", nil), c.asked("p__rounds", nil), c.readText("page://p/ask"), c.readText("page://p/rounds/x")}
		if want := "two:Ada1 Ada2, for Ada3, for Ada4, of Ada5, x of Ada6"; strings.Join(got, ", ") != want {
			t.Errorf("%q, want %s", got, want)
		}
	})
}

// The page goes, or the agent loses patience, while the human is asked. Each ends
// with a clear result, and what is left goes on working.
func TestEndsWhileTheHumanIsAsked(t *testing.T) {
	s := serve(t)
	tb := askPage(t, s, "P")
	s.eras(tb, func(t *testing.T, version string) {
		asked, more := human(t)
		c := s.connectAs(version, "/mcp/w", more)
		goneWith := func(r ended, title string) {
			t.Helper()
			if got := r.said(t); r.err != nil || !r.IsError || !strings.HasPrefix(got, fmt.Sprintf("the page %q", title)) || !strings.Contains(got, "went away") || !strings.Contains(got, "may have run") {
				t.Errorf("%s went: %s", title, got)
			}
		}
		works := func() {
			t.Helper()
			done := c.begin(c.ctx(), "p__ask", nil)
			take(t, asked).answer <- accepted
			if r := take(t, done); r.said(t) != "accept Ada" {
				t.Errorf("afterwards: %s", r.said(t))
			}
		}

		load := c.ok("p__load", nil)
		done := c.begin(c.ctx(), "p__ask", nil)
		q := take(t, asked)
		tb.reload()
		if version == withSessions {
			take(t, q.gone)
		} else { // the client knows once it comes back with the answer
			waitFor(t, "the reloaded page", func() bool {
				r := c.call("p__load", nil)
				return !r.IsError && text(t, r) != load
			})
			q.answer <- accepted
		}
		goneWith(take(t, done), "P")
		works()

		title := map[string]string{withSessions: "Sessions", stateless: "Stateless"}[version]
		other := askPage(t, s, title)
		done = c.begin(c.ctx(), strings.ToLower(title)+"__ask", nil)
		q = take(t, asked)
		other.shut()
		if version == withSessions {
			take(t, q.gone)
		} else {
			waitFor(t, "the tab to be gone", func() bool { return strings.Contains(c.ok("describe_tools", nil), `"state":"reconnecting"`) })
			q.answer <- accepted
		}
		goneWith(take(t, done), title)
		works()
	})
}

func TestAgentCancelsWhileTheHumanIsAsked(t *testing.T) {
	// A stateless client that has been told to ask need not say that it gave up.
	s := serve(t, "--ask-timeout", "5s")
	tb := askPage(t, s, "P")
	s.eras(tb, func(t *testing.T, version string) {
		asked, more := human(t)
		c := s.connectAs(version, "/mcp/w", more)
		ctx, cancel := context.WithCancel(context.Background())
		done := c.begin(ctx, "p__ask", nil)
		q := take(t, asked)
		cancel()
		if r := take(t, done); r.err == nil {
			t.Errorf("the cancelled call has a result: %s", r.said(t))
		}
		waitFor(t, "the page's signal", func() bool { return eval[string](tb, `aborted`) != "" })
		q.answer <- accepted // for nobody
		if got := c.ok("p__quick", nil); got != "quick" {
			t.Errorf("afterwards: %s", got)
		}
	})
}

func TestHumanNeverAnswers(t *testing.T) {
	s := serve(t, "--ask-timeout", "1s")
	tb := askPage(t, s, "P")
	s.eras(tb, func(t *testing.T, version string) {
		tb.paste(`aborted = refused = ''; 1`)
		asked, more := human(t)
		c := s.connectAs(version, "/mcp/w", more)
		done := c.begin(c.ctx(), "p__ask", nil)
		q := take(t, asked)
		if version == withSessions {
			take(t, q.gone)
		} else {
			waitFor(t, "the page's signal", func() bool { return eval[string](tb, `aborted`) != "" })
			q.answer <- accepted // too late
		}
		if r := take(t, done); r.err == nil && !r.IsError || !strings.Contains(r.said(t), "--ask-timeout") {
			t.Errorf("nobody answered: %s", r.said(t))
		}
		waitFor(t, "the page's promise", func() bool { return eval[string](tb, `refused`) != "" })
		if got := eval[string](tb, `refused`); version == withSessions && !strings.Contains(got, "nobody answered within 1s") {
			t.Errorf("the page was told %s", got)
		}
		if got := c.ok("p__quick", nil); got != "quick" {
			t.Errorf("afterwards: %s", got)
		}
	})
}
