package agent

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"jsbridge/tenant"
)

func TestDescribeTools(t *testing.T) {
	s := newSide(t, Options{}, tenant.Options{})
	c := s.connect()
	l := s.join(s.tenantOf(c), `[{"name":"a","description":"does a","params":{"n":"number"},"example":{"n":1}},{"name":"bad","params":5},{"name":"re","inputSchema":{"type":"object","properties":{"x":{"type":"string","pattern":"(?=x)"}}}}]`, answer("1"))
	r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "describe_tools"})
	if err != nil {
		t.Fatal(err)
	}
	text := r.Content[0].(*mcp.TextContent).Text
	var got struct {
		Connections []describedConnection `json:"connections"`
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Connections) != 1 {
		t.Fatalf("%s", text)
	}
	p := got.Connections[0]
	if p.ID != l.ID() || p.ToolPrefix != "p" || p.Label != "P" || p.State != tenant.Ready || p.Origin != "http://a.test" || p.Kind != "browser" {
		t.Errorf("connection %+v", p)
	}
	if len(p.Tools) != 2 || p.Tools[0].Name != "p__a" || p.Tools[0].PageName != "a" || p.Tools[0].Source != "host" || string(p.Tools[0].Example) != `{"n":1}` {
		t.Errorf("tools %+v", p.Tools)
	}
	// One was refused, the other is published but can't be checked.
	if len(p.Problems) != 2 || p.Problems[0].Name != "bad" || p.Problems[1].Name != "re" {
		t.Errorf("problems %+v", p.Problems)
	}
	structured, err := json.Marshal(r.StructuredContent)
	if err != nil {
		t.Fatal(err)
	}
	var same any
	if json.Unmarshal(structured, &same) != nil || same == nil {
		t.Error("no structured content")
	}
}

func TestBuiltinsSayWhatToDo(t *testing.T) {
	s := newSide(t, Options{}, tenant.Options{})
	c := s.connect()
	tn := s.tenantOf(c)
	ask := func(name, args, want string) {
		t.Helper()
		r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: json.RawMessage(args)})
		if err != nil {
			t.Fatal(err)
		}
		if text := r.Content[0].(*mcp.TextContent).Text; !r.IsError || !strings.Contains(text, want) {
			t.Errorf("%s %s: error %v, %s; want %q", name, args, r.IsError, text, want)
		}
	}
	ask("identify_connection", `{}`, "get_embed_snippet")
	ask("call_page_tool", `{"name":"p__a"}`, "get_embed_snippet")
	ask("call_page_tool", `{}`, `"name"`)
	ask("call_page_tool", `{"name":"describe_tools"}`, "call it directly")
	l := s.join(tn, `[{"name":"a","description":"","params":{"n":"number"}}]`, answer("1"))
	ask("call_page_tool", `{"name":"p__b"}`, "p__")
	ask("call_page_tool", `{"name":"p__a","arguments":{"n":"x"}}`, `"n"`)
	ask("identify_connection", `{"id":"nobody"}`, l.ID())
	s.join(tn, `[]`, answer("1"))
	ask("identify_connection", `{}`, "2 pages")
}
