package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"jsbridge/bridge/dashboard"
	"jsbridge/tenant"
)

const someTools = `[{"name":"add","description":"d","params":{"n":{"type":"number"}},"example":{"n":1}}]`

const near = "http://localhost:3000"

func TestDashboardShowsWhatThereIs(t *testing.T) {
	b := newBoard(t, Options{AllowOrigins: []string{"https://flag.example"}})
	v := b.watch("")
	s := v.sees("a server", func(s *dashboard.State) bool { return s.Server.Epoch != "" })
	if s.Server.MCP != b.base+"/mcp" || s.Server.PageCode != "allow" || s.Server.Redacted || s.Server.Started.IsZero() {
		t.Errorf("the server: %+v", s.Server)
	}
	if !reflect.DeepEqual(s.Origins.Allowed, []dashboard.AllowedOrigin{{Origin: "https://flag.example", By: "flag"}}) {
		t.Errorf("origins: %+v", s.Origins)
	}
	a := b.agent("/mcp/work")
	b.open("room:one", near, someTools, echo)
	b.open("two", near, someTools, echo)
	b.open("far", "https://far.example", someTools, echo)
	if _, err := a.CallTool(t.Context(), &mcp.CallToolParams{Name: "join_channel", Arguments: map[string]any{"channel": "room"}}); err != nil {
		t.Fatal(err)
	}
	s = v.sees("two published connections in a session", func(s *dashboard.State) bool {
		return len(s.Sessions) == 1 && s.Sessions[0].Connections == 2 && len(s.Origins.Waiting) == 1 && len(s.Connections) == 3
	})
	if x := s.Sessions[0]; x.Client != (dashboard.Client{Name: "tester", Version: "1.2"}) || x.Era != "session" || x.Protocol != "2025-11-25" || x.Workspace != "work" || !slices.Equal(x.Channels, []string{"room"}) {
		t.Errorf("the session: %+v", x)
	}
	if w := s.Origins.Waiting[0]; w.Origin != "https://far.example" || w.Pages != 1 || !w.Approvable {
		t.Errorf("waiting: %+v", w)
	}
	if !slices.Contains(s.Channels, dashboard.Channel{ID: "room", Connections: 1, Sessions: 1}) || !slices.Contains(s.Workspaces, dashboard.Workspace{ID: "work", Sessions: 1}) {
		t.Errorf("channels %+v, workspaces %+v", s.Channels, s.Workspaces)
	}
	if c := v.connection("one"); c.Kind != "channel" || c.Channel != "room" || c.Tools != 1 || c.State != tenant.Ready || !c.Current || c.URL != "http://localhost/x" {
		t.Errorf("in the channel: %+v", c)
	}
	if c := v.connection("far"); c.State != tenant.Pending {
		t.Errorf("waiting: %+v", c)
	}
	b.do("POST", "/api/origins", map[string]string{"origin": "https://far.example"}, 200)
	v.sees("the approval", func(s *dashboard.State) bool {
		return len(s.Origins.Waiting) == 0 && slices.Contains(s.Origins.Allowed, dashboard.AllowedOrigin{Origin: "https://far.example", By: "state"}) &&
			!slices.ContainsFunc(s.Connections, func(c dashboard.Connection) bool { return c.State == tenant.Pending })
	})
	if _, err := a.CallTool(t.Context(), &mcp.CallToolParams{Name: "two__add", Arguments: map[string]any{"n": 1}}); err != nil {
		t.Fatal(err)
	}
	s = v.sees("the call", func(s *dashboard.State) bool {
		return len(s.Calls) == 1 && s.Calls[0].State == "done" && s.Counters.Calls == 1
	})
	if c := s.Calls[0]; c.By != "agent" || c.Name != "two__add" || c.Session != s.Sessions[0].ID || c.Client.Name != "tester" || c.ArgBytes != 7 || c.Label != "two" || c.Method != "tool" {
		t.Errorf("the call: %+v", c)
	}
	_ = a.Close()
	v.sees("no session", func(s *dashboard.State) bool { return len(s.Sessions) == 0 })

	// What a tab made of the changes is what another is told at once.
	last, kinds, _ := v.told()
	fresh := b.watch("")
	got := fresh.sees("a server", func(s *dashboard.State) bool { return s.Server.Epoch != "" })
	byID := func(list []dashboard.Connection) {
		slices.SortFunc(list, func(a, b dashboard.Connection) int { return strings.Compare(a.ID, b.ID) })
	}
	s = v.sees("anything", func(*dashboard.State) bool { return true })
	byID(got.Connections)
	byID(s.Connections)
	if !reflect.DeepEqual(got, s) {
		t.Errorf("after %s (%v) a tab has\n%+v\nanother is told\n%+v", last, kinds, s, got)
	}
	if kinds[0] != "snapshot" || slices.Contains(kinds[1:], "snapshot") {
		t.Errorf("events: %v", kinds)
	}
}

