package agent

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"jsbridge/tenant"
)

// What FuzzPageAnswers asks a page for.
var fuzzRequests = []string{
	`"tools/call","params":{"name":"p__t","arguments":{}`,
	`"prompts/get","params":{"name":"p__review","arguments":{"style":"s"}`,
	`"resources/read","params":{"uri":"page://p/item/5"`,
	`"completion/complete","params":{"ref":{"type":"ref/prompt","name":"p__review"},"argument":{"name":"style","value":""}`,
}

// FuzzPageAnswers: whatever a page answers, asks, or says meanwhile, its caller gets
// one answer, of MCP, in each era. The page's words are JSON, since they come in frames.
func FuzzPageAnswers(f *testing.F) {
	for _, seed := range []struct {
		choices uint8
		answer  string
		meant   string
	}{
		{0, `"hello"`, `{}`},
		{0, `"data:image/png;base64,iVBORw0KGgo="`, `null`},
		{0, `{"content":[{"type":"text","text":"a"},{"type":"image","data":"AAEC","mimeType":"image/png"},{"type":"resource_link","uri":"x:y","name":"n"},{"type":"resource","resource":{"uri":"x:y","text":"t"}}],"structuredContent":{"a":1},"isError":true,"_meta":{"io.modelcontextprotocol/x":1}}`, `{}`},
		{0, `{"content":[{"type":"nonsense"},5,null,{"type":"image","data":"?"}]}`, `{}`},
		{0, `{"resultType":"input_required","inputRequests":{"k":{"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{"a":{"type":"string","enum":["x"]}}}}}},"requestState":"s"}`, `{}`},
		{1, `{"messages":[{"role":"user","content":{"type":"text","text":"Do it"}}],"description":"d"}`, `{}`},
		{1, `{"messages":[{"role":"nobody","content":[]},{}]}`, `{}`},
		{2, `{"contents":[{"uri":"page://p/x","text":"t"},{"blob":"AAEC","mimeType":5}]}`, `{}`},
		{2, `"plain"`, `{}`},
		{3, `{"values":["a",5],"total":-1,"hasMore":"yes"}`, `{}`},
		{4, `"done"`, `{"message":"Your name?","requestedSchema":{"type":"object","properties":{"name":{"type":"string","title":"N","minLength":1},"b":{"type":"boolean"}},"required":["name"]}}`},
		{8, `"done"`, `{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}],"maxTokens":10}`},
		{12, `"done"`, `{}`},
		{16, `{"message":"it threw","name":"TypeError"}`, `{}`},
		{4 | 32, `1e999`, `{"message":"?","requestedSchema":{"type":"object","properties":{"a":{"type":"array","items":{"anyOf":[{"const":"x","title":"X"}]}}}}}`},
	} {
		f.Add(seed.choices, []byte(seed.answer), []byte(seed.meant))
	}
	f.Fuzz(func(t *testing.T, choices uint8, answer, said []byte) {
		if !json.Valid(answer) || !json.Valid(said) {
			return
		}
		synctest.Test(t, func(t *testing.T) {
			s := newFuzzSide(t, withSessions)
			defer s.end()
			p, version, meta := s.pages[0], withSessions, ""
			if choices&32 != 0 {
				p, version = s.pages[1], stateless
				meta = `,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"sampling":{}},"io.modelcontextprotocol/logLevel":"debug"`
			}
			p.answers = func(c tenant.CallFrame) {
				a := tenant.Answer{Result: answer}
				if choices&16 != 0 {
					a = tenant.Answer{Err: &tenant.PageError{Message: string(answer)}}
				}
				p.answered = sync.OnceFunc(func() { _ = p.link.Answer(c.ID, a) })
				_ = p.link.Say(c.ID, tenant.Event{Log: &tenant.Log{Level: "info", Data: said}})
				kind := []tenant.AskKind{"", tenant.Elicit, tenant.Sample, tenant.ListRoots}[choices>>2&3]
				if kind == "" || p.link.Ask(c.ID, "q", kind, said) != nil {
					p.answered()
				}
			}
			body := `{"jsonrpc":"2.0","id":1,"method":` + fuzzRequests[choices&3] + `,"_meta":{"progressToken":1` + meta + `}}}`
			req := httptest.NewRequest("POST", "/mcp", strings.NewReader(body))
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set(versionHeader, version)
			if version == stateless {
				s.tellMethod(req, []byte(body))
			} else {
				req.Header.Set(sessionHeader, s.a)
			}
			w := s.serve(req)
			s.judge(req, []byte(body), w)
			if w.Code != 200 {
				t.Errorf("%d %s", w.Code, w.Body)
			}
			s.goesOn(req)
		})
	})
}
