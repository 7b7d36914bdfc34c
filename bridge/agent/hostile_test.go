package agent

//lint:file-ignore SA1019 sampling works in all versions, and clients will have it for long.

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"jsbridge/tenant"
)

// What the page says of the result's type is not its to say.
func TestResultTypeIsNotThePages(t *testing.T) {
	s := newSide(t, Options{}, tenant.Options{})
	c := &raw{t: t, url: s.url + "/w"}
	c.initialize()
	s.join(s.tenantOf(s.connectAs(withSessions, "/w", nil)), offerings, answer(`{"content":[{"type":"text","text":"hi"}],"resultType":"input_required"}`))
	messages(c.post(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"p__t"}}`), func(msg map[string]json.RawMessage) bool {
		if bytes.Contains(msg["result"], []byte("input_required")) {
			t.Errorf("%s", msg["result"])
		}
		return msg["result"] == nil
	})
}

// Items that clients refuse make them refuse the whole result.
func TestItemsThatClientsRefuse(t *testing.T) {
	s := newSide(t, Options{}, tenant.Options{})
	c := s.connect()
	results := make(chan string, 1)
	s.join(s.tenantOf(c), offerings, func(l *tenant.Link, f tenant.CallFrame) {
		_ = l.Answer(f.ID, tenant.Answer{Result: json.RawMessage(<-results)})
	})
	for _, item := range []string{`{"type":"resource"}`, `{"type":"resource","resource":{"text":"x"}}`, `{"type":"tool_use","id":"1","name":"x","input":{}}`, `{"type":"tool_result","toolUseId":"1","content":[]}`, `{"type":"resource_link"}`} {
		results <- `{"content":[` + item + `]}`
		res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "p__t"})
		if err != nil {
			t.Errorf("%s: %v", item, err)
			continue
		}
		switch got := res.Content[0].(type) {
		case *mcp.TextContent:
		case *mcp.EmbeddedResource:
			if got.Resource == nil || got.Resource.URI == "" {
				t.Errorf("%s went out as it is", item)
			}
		default:
			t.Errorf("%s went out as it is", item)
		}
	}
}

// What a user has filled in is not thrown away for a keyword that nobody minded when
// they were asked.
func TestAFilledInFormIsNotLost(t *testing.T) {
	for _, property := range []string{`{"type":"string","format":"uuid"}`, `{"type":"string","pattern":"^(?=x)x"}`, `{"type":"string","default":5}`} {
		s := newSide(t, Options{}, tenant.Options{})
		c := &raw{t: t, url: s.url + "/w"}
		c.initialize()
		var p *fakePage
		got := make(chan tenant.Answer, 1)
		p = s.page(s.tenantOf(s.connectAs(withSessions, "/w", nil)), `[{"name":"t","description":""}]`, func(l *tenant.Link, f tenant.CallFrame) {
			_ = l.Ask(f.ID, "q", tenant.Elicit, json.RawMessage(`{"message":"m","requestedSchema":{"type":"object","properties":{"a":`+property+`}}}`))
			a := <-p.answers
			got <- a
			_ = l.Answer(f.ID, a)
		})
		asked := false
		messages(c.post(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"p__t"}}`), func(msg map[string]json.RawMessage) bool {
			if string(msg["method"]) == `"elicitation/create"` {
				asked = true
				_ = c.post(`{"jsonrpc":"2.0","id":` + string(msg["id"]) + `,"result":{"action":"accept","content":{"a":"x"}}}`).Body.Close()
			}
			return msg["result"] == nil && msg["error"] == nil
		})
		if a := take(t, got); asked && a.Err != nil {
			t.Errorf("%s: the user was asked and accepted; the page got %q", property, a.Err.Message)
		}
	}
}

// A client may send both without waiting for the first one's answer.
func TestSubscribeAndUnsubscribeAtOnce(t *testing.T) {
	s := newSide(t, Options{}, tenant.Options{})
	c := s.connect()
	p := s.page(s.tenantOf(c), offerings, answer("1"))
	s.Handler.mu.Lock()
	ss := s.Handler.sessions[c.ID()]
	s.Handler.mu.Unlock()
	const uri = "page://p/cart"
	for range 300 {
		var both sync.WaitGroup
		both.Go(func() { _ = ss.subscribe(t.Context(), &mcp.SubscribeRequest{Params: &mcp.SubscribeParams{URI: uri}}) })
		both.Go(func() {
			_ = ss.unsubscribe(t.Context(), &mcp.UnsubscribeRequest{Params: &mcp.UnsubscribeParams{URI: uri}})
		})
		both.Wait()
		_ = ss.unsubscribe(t.Context(), &mcp.UnsubscribeRequest{Params: &mcp.UnsubscribeParams{URI: uri}})
		last := ""
		for len(p.watched) > 0 {
			last = <-p.watched
		}
		if strings.HasPrefix(last, "+") {
			t.Fatal("the client has unsubscribed, and the resource is watched for good")
		}
	}
}

// The protocol's own keys are not for a page to say in the parts of a result either.
func TestMetaOfItems(t *testing.T) {
	res := convert(json.RawMessage(`{"content":[{"type":"text","text":"t","_meta":{"io.modelcontextprotocol/x":1}},{"type":"resource","resource":{"uri":"a:b","text":"t","_meta":{"io.modelcontextprotocol/x":1}}}]}`))
	raw, err := json.Marshal(res)
	if err != nil || bytes.Contains(raw, []byte("io.modelcontextprotocol/x")) {
		t.Errorf("%s, %v", raw, err)
	}
	// Reserved is what has one of the two names as its second label (MCP, basic, _meta).
	if meta := ownMeta(mcp.Meta{"com.example.mcp/x": 1}); len(meta) != 1 {
		t.Error("a key of the page's own was dropped")
	}
}

// MCP 2025-11-25: a question by URL must have an elicitationId.
func TestElicitationByURLHasAnID(t *testing.T) {
	q, err := (&Handler{opts: Options{MaxResult: 1 << 20}}).parseAsk(&tenant.Ask{Kind: tenant.Elicit, Params: json.RawMessage(`{"mode":"url","message":"m","url":"https://shop.example/pay"}`)})
	if err == nil {
		err = checkElicit(q.(*mcp.ElicitParams))
	}
	if err == nil && q.(*mcp.ElicitParams).ElicitationID == "" {
		t.Error("it goes out without")
	}
}
