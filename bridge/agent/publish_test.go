package agent

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"jsbridge/manifest"
	"jsbridge/tenant"
)

var publishedName = regexp.MustCompile(`^[a-z][A-Za-z0-9_-]*$`)

// What a page may declare can be published: as MCP, under a legal name of its
// own, and even by the SDK's AddTool, which panics on what it dislikes.
func FuzzPublish(f *testing.F) {
	for _, seed := range []string{
		`{"tools":[]}`,
		`{"appLabel":"🎉","tools":[{"name":"a.b"},{"name":"a_b"},{"name":"A_B"},{"name":"9"}]}`,
		`{"tools":[{"name":"x","inputSchema":{"type":"object","x-mcp-header":"y","properties":{"x-mcp-header":{"type":"string","x-mcp-header":"z"}}}}]}`,
		`{"tools":[{"name":"x","description":"d","params":{"s":{"type":"array"},"n":"int"},"outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true},"icons":[{"src":"https://a.test/i.png","sizes":["1x1"]}]}]}`,
		`{"tools":[{"name":"x","inputSchema":true},{"name":"y","inputSchema":"{\"type\":\"object\"}"}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := manifest.Parse(data, manifest.Limits{})
		if err != nil {
			return
		}
		r := tenant.NewRegistry(tenant.Options{})
		tn, err := r.Open()
		if err != nil {
			t.Fatal(err)
		}
		defer tn.Close()
		l, err := r.Join(tenant.Connect{Session: tn.ID()}, tenant.Joining{Transport: &fakePage{}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Register(m); err != nil {
			t.Fatal(err)
		}
		snap := tn.Snapshot()
		if len(snap.Entries()) != len(m.Tools) {
			t.Fatalf("%d of %d tools published", len(snap.Entries()), len(m.Tools))
		}
		srv := mcp.NewServer(&mcp.Implementation{Name: "x"}, nil)
		seen := make(map[string]bool)
		routed := make(map[string]bool)
		for _, e := range snap.Entries() {
			if !publishedName.MatchString(e.Name) || len(e.Name) > manifest.DefaultMaxName || seen[strings.ToLower(e.Name)] {
				t.Errorf("bad or second name %q", e.Name)
			}
			seen[strings.ToLower(e.Name)] = true
			if found, ok := snap.Find(e.Name); !ok || found.Tool != e.Tool || routed[found.Tool.Name] {
				t.Errorf("%q does not route to its own tool", e.Name)
			}
			routed[e.Tool.Name] = true
			tool := toolOf(e).(*mcp.Tool)
			if _, err := json.Marshal(tool); err != nil {
				t.Errorf("%q can't be encoded: %v", e.Name, err)
			}
			srv.AddTool(tool, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return nil, nil })
		}
	})
}