func TestStatelessClientsAreShown(t *testing.T) {
	b := newBoard(t, Options{})
	v := b.watch("")
	client := mcp.NewClient(&mcp.Implementation{Name: "modern", Version: "3"}, nil)
	ss, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: b.base + "/mcp"}, &mcp.ClientSessionOptions{ProtocolVersion: "2026-07-28"})
	if err != nil {
		t.Fatal(err)
	}
	defer ss.Close()
	if _, err := ss.ListTools(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	s := v.sees("the workspace's session", func(s *dashboard.State) bool { return len(s.Sessions) == 1 && s.Sessions[0].Client.Name != "" })
	if x := s.Sessions[0]; x.Era != "stateless" || x.Protocol != "2026-07-28" || x.Workspace != "default" || x.Client.Name != "modern" {
		t.Errorf("the session: %+v", x)
	}
	// A bearer token is shown to nobody, not even all of its hash.
	req := `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	status, _, body := b.ask("POST", "/mcp", req, map[string]string{"Content-Type": "application/json", "Accept": "application/json", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/list", "Authorization": "Bearer topsecret"})
	if status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	s = v.sees("another session", func(s *dashboard.State) bool { return len(s.Sessions) == 2 && len(s.Workspaces) == 2 })
	i := slices.IndexFunc(s.Workspaces, func(w dashboard.Workspace) bool { return regexp.MustCompile(`^bearer:[0-9a-f]{12}$`).MatchString(w.ID) })
	if i < 0 || s.Workspaces[i].Sessions != 1 || s.Sessions[1].Workspace != s.Workspaces[i].ID {
		t.Fatalf("workspaces: %+v, sessions %+v", s.Workspaces, s.Sessions)
	}
	// Its snippet can be had all the same.
	var out struct{ Connect string }
	_ = json.Unmarshal([]byte(b.do("POST", "/api/snippets", map[string]string{"workspace": s.Workspaces[i].ID}, 200)), &out)
	var other struct{ Connect string }
	_ = json.Unmarshal([]byte(b.do("POST", "/api/snippets", map[string]string{"session": s.Sessions[1].ID}, 200)), &other)
	if out.Connect == "" || out != other {
		t.Errorf("snippets: %+v, %+v", out, other)
	}
}

func TestDetailsAndActions(t *testing.T) {
	b := newBoard(t, Options{})
	v := b.watch("")
	p := b.open("room:one", near, someTools+`,"prompts":[{"name":"ask","arguments":[{"name":"who","required":true}]}],"resources":[{"uri":"cart","mimeType":"text/plain"}],"resourceTemplates":[{"uriTemplate":"item/{id}"}],"problems":[{"name":"bad","index":3,"reason":"no"}]`, echo)
	c := v.connection("one")
	at := "/api/connections/" + c.ID
	d := get[dashboard.ConnectionDetails](b, at)
	if len(d.Tools) != 1 || d.Tools[0].Name != "one__add" || d.Tools[0].PageName != "add" || d.Tools[0].Source != "host" || string(d.Tools[0].Example) != `{"n":1}` || !json.Valid(d.Tools[0].InputSchema) {
		t.Errorf("tools: %+v", d.Tools)
	}
	if len(d.Prompts) != 1 || d.Prompts[0].Name != "one__ask" || !d.Prompts[0].Arguments[0].Required || len(d.Resources) != 2 || d.Resources[0].URI != "page://one/cart" || d.Resources[1].URITemplate != "page://one/item/{id}" {
		t.Errorf("prompts %+v, resources %+v", d.Prompts, d.Resources)
	}
	if len(d.ProblemList) != 1 || d.ProblemList[0].Name != "bad" || d.ID != c.ID || d.Connection.Channel != "room" {
		t.Errorf("problems: %+v, %+v", d.ProblemList, d.Connection)
	}

	b.do("POST", at+"/identify", struct{}{}, 204)
	if f := p.hears("identify"); f["label"] != "one" {
		t.Errorf("identify: %v", f)
	}
	b.do("POST", at+"/rename", map[string]string{"label": " My\u202eApp\n "}, 204)
	if f := p.hears("registered"); f["prefix"] != "myapp" && f["prefix"] != "my_app" {
		t.Errorf("renamed: %v", f)
	}
	after := v.sees("the new name", func(s *dashboard.State) bool { return strings.HasPrefix(s.Connections[0].Prefix, "my") }).Connections[0]
	if after.Rev <= c.Rev || after.ID != c.ID || strings.ContainsRune(after.Label, '\u202e') {
		t.Errorf("renamed: %+v", after)
	}
	b.do("POST", at+"/rename", map[string]string{"label": "\u200b"}, 400)
	b.do("POST", at+"/move", map[string]string{"to": "::"}, 400)
	b.do("POST", at+"/move", map[string]string{"to": "00000000-0000-4000-8000-000000000000"}, 404)
	b.do("POST", at+"/move", map[string]string{"to": "other room:x"}, 204)
	if f := p.hears("move_channel"); f["channel"] != "other-room:x" {
		t.Errorf("move: %v", f)
	}
	b.do("POST", at+"/disconnect", struct{}{}, 204)
	if f := p.hears("closed"); f["code"] != float64(1000) {
		t.Errorf("closed: %v", f)
	}
	v.sees("no connection", func(s *dashboard.State) bool { return len(s.Connections) == 0 && len(s.Channels) == 0 })
	for _, path := range []string{"/identify", "/rename", "/move", "/disconnect", "/tools", "/call"} {
		b.do("POST", at+path, struct{}{}, 404)
	}
	b.do("GET", at, nil, 404)
	b.do("DELETE", at+"/tools/x", nil, 404)
}

// scripted is a page whose script adds and removes tools.
func (b *board) scripted(connect string) *tab {
	var p *tab
	dynamic := map[string]string{}
	p = b.open(connect, near, someTools, func(f map[string]any) any {
		args, _ := f["args"].(map[string]any)
		name, _ := args["name"].(string)
		switch f["name"] {
		case "__register_tool_by_code__", "__register_tool_by_path__":
			if args["code"] == "throw" {
				p.say(fmt.Sprintf(`{"type":"call_result","id":%q,"error":{"message":"bad code","name":"SyntaxError"}}`, f["id"]))
				return nil
			}
			origin := map[string]any{"kind": "path", "path": args["path"]}
			if args["code"] != nil {
				origin = map[string]any{"kind": "code", "code": args["code"]}
			}
			tool, _ := json.Marshal(map[string]any{"name": name, "description": args["description"], "params": args["params"], "source": "dynamic", "origin": origin})
			dynamic[name] = string(tool)
		case "__unregister_tool__":
			delete(dynamic, args["toolName"].(string))
		default:
			return args
		}
		tools := `{"name":"add","description":"d"}`
		for _, d := range dynamic {
			tools += "," + d
		}
		p.say(`{"type":"register_tools","appLabel":"Page","tools":[` + tools + `]}`)
		return "done"
	})
	return p
}

func TestAddCallAndRemoveATool(t *testing.T) {
	b := newBoard(t, Options{})
	v := b.watch("")
	b.scripted("one")
	c := v.connection("one")
	at := "/api/connections/" + c.ID
	added := b.do("POST", at+"/tools", map[string]any{"name": "x/ü", "description": "d", "code": "return args", "params": map[string]any{"n": map[string]any{"type": "number"}}}, 200)
	if !strings.Contains(added, `"published":"one__x`) || !strings.Contains(added, `"confirmation":"done"`) {
		t.Errorf("added: %s", added)
	}
	b.do("POST", at+"/tools", map[string]any{"name": "y", "description": "d", "path": "a.b"}, 200)
	for _, bad := range []struct {
		body map[string]any
		want int
	}{
		{map[string]any{"name": "y", "description": "d", "path": "a.b"}, 409},
		{map[string]any{"name": "add", "description": "d", "path": "a.b"}, 409},
		{map[string]any{"name": "z", "description": "d"}, 400},
		{map[string]any{"name": "z", "description": "d", "path": "a", "code": "b"}, 400},
		{map[string]any{"name": "", "description": "d", "path": "a"}, 400},
		{map[string]any{"name": "z", "description": "d", "code": "1", "params": map[string]any{"n": map[string]any{"type": "nonsense"}}}, 400},
		{map[string]any{"name": "z", "description": "d", "code": "throw"}, 422},
		{map[string]any{"name": 1}, 400},
	} {
		b.do("POST", at+"/tools", bad.body, bad.want)
	}
	var called struct {
		Call   string
		MS     *float64
		Result struct {
			Content           []struct{ Type, Text string }
			StructuredContent map[string]any
			IsError           bool
		}
	}
	call := func(tool, args string) {
		t.Helper()
		called.Result.IsError = false
		if err := json.Unmarshal([]byte(b.do("POST", at+"/call", map[string]any{"tool": tool, "arguments": json.RawMessage(args)}, 200)), &called); err != nil {
			t.Fatal(err)
		}
	}
	call("x/ü", `{"n":"5"}`)
	if called.Result.IsError || called.Result.StructuredContent["n"] != float64(5) || called.MS == nil {
		t.Errorf("called: %+v", called)
	}
	d := get[dashboard.DetailedCall](b, "/api/calls/"+called.Call)
	if d.By != "dashboard" || string(d.Arguments) != `{"n":5}` || string(d.Result) != `{"n":5}` || d.State != "done" || d.Connection != c.ID {
		t.Errorf("in the log: %+v", d)
	}
	call("x/ü", `{"n":"many"}`)
	if !called.Result.IsError || !strings.Contains(called.Result.Content[0].Text, `"n"`) || called.Call != "" {
		t.Errorf("wrong arguments: %+v", called)
	}
	b.do("POST", at+"/call", map[string]any{"tool": "none"}, 404)

	b.do("DELETE", at+"/tools/x%2F%C3%BC", nil, 204)
	b.do("DELETE", at+"/tools/x%2F%C3%BC", nil, 404)
	b.do("DELETE", at+"/tools/add", nil, 409)

	// Everything went through the log as the dashboard's, and made no notice.
	s := v.sees("the calls", func(s *dashboard.State) bool { return len(s.Calls) >= 5 && s.Counters.Running == 0 })
	names := map[string]int{}
	for _, c := range s.Calls {
		names[c.Name]++
		if c.By != "dashboard" {
			t.Errorf("a call by %s", c.By)
		}
	}
	if names["register_page_tool_by_code"] != 2 || names["register_page_tool_by_path"] != 1 || names["unregister_page_tool"] != 1 {
		t.Errorf("calls: %v", names)
	}
	if _, _, notices := v.told(); len(notices) != 0 {
		t.Errorf("notices: %+v", notices)
	}

	// What an agent does makes one.
	a := b.agent("/mcp")
	if r, err := a.CallTool(t.Context(), &mcp.CallToolParams{Name: "register_page_tool_by_code", Arguments: map[string]any{"name": "z", "description": "does z", "code": "return 1"}}); err != nil || r.IsError {
		t.Fatalf("%+v, %v", r, err)
	}
	if r, err := a.CallTool(t.Context(), &mcp.CallToolParams{Name: "unregister_page_tool", Arguments: map[string]any{"toolName": "one__z"}}); err != nil || r.IsError {
		t.Fatalf("%+v, %v", r, err)
	}
	v.sees("two notices", func(*dashboard.State) bool { return len(v.notices) == 2 })
	_, _, notices := v.told()
	if n := notices[0]; n.Kind != "registered" || n.Published != "one__z" || n.Name != "z" || n.Origin == nil || n.Origin.Code != "return 1" || n.Client.Name != "tester" || n.Connection != c.ID || n.Description != "does z" {
		t.Errorf("the notice: %+v", n)
	}
	if notices[1].Kind != "unregistered" {
		t.Errorf("the other notice: %+v", notices[1])
	}
}

