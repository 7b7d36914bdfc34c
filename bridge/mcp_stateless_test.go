package bridge

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"
)

const stateless = "2026-07-28"

// statelessBody is a request as that version wants it, which says in each what
// older clients say in initialize.
func statelessBody(version, method, params string) string {
	return `{"jsonrpc":"2.0","id":2,"method":"` + method + `","params":{` + params + `"_meta":{"io.modelcontextprotocol/protocolVersion":"` + version +
		`","io.modelcontextprotocol/clientInfo":{"name":"raw","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
}

// codes of MCP 2026-07-28.
const (
	codeHeaderMismatch     = -32020
	codeUnsupportedVersion = -32022
)

func TestStatelessRequests(t *testing.T) {
	e := newEdge(t, Options{})
	list, discover := statelessBody(stateless, "tools/list", ""), statelessBody(stateless, "server/discover", "")
	call := statelessBody(stateless, "tools/call", `"name":"get_embed_snippet",`)
	for name, row := range map[string]struct {
		method, body string
		headers      []string
		status, code int
	}{
		"discover":                     {"POST", discover, []string{"Mcp-Method", "server/discover"}, 200, 0},
		"list":                         {"POST", list, []string{"Mcp-Method", "tools/list"}, 200, 0},
		"list, JSON only":              {"POST", list, []string{"Mcp-Method", "tools/list", "Accept", "application/json"}, 200, 0},
		"call":                         {"POST", call, []string{"Mcp-Method", "tools/call", "Mcp-Name", "get_embed_snippet"}, 200, 0},
		"a session of long ago":        {"POST", list, []string{"Mcp-Method", "tools/list", "Mcp-Session-Id", "unknown"}, 200, 0},
		"no Mcp-Method":                {"POST", list, nil, 400, codeHeaderMismatch},
		"another Mcp-Method":           {"POST", list, []string{"Mcp-Method", "tools/call"}, 400, codeHeaderMismatch},
		"no Mcp-Name":                  {"POST", call, []string{"Mcp-Method", "tools/call"}, 400, codeHeaderMismatch},
		"another Mcp-Name":             {"POST", call, []string{"Mcp-Method", "tools/call", "Mcp-Name", "describe_tools"}, 400, codeHeaderMismatch},
		"another version in the body":  {"POST", statelessBody("2025-11-25", "tools/list", ""), []string{"Mcp-Method", "tools/list"}, 400, codeHeaderMismatch},
		"no version in the body":       {"POST", toolsList, []string{"Mcp-Method", "tools/list"}, 400, -32602},
		"a version to come":            {"POST", statelessBody("2027-01-01", "tools/list", ""), []string{"Mcp-Method", "tools/list", "Mcp-Protocol-Version", "2027-01-01"}, 400, codeUnsupportedVersion},
		"a version to come, discovers": {"POST", statelessBody("2027-01-01", "server/discover", ""), []string{"Mcp-Method", "server/discover", "Mcp-Protocol-Version", "2027-01-01"}, 400, codeUnsupportedVersion},
		"unknown method":               {"POST", statelessBody(stateless, "tools/invent", ""), []string{"Mcp-Method", "tools/invent"}, 404, -32601},
		"batch":                        {"POST", "[" + list + "]", []string{"Mcp-Method", "tools/list"}, 400, -32600},
		"bad JSON":                     {"POST", "{", []string{"Mcp-Method", "tools/list"}, 400, -32700},
		"wrong Content-Type":           {"POST", list, []string{"Mcp-Method", "tools/list", "Content-Type", "text/plain"}, 415, -32600},
		"GET":                          {"GET", "", nil, 405, -32600},
		"DELETE":                       {"DELETE", "", nil, 405, -32600},
		"PUT":                          {"PUT", list, nil, 405, -32600},
	} {
		r := e.do(row.method, "/mcp", row.body, headers(append([]string{"Mcp-Protocol-Version", stateless}, row.headers...)...))
		if r.StatusCode != row.status || r.code() != row.code {
			t.Errorf("%s: %v; want %d and %d", name, r, row.status, row.code)
		}
		if allow := r.Header.Get("Allow"); row.status == 405 && allow != "POST" {
			t.Errorf("%s: Allow %q", name, allow)
		}
		if id := r.Header.Get("Mcp-Session-Id"); id != "" {
			t.Errorf("%s: a session %q", name, id)
		}
		if row.code != codeUnsupportedVersion || len(r.messages) == 0 || r.messages[0].Error == nil {
			continue
		}
		var data struct {
			Supported []string
			Requested string
		}
		if err := json.Unmarshal(r.messages[0].Error.Data, &data); err != nil || !slices.Contains(data.Supported, stateless) || !slices.Contains(data.Supported, latestSessions) || data.Requested != "2027-01-01" {
			t.Errorf("%s: %v; want the supported versions", name, r)
		}
	}
}

// A stateless client's tenant is its URL's, else its bearer token's, else that
// of all who name none; and always the same.
func TestStatelessTenants(t *testing.T) {
	e := newEdge(t, Options{})
	snippet := func(path, authorization string) string {
		r := e.do(http.MethodPost, path, statelessBody(stateless, "tools/call", `"name":"get_embed_snippet",`),
			headers("Mcp-Protocol-Version", stateless, "Mcp-Method", "tools/call", "Mcp-Name", "get_embed_snippet", "Authorization", authorization))
		var result struct{ Content []struct{ Text string } }
		if r.StatusCode != 200 || len(r.messages) != 1 || json.Unmarshal(r.messages[0].Result, &result) != nil || len(result.Content) != 1 {
			t.Fatalf("%s, %q: %v", path, authorization, r)
		}
		return result.Content[0].Text
	}
	owners := make(map[string]string)
	for _, who := range [][2]string{{"/mcp", ""}, {"/mcp/a", ""}, {"/mcp/b", ""}, {"/mcp", "Bearer one"}, {"/mcp", "Bearer two"}} {
		line := snippet(who[0], who[1])
		if other, taken := owners[line]; taken {
			t.Errorf("%v has the tenant of %s", who, other)
		}
		owners[line] = who[0] + " " + who[1]
		if again := snippet(who[0], who[1]); again != line {
			t.Errorf("%v: another tenant each time", who)
		}
	}
	for _, same := range [][4]string{
		{"/mcp", "", "/mcp/", ""}, {"/mcp", "", "/mcp?x=1", ""}, {"/mcp/a", "", "/mcp/a?x=1", ""}, {"/mcp", "", "/mcp/default", ""},
		{"/mcp/a", "", "/mcp/a", "Bearer one"}, {"/mcp", "", "/mcp", "Basic b25l"}, {"/mcp", "", "/mcp", "Bearer "},
	} {
		if snippet(same[0], same[1]) != snippet(same[2], same[3]) {
			t.Errorf("%v: two tenants, want one", same)
		}
	}
}
