package agent

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"jsbridge/tenant"
)

// ask calls a built-in and gives its text.
func (c *cl) ask(name, args string) (text string, failed bool) {
	c.t.Helper()
	r, err := c.CallTool(c.t.Context(), &mcp.CallToolParams{Name: name, Arguments: json.RawMessage(args)})
	if err != nil {
		c.t.Fatal(err)
	}
	return r.Content[0].(*mcp.TextContent).Text, r.IsError
}

func (c *cl) ok(name, args, want string) string {
	c.t.Helper()
	text, failed := c.ask(name, args)
	if failed || !strings.Contains(text, want) {
		c.t.Errorf("%s %s: failed %v, %s; want %q", name, args, failed, text, want)
	}
	return text
}

func (c *cl) refused(name, args string, want ...string) {
	c.t.Helper()
	text, failed := c.ask(name, args)
	for _, w := range want {
		if !failed || !strings.Contains(text, w) {
			c.t.Errorf("%s %s: failed %v, %s; want %q", name, args, failed, text, w)
		}
	}
}

func at(connect string) tenant.Connect { return tenant.ParseConnect(connect) }

func (c *cl) pageNames() []string {
	return slices.DeleteFunc(c.names(), func(n string) bool { return !strings.Contains(n, "__") })
}

func TestChannels(t *testing.T) {
	s := newSide(t, Options{}, tenant.Options{})
	c, other := s.connect(), s.connect()
	tool := `[{"name":"draw","description":"d"}]`
	s.join(at("bug123:htmlpaint"), tool, answer(`"paint"`))
	l := s.join(at("bug123:bulletino"), tool, answer(`"post"`))
	s.join(at("other:x"), tool, answer("1"))
	if n := c.pageNames(); len(n) != 0 {
		t.Errorf("a session that joined nothing sees %v", n)
	}
	c.ok("list_channels", `{}`, `[{"channel":"bug123","joined":false,"connections":[{"label":"htmlpaint","toolCount":1},{"label":"bulletino","toolCount":1}]},{"channel":"other"`)
	c.ok("find_channel", `{"query":"bgu123"}`, `[{"name":"bug123","score":0.`)
	c.ok("find_channel", `{"query":"zzz"}`, `[]`)
	c.ok("describe_channel", `{"channel":"bug123"}`, `"toolPrefix":"htmlpaint"`)
	c.refused("describe_channel", `{"channel":"nope"}`, "nope", "bug123")
	c.ok("join_channel", `{"channel":"bug123"}`, `"joined":true`)
	c.wait()
	if want := []string{"bulletino__draw", "htmlpaint__draw"}; !slices.Equal(c.pageNames(), want) {
		t.Errorf("sees %v, want %v", c.pageNames(), want)
	}
	c.ok("htmlpaint__draw", `{}`, "paint")
	c.ok("bulletino__draw", `{}`, "post")
	c.ok("describe_tools", `{}`, `"scope":"channel","channel":"bug123"`)
	if n := other.pageNames(); len(n) != 0 {
		t.Errorf("another session sees %v", n)
	}
	c.refused("leave_channel", `{"channel":"other"}`, "bug123")
	c.refused("join_channel", `{"channel":"!!"}`, "letters")
	c.ok("join_channel", `{"channel":"other"}`, `"allJoined":["bug123","other"]`)
	c.ok("leave_channel", `{"channel":"bug123"}`, `"joined":["other"]`)
	c.refused("call_page_tool", `{"name":"htmlpaint__draw"}`, "left")
	c.ok("join_channel", `{"channel":"bug123"}`, "")
	l.Leave()
	if want := []string{"htmlpaint__draw", "x__draw"}; !slices.Equal(c.pageNames(), want) {
		t.Errorf("sees %v, want %v", c.pageNames(), want)
	}
	c.ok("join_channel", `{"channel":""}`, `"left":["other","bug123"]`)
	if n := c.pageNames(); len(n) != 0 {
		t.Errorf("after leaving all it sees %v", n)
	}
	// One that no page is in yet.
	c.ok("join_channel", `{"channel":"later"}`, `"connections":[]`)
	s.join(at("later:app"), tool, answer("1"))
	if want := []string{"app__draw"}; !slices.Equal(c.pageNames(), want) {
		t.Errorf("sees %v, want %v", c.pageNames(), want)
	}
}