// A human hears of what an agent did while no dashboard was open.
func TestNoticesAwaitADashboard(t *testing.T) {
	b := newBoard(t, Options{})
	b.watch("").close()
	p := b.scripted("one")
	p.hears("registered")
	a := b.agent("/mcp")
	if r, err := a.CallTool(t.Context(), &mcp.CallToolParams{Name: "register_page_tool_by_code", Arguments: map[string]any{"name": "z", "description": "d", "code": "return 1"}}); err != nil || r.IsError {
		t.Fatalf("%+v, %v", r, err)
	}
	v := b.watch("")
	v.sees("the notice", func(*dashboard.State) bool { return len(v.notices) == 1 })
}

func TestPageCodeBindsTheDashboard(t *testing.T) {
	b := newBoard(t, Options{Tenant: tenant.Options{PageCode: tenant.RefuseCode}})
	v := b.watch("")
	b.scripted("one")
	at := "/api/connections/" + v.connection("one").ID
	b.do("POST", at+"/tools", map[string]any{"name": "x", "description": "d", "code": "return 1"}, 403)
	b.do("POST", at+"/tools", map[string]any{"name": "x", "description": "d", "path": "a.b"}, 200)
	if s := v.sees("a server", func(s *dashboard.State) bool { return s.Server.Epoch != "" }); s.Server.PageCode != "off" {
		t.Errorf("the page is told %q", s.Server.PageCode)
	}
}

