package e2e

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Both protocol eras, by their newest versions.
const (
	withSessions = "2025-11-25"
	stateless    = "2026-07-28"
)

// eras runs a part of a test once for each era, with one server and one tab.
func (s *server) eras(tb *tab, do func(t *testing.T, version string)) {
	outer := s.t
	for _, version := range []string{withSessions, stateless} {
		outer.Run(version, func(t *testing.T) {
			s.t, tb.t = t, t
			defer func() { s.t, tb.t = outer, outer }()
			do(t, version)
		})
	}
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

func codeOf(err error) int64 {
	var e *jsonrpc.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}

// promptNames, resourceURIs and templateURIs are the lists as this client gets them.
func (c *client) promptNames() string {
	c.t.Helper()
	var names []string
	for p, err := range c.Prompts(c.ctx(), nil) {
		if err != nil {
			c.t.Fatalf("prompts/list: %v", err)
		}
		names = append(names, p.Name)
	}
	return strings.Join(names, " ")
}

func (c *client) resourceURIs() string {
	c.t.Helper()
	var uris []string
	for r, err := range c.Resources(c.ctx(), nil) {
		if err != nil {
			c.t.Fatalf("resources/list: %v", err)
		}
		uris = append(uris, r.URI)
	}
	return strings.Join(uris, " ")
}

func (c *client) templateURIs() string {
	c.t.Helper()
	var uris []string
	for r, err := range c.ResourceTemplates(c.ctx(), nil) {
		if err != nil {
			c.t.Fatalf("resources/templates/list: %v", err)
		}
		uris = append(uris, r.URITemplate)
	}
	return strings.Join(uris, " ")
}

func (c *client) prompt(name string, args map[string]string) *mcp.GetPromptResult {
	c.t.Helper()
	got, err := c.GetPrompt(c.ctx(), &mcp.GetPromptParams{Name: name, Arguments: args})
	if err != nil {
		c.t.Fatalf("prompt %s: %v", name, err)
	}
	return got
}

// asked is the text of a prompt that is one message of the user.
func (c *client) asked(name string, args map[string]string) string {
	c.t.Helper()
	got := c.prompt(name, args)
	if len(got.Messages) != 1 || got.Messages[0].Role != "user" {
		c.t.Fatalf("prompt %s: %d messages", name, len(got.Messages))
	}
	tc, ok := got.Messages[0].Content.(*mcp.TextContent)
	if !ok {
		c.t.Fatalf("prompt %s: %T", name, got.Messages[0].Content)
	}
	return tc.Text
}

func (c *client) read(uri string) []*mcp.ResourceContents {
	c.t.Helper()
	got, err := c.ReadResource(c.ctx(), &mcp.ReadResourceParams{URI: uri})
	if err != nil {
		c.t.Fatalf("resource %s: %v", uri, err)
	}
	return got.Contents
}

// readText is the text of a resource that has nothing else.
func (c *client) readText(uri string) string {
	c.t.Helper()
	got := c.read(uri)
	if len(got) != 1 || got[0].URI != uri {
		c.t.Fatalf("resource %s: %d contents", uri, len(got))
	}
	return got[0].Text
}

func (c *client) subscribe(uri string) {
	c.t.Helper()
	if err := c.Subscribe(c.ctx(), &mcp.SubscribeParams{URI: uri}); err != nil {
		c.t.Fatalf("subscribing to %s: %v", uri, err)
	}
}

func (c *client) unsubscribe(uri string) {
	c.t.Helper()
	if err := c.Unsubscribe(c.ctx(), &mcp.UnsubscribeParams{URI: uri}); err != nil {
		c.t.Fatalf("unsubscribing from %s: %v", uri, err)
	}
}

func promptRef(name string) *mcp.CompleteReference {
	return &mcp.CompleteReference{Type: "ref/prompt", Name: name}
}

func templateRef(uri string) *mcp.CompleteReference {
	return &mcp.CompleteReference{Type: "ref/resource", URI: uri}
}

// suggest completes a value; known are those of the other arguments.
func (c *client) suggest(ref *mcp.CompleteReference, arg, value string, known map[string]string) mcp.CompletionResultDetails {
	c.t.Helper()
	params := &mcp.CompleteParams{Ref: ref, Argument: mcp.CompleteParamsArgument{Name: arg, Value: value}}
	if known != nil {
		params.Context = &mcp.CompleteContext{Arguments: known}
	}
	got, err := c.Complete(c.ctx(), params)
	if err != nil {
		c.t.Fatalf("completing %s: %v", arg, err)
	}
	return got.Completion
}

// mirror is a list as a client has it that reads it again when it is told of a
// change, and not before.
type mirror struct {
	t       *testing.T
	changed <-chan struct{}
	list    func() string
	now     string
}

func (c *client) mirror(changed <-chan struct{}, list func() string) *mirror {
	return &mirror{c.t, changed, list, list()}
}

func (m *mirror) becomes(want string) {
	m.t.Helper()
	for m.now != want {
		select {
		case <-m.changed:
			m.now = m.list()
		case <-time.After(patience):
			m.t.Fatalf("the list is %q, want %q, and nothing more is told", m.now, want)
		}
	}
}

const offer = `[{name: 'who', description: '', fn: () => 'me'}];
window.__mcpPrompts = [{name: 'say', arguments: [{name: 'what', required: true}], fn: ({what}) => 'say ' + what}];
window.__mcpResources = [{uri: 'text', fn: () => 'the text'}, {uriTemplate: 'item/{id}', fn: ({id}) => 'item ' + id}]`

// A page that was pasted once stays with its workspace, for clients of both eras,
// and no other workspace sees any of it.
func TestPageStaysWithItsWorkspace(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state.json")
	s := serve(t, "--state", state)
	first := s.connectAs(stateless, "/mcp/proj", nil)
	line := first.snippet()
	tb := newTab(t).open(newSite(t).page("/", fixture("Proj", offer, ""))).paste(line)
	first.waitTools("proj__who")
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	whole := func(c *client) {
		t.Helper()
		c.waitTools("proj__who")
		if now := c.snippet(); now != line {
			t.Errorf("the line was %s and is %s", line, now)
		}
		if got := c.promptNames() + ", " + c.resourceURIs() + ", " + c.templateURIs(); got != "proj__say, page://proj/text, page://proj/item/{id}" {
			t.Errorf("after a restart: %s", got)
		}
		if got := c.ok("proj__who", nil) + c.asked("proj__say", map[string]string{"what": "so"}) + c.readText("page://proj/item/5"); got != "mesay soitem 5" {
			t.Errorf("after a restart: %s", got)
		}
	}
	s.eras(tb, func(t *testing.T, version string) {
		whole(s.connectAs(version, "/mcp/proj", nil))
		for _, path := range []string{"/mcp", "/mcp/other"} {
			c := s.connectAs(version, path, nil)
			if got := strings.Join(c.pageTools(), " ") + c.promptNames() + c.resourceURIs() + c.templateURIs(); got != "" {
				t.Errorf("%s sees %s", path, got)
			}
			if _, err := c.CallTool(c.ctx(), &mcp.CallToolParams{Name: "proj__who"}); codeOf(err) != jsonrpc.CodeInvalidParams {
				t.Errorf("%s: tool: %v", path, err)
			}
			if _, err := c.GetPrompt(c.ctx(), &mcp.GetPromptParams{Name: "proj__say", Arguments: map[string]string{"what": "so"}}); codeOf(err) != jsonrpc.CodeInvalidParams {
				t.Errorf("%s: prompt: %v", path, err)
			}
			for _, uri := range []string{"page://proj/text", "page://proj/item/5"} {
				if _, err := c.ReadResource(c.ctx(), &mcp.ReadResourceParams{URI: uri}); codeOf(err) != jsonrpc.CodeInvalidParams {
					t.Errorf("%s: %s: %v", path, uri, err)
				}
			}
		}
	})
	s.kill()
	s = serve(t, "--state", state, "--port", s.port())
	s.eras(tb, func(t *testing.T, version string) { whole(s.connectAs(version, "/mcp/proj", nil)) })
}

func TestBareConnection(t *testing.T) {
	s := serve(t, "--bare", "Shop")
	site := newSite(t)
	first := s.connectTo("/mcp/w")
	url := site.page("/", fixture("Shop", offer, first.snippet()))
	tb := newTab(t).open(url)
	waitFor(t, "the bare tool", func() bool { return first.tool("who") != nil })
	second := newTab(t).open(url)
	first.waitTools("shop2__who")
	s.eras(tb, func(t *testing.T, version string) {
		c := s.connectAs(version, "/mcp/w", nil)
		if got := c.promptNames(); got != "say shop2__say" {
			t.Errorf("prompts: %s", got)
		}
		if got := c.resourceURIs(); got != "page://shop/text page://shop2/text" {
			t.Errorf("resources: %s", got)
		}
		mark := fmt.Sprintf("%q", version)
		tb.paste(`__mcpTools[0].fn = () => 'first' + ` + mark + `; 1`)
		if got := c.ok("who", nil); got != "first"+version {
			t.Errorf("the bare tool is that of %s", got)
		}
		if got := c.ok("shop2__who", nil); got != "me" {
			t.Errorf("the tool with a prefix is that of %s", got)
		}
		if got := c.asked("say", map[string]string{"what": "so"}); got != "say so" {
			t.Errorf("the bare prompt says %s", got)
		}
		if c.tool("describe_tools") == nil {
			t.Error("a built-in has gone")
		}
	})
	// Leaving does not hand the names over, nor does coming back lose them.
	second.shut()
	first.waitTools()
	if first.tool("who") == nil {
		t.Error("the bare tool went with another tab")
	}
	tb.reload()
	waitFor(t, "the bare tool of the reloaded tab", func() bool {
		r, err := first.CallTool(context.Background(), &mcp.CallToolParams{Name: "who"})
		return err == nil && !r.IsError && text(t, r) == "me"
	})
}