func TestRootsReachEverySession(t *testing.T) {
	s := newSide(t, Options{}, tenant.Options{})
	c := s.connect()
	s.join(at("my-app"), `[{"name":"a","description":"d"}]`, answer("1"))
	c.wait()
	later := s.connect()
	for _, c := range []*cl{c, later} {
		if want := []string{"my_app__a"}; !slices.Equal(c.pageNames(), want) {
			t.Errorf("sees %v, want %v", c.pageNames(), want)
		}
		c.ok("describe_connection", `{"name":"my-app"}`, `"scope":"root"`)
		c.ok("describe_connection", `{"name":"my_app"}`, `"label":"my-app"`)
		c.refused("describe_connection", `{"name":"none"}`, "my-app")
	}
	// What clashes is told apart in the view, and routed by it.
	s.join(s.tenantOf(c), `[{"name":"a","description":"d"}]`, answer("2"))
	s.join(at("p"), `[{"name":"a","description":"d"}]`, answer("3"))
	if want := []string{"my_app__a", "p2__a", "p__a"}; !slices.Equal(c.pageNames(), want) {
		t.Errorf("sees %v, want %v", c.pageNames(), want)
	}
	c.ok("p__a", `{}`, "2")
	c.ok("p2__a", `{}`, "3")
	later.ok("p__a", `{}`, "3")
}

func TestSnippetForms(t *testing.T) {
	s := newSide(t, Options{Inline: "((S,T)=>{})"}, tenant.Options{})
	c := s.connect()
	id := s.tenantOf(c).Session
	c.ok("get_embed_snippet", `{"connect":"my app"}`, "&tenant=my-app\");")
	c.ok("get_embed_snippet", `{"connect":"chan:"}`, "&tenant=chan%3A\");")
	c.ok("get_embed_snippet", `{"form":"script"}`, `<script type="module" src="`+s.url+`/main.js?server=`)
	c.ok("get_embed_snippet", `{"form":"script"}`, `&amp;tenant=`+id+`"></script>`)
	c.ok("get_embed_snippet", `{"form":"inline","connect":"a:b"}`, fmt.Sprintf(`((S,T)=>{})(%q,"a:b");`, s.url))
	c.refused("get_embed_snippet", `{"connect":":"}`, "names nothing")
	c.refused("get_embed_snippet", `{"form":"bookmark"}`, "form")
}

// registering answers the reserved calls as a page's script does.
func registering(t *testing.T, s *side) func(*tenant.Link, tenant.CallFrame) {
	dynamic := map[string]string{}
	return func(l *tenant.Link, f tenant.CallFrame) {
		var args struct{ Name, Description, Code, Path, ToolName string }
		if err := json.Unmarshal(f.Args, &args); err != nil {
			t.Error(err)
		}
		switch {
		case f.Tool == "__unregister_tool__":
			delete(dynamic, args.ToolName)
		case args.Code == "oops(":
			_ = l.Answer(f.ID, tenant.Answer{Err: &tenant.PageError{Message: "SyntaxError: oops"}})
			return
		case args.Name != "lost":
			dynamic[args.Name] = fmt.Sprintf(`{"name":%q,"description":%q,"source":"dynamic"}`, args.Name, args.Description)
		}
		tools := []string{`{"name":"host","description":"d"}`}
		for _, d := range dynamic {
			tools = append(tools, d)
		}
		s.register(l, "["+strings.Join(tools, ",")+"]")
		_ = l.Answer(f.ID, tenant.Answer{Result: json.RawMessage(`"done"`)})
	}
}

func TestRunTimeRegistration(t *testing.T) {
	s := newSide(t, Options{}, tenant.Options{})
	c := s.connect()
	c.refused("register_page_tool_by_code", `{"name":"x","description":"d","code":"return 1"}`, "no page is connected")
	l := s.join(s.tenantOf(c), `[{"name":"host","description":"d"}]`, registering(t, s))
	c.ok("register_page_tool_by_code", `{"name":"x","description":"d","code":"return 1","params":{"n":{"type":"number"}}}`, `"published":"p__x"`)
	c.ok("register_page_tool_by_path", `{"name":"y","description":"d","path":"app.y"}`, `"published":"p__y"`)
	if want := []string{"p__host", "p__x", "p__y"}; !slices.Equal(c.pageNames(), want) {
		t.Errorf("sees %v, want %v", c.pageNames(), want)
	}
	c.refused("register_page_tool_by_code", `{"name":"x","description":"d","code":"return 1"}`, "p__x", "unregister_page_tool")
	c.refused("register_page_tool_by_code", `{"name":"host","description":"d","code":"return 1"}`, "itself declares")
	c.refused("register_page_tool_by_code", `{"name":"z","description":"d","code":"oops("}`, "SyntaxError: oops")
	c.refused("register_page_tool_by_code", `{"name":"z","description":"d","code":"1","params":{"n":{"type":"nonsense"}}}`, "nonsense")
	c.refused("register_page_tool_by_code", `{"name":"__unregister_tool__","description":"d","code":"1"}`, "reserved")
	c.refused("register_page_tool_by_code", `{"name":"lost","description":"d","code":"1"}`, "does not offer")
	c.refused("unregister_page_tool", `{"toolName":"host"}`, "itself declares")
	c.refused("unregister_page_tool", `{"toolName":"none"}`, "describe_tools")
	c.ok("unregister_page_tool", `{"toolName":"p__x"}`, "done")
	c.ok("unregister_page_tool", `{"toolName":"y"}`, "done")
	if want := []string{"p__host"}; !slices.Equal(c.pageNames(), want) {
		t.Errorf("sees %v, want %v", c.pageNames(), want)
	}
	second := s.join(at("root"), `[]`, func(*tenant.Link, tenant.CallFrame) { t.Error("another tab was asked") })
	for _, name := range []string{"register_page_tool_by_code", "register_page_tool_by_path", "unregister_page_tool", "identify_connection"} {
		args := `"name":"x","description":"d","code":"return 1","path":"a.b","toolName":"x"`
		c.refused(name, `{`+args+`}`, l.ID(), second.ID())
		c.refused(name, `{"id":"nobody",`+args+`}`, "nobody", l.ID())
	}
}