func TestCancelARunningCall(t *testing.T) {
	b := newBoard(t, Options{})
	v := b.watch("")
	var p *tab
	p = b.open("one", near, someTools, func(f map[string]any) any {
		if f["progress"] == true {
			p.say(fmt.Sprintf(`{"type":"progress","id":%q,"progress":1,"total":2,"message":"half"}`, f["id"]))
		}
		return nil
	})
	v.connection("one")
	a := b.agent("/mcp")
	done := make(chan string, 1)
	go func() {
		r, err := a.CallTool(context.Background(), &mcp.CallToolParams{Name: "one__add", Arguments: map[string]any{"n": 1}})
		text := fmt.Sprint(err)
		if err == nil && len(r.Content) == 1 {
			text = fmt.Sprint(r.IsError, r.Content[0].(*mcp.TextContent).Text)
		}
		done <- text
	}()
	s := v.sees("live progress", func(s *dashboard.State) bool { return len(s.Calls) == 1 && s.Calls[0].Progress != nil })
	if pr := *s.Calls[0].Progress; pr.Progress != 1 || pr.Total != 2 || pr.Message != "half" {
		t.Errorf("progress: %+v", pr)
	}
	v.sees("a running session", func(s *dashboard.State) bool {
		return len(s.Sessions) == 1 && s.Sessions[0].Running == 1 && s.Counters.Running == 1
	})
	id := s.Calls[0].ID
	b.do("POST", "/api/calls/"+id+"/cancel", struct{}{}, 204)
	if text := <-done; !strings.HasPrefix(text, "true") || !strings.Contains(text, "cancelled by the user") || !strings.Contains(text, "may have run") {
		t.Errorf("the agent was told %s", text)
	}
	if f := p.hears("cancel"); !strings.Contains(f["reason"].(string), "dashboard") {
		t.Errorf("the page was told %v", f)
	}
	v.sees("the call's end", func(s *dashboard.State) bool {
		return s.Calls[0].State == "cancelled" && s.Sessions[0].Running == 0 && s.Counters.Running == 0
	})
	b.do("POST", "/api/calls/"+id+"/cancel", struct{}{}, 409)
	b.do("POST", "/api/calls/c99/cancel", struct{}{}, 404)
	b.do("GET", "/api/calls/c99", nil, 404)
}

func TestCallLog(t *testing.T) {
	for _, redact := range []bool{false, true} {
		b := newBoard(t, Options{Redact: redact})
		v := b.watch("")
		b.open("one", near, someTools, echo)
		at := "/api/connections/" + v.connection("one").ID
		for i := range 3 {
			b.do("POST", at+"/call", map[string]any{"tool": "add", "arguments": map[string]int{"n": i}}, 200)
		}
		log := b.do("GET", "/api/calls.jsonl", nil, 200)
		lines := strings.Split(strings.TrimSpace(log), "\n")
		for i, line := range lines {
			var d dashboard.DetailedCall
			if err := json.Unmarshal([]byte(line), &d); err != nil || d.ID != fmt.Sprintf("c%d", i+1) {
				t.Errorf("line %d: %s, %v", i, line, err)
			}
			if want := fmt.Sprintf(`{"n":%d}`, i); redact != (d.Arguments == nil) || redact != (d.Result == nil) || redact != (d.Omitted == "redacted") || !redact && string(d.Result) != want {
				t.Errorf("redact %v: %s", redact, line)
			}
		}
		if len(lines) != 3 {
			t.Errorf("%d lines", len(lines))
		}
		if s := v.sees("a server", func(s *dashboard.State) bool { return true }); s.Server.Redacted != redact {
			t.Errorf("redacted is %v", s.Server.Redacted)
		}
	}
}