// What a page's script confirms is checked, and bounded.
func TestConfirmationIsNotBelieved(t *testing.T) {
	for what, answer := range map[string]string{
		"long":   `"` + strings.Repeat("x", 100_000) + `"`,
		"failed": `{"content":[{"type":"text","text":"no"}],"isError":true}`,
	} {
		s := newSide(t, Options{}, tenant.Options{})
		c := s.connect()
		s.join(s.tenantOf(c), `[{"name":"dyn","description":"d","source":"dynamic"}]`, func(l *tenant.Link, f tenant.CallFrame) {
			_ = l.Answer(f.ID, tenant.Answer{Result: json.RawMessage(answer)})
		})
		for _, call := range [][2]string{
			{"unregister_page_tool", `{"toolName":"dyn"}`},
			{"register_page_tool_by_code", `{"name":"new","description":"d","code":"1"}`},
		} {
			if text, failed := c.ask(call[0], call[1]); !failed || len(text) > 3000 {
				t.Errorf("%s, %s: failed %v, %d bytes: %.100s", what, call[0], failed, len(text), text)
			}
		}
	}
}

// Pages that wait for approval are invisible to agents, their channels' names
// included.
func TestPendingPagesAreInvisible(t *testing.T) {
	s := newSide(t, Options{}, tenant.Options{Allow: func(string, bool) bool { return false }})
	c := s.connect()
	s.join(at("do-as-i-say:x"), `[{"name":"a","description":"d"}]`, answer("1"))
	s.join(at("root-of-evil"), `[{"name":"a","description":"d"}]`, answer("1"))
	for _, call := range [][2]string{
		{"list_channels", "{}"}, {"find_channel", `{"query":"say"}`}, {"describe_channel", `{"channel":"do-as-i-say"}`}, {"describe_channel", `{"channel":"nope"}`},
		{"describe_connection", `{"name":"root-of-evil"}`}, {"describe_connection", `{"name":"nope"}`}, {"describe_tools", "{}"}, {"identify_connection", "{}"}, {"join_channel", `{"channel":"do-as-i-say"}`},
	} {
		text, _ := c.ask(call[0], call[1])
		if strings.Contains(text, `"label"`) || call[1] == "{}" && (strings.Contains(text, "say") || strings.Contains(text, "evil")) {
			t.Errorf("%s %s shows %s", call[0], call[1], text)
		}
	}
	if n := c.pageNames(); len(n) != 0 {
		t.Errorf("tools: %v", n)
	}
}

func TestPageCode(t *testing.T) {
	s := newSide(t, Options{}, tenant.Options{PageCode: tenant.RefuseCode})
	c := s.connect()
	s.join(s.tenantOf(c), `[]`, registering(t, s))
	c.refused("register_page_tool_by_code", `{"name":"x","description":"d","code":"return 1"}`, "--page-code")
	c.ok("register_page_tool_by_path", `{"name":"y","description":"d","path":"app.y"}`, `"published":"p__y"`)

	s = newSide(t, Options{}, tenant.Options{PageCode: tenant.AskCode})
	c = s.connect()
	asked := make(chan string, 1)
	register := registering(t, s)
	s.join(s.tenantOf(c), `[]`, func(l *tenant.Link, f tenant.CallFrame) {
		asked <- string(f.Args)
		register(l, f)
	})
	c.ok("register_page_tool_by_code", `{"name":"x","description":"d","code":"return 1"}`, `"published":"p__x"`)
	if args := <-asked; !strings.Contains(args, `"ask":true`) {
		t.Errorf("the page was not told to ask: %s", args)
	}
}

func TestRank(t *testing.T) {
	names := []string{"bug123", "bug-1234-login", "release", "htmlpaint"}
	for query, want := range map[string]string{"bug123": "bug123", "login": "bug-1234-login", "relaese": "release", "HTML": "htmlpaint", "": "", "   ": "", "qqqqqq": ""} {
		got := ""
		if found := rank(query, names); len(found) > 0 {
			got = found[0].Name
		}
		if got != want {
			t.Errorf("%q finds %q, want %q", query, got, want)
		}
	}
	if f := rank("bug123", names); f[0].Score != 1 {
		t.Errorf("an equal name scores %v", f[0].Score)
	}
}