func TestSnippets(t *testing.T) {
	b := newBoard(t, Options{})
	a := b.agent("/mcp")
	v := b.watch("")
	s := v.sees("a session", func(s *dashboard.State) bool { return len(s.Sessions) == 1 })
	own, err := a.CallTool(t.Context(), &mcp.CallToolParams{Name: "get_embed_snippet"})
	if err != nil {
		t.Fatal(err)
	}
	line := own.Content[0].(*mcp.TextContent).Text
	snippet := func(body map[string]string) (out struct{ Snippet, Connect string }) {
		t.Helper()
		if err := json.Unmarshal([]byte(b.do("POST", "/api/snippets", body, 200)), &out); err != nil {
			t.Fatal(err)
		}
		if out.Connect == "" || !strings.Contains(out.Snippet, strings.ReplaceAll(out.Connect, ":", "%3A")) && !strings.Contains(out.Snippet, out.Connect) {
			t.Errorf("%v: %.200s", body, out.Snippet)
		}
		return out
	}
	if got := snippet(map[string]string{"session": s.Sessions[0].ID, "form": "import"}); got.Snippet != line {
		t.Errorf("the session's line is %s, its agent has %s", got.Snippet, line)
	}
	if got := snippet(map[string]string{"connect": "my room:x", "form": "script"}); !strings.HasPrefix(got.Snippet, "<script") || got.Connect != "my-room:x" {
		t.Errorf("%+v", got)
	}
	if got := snippet(map[string]string{"connect": "x", "form": "inline"}); strings.Contains(got.Snippet, "import(") && !strings.HasSuffix(got.Snippet, `"x");`) {
		t.Errorf("%.100s", got.Snippet)
	}
	first, again, other := snippet(map[string]string{}), snippet(map[string]string{"workspace": "default"}), snippet(map[string]string{"workspace": "other"})
	if first != again || first == other {
		t.Errorf("workspaces: %+v, %+v, %+v", first, again, other)
	}
	v.sees("the workspaces", func(s *dashboard.State) bool { return len(s.Workspaces) == 2 })
	for _, bad := range []map[string]string{{"workspace": "a b"}, {"workspace": "bearer:000000000000"}, {"connect": "::"}, {"form": "bookmark"}, {"workspace": "x", "connect": "y"}, {"session": "x", "connect": "y"}} {
		b.do("POST", "/api/snippets", bad, 400)
	}
	b.do("POST", "/api/snippets", map[string]string{"session": "s99"}, 404)
}
