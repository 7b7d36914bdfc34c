package bridge

//lint:file-ignore SA1019 MCP logging works in all versions before 2026-07-28, which clients will speak for long.

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/coder/websocket"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"jsbridge/bridge/agent"
	"jsbridge/tenant"
)

// Two clients with a workspace and a page each. All that one page says carries its
// own mark, in names, texts and results alike; whatever reaches the other side with
// it is a leak. Names and URIs are the same on both sides, so that nothing is told
// apart by them.
func TestWorkspacesAreIsolated(t *testing.T) {
	const seeds, steps = 8, 60
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 4))
			w := newWorld(t, r)
			w.changes()
			for range steps {
				w.step(r)
			}
			w.check()
		})
	}
}

type world struct {
	t     *testing.T
	s     *Server
	sides [2]*half
}

// half is one of the two.
type half struct {
	*world
	mark, other string
	path        string
	client      *mcp.ClientSession
	connect     string // the workspace's connect string
	ids         chan string

	mu      sync.Mutex
	seen    []string // all that reached the client
	told    []string // all that reached the page
	lastID  string   // of a call that runs, or ran
	ws      *websocket.Conn
	writing sync.Mutex
	changed int // notifications of changes
}

func newWorld(t *testing.T, r *rand.Rand) *world {
	s, err := New(t.Context(), Options{
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), Files: fstest.MapFS{
			"index.html": {}, "index.js": {}, "index.css": {}, "main.js": {}, "extras.js": {}, "connect.js": {}, "tool-bus.js": {}, "client.js": {}, "inline.js": {},
		},
		State: t.TempDir() + "/state.json", Agent: agent.Options{AskTimeout: time.Minute, NoShortcut: noShortcut}, Tenant: tenant.Options{EmptyTimeout: time.Hour},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	w := &world{t: t, s: s}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = s.Stop(ctx)
	})
	for i, mark := range []string{"alpha", "beta"} {
		h := &half{world: w, mark: mark, path: "/mcp/" + mark, ids: make(chan string, 1000)}
		w.sides[i] = h
		version := []string{"2025-11-25", "2026-07-28"}[r.IntN(2)]
		h.open(version)
		h.join()
	}
	w.sides[0].other, w.sides[1].other = "beta", "alpha"
	return w
}

func (h *half) note(v any) {
	b, err := json.Marshal(v)
	if err != nil {
		b = []byte(err.Error())
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen = append(h.seen, string(b))
}

func (h *half) open(version string) {
	h.t.Helper()
	change := func(what string) {
		h.note(what)
		h.mu.Lock()
		defer h.mu.Unlock()
		h.changed++
	}
	client := mcp.NewClient(&mcp.Implementation{Name: h.mark, Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			h.note(r.Params)
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"answer": h.mark}}, nil
		},
		ToolListChangedHandler:      func(context.Context, *mcp.ToolListChangedRequest) { change("tools") },
		PromptListChangedHandler:    func(context.Context, *mcp.PromptListChangedRequest) { change("prompts") },
		ResourceListChangedHandler:  func(context.Context, *mcp.ResourceListChangedRequest) { change("resources") },
		ResourceUpdatedHandler:      func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { change(r.Params.URI) },
		LoggingMessageHandler:       func(_ context.Context, r *mcp.LoggingMessageRequest) { h.note(r.Params) },
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { h.note(r.Params) },
	})
	cs, err := client.Connect(h.t.Context(), &mcp.StreamableClientTransport{Endpoint: fmt.Sprintf("http://localhost:%d%s", h.s.Port(), h.path)}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		h.t.Fatal(err)
	}
	h.client = cs
	h.t.Cleanup(func() { _ = cs.Close() })
	if version < "2026" {
		if err := cs.SetLoggingLevel(h.t.Context(), &mcp.SetLoggingLevelParams{Level: "debug"}); err != nil {
			h.t.Fatal(err)
		}
	}
	res, err := cs.CallTool(h.t.Context(), &mcp.CallToolParams{Name: "get_embed_snippet"})
	if err != nil {
		h.t.Fatal(err)
	}
	_, id, _ := strings.Cut(res.Content[0].(*mcp.TextContent).Text, "tenant=")
	h.connect = strings.TrimSuffix(id, `");`)
}

// join connects the page, anew if it is there.
func (h *half) join() {
	h.t.Helper()
	ctx := h.t.Context()
	if h.ws != nil {
		_ = h.ws.Close(websocket.StatusNormalClosure, "left")
	}
	ws, _, err := websocket.Dial(ctx, fmt.Sprintf("ws://localhost:%d/ws?tenant=%s&v=1&instance=tab-of-%s-0123456789", h.s.Port(), h.connect, h.mark), nil)
	if err != nil {
		h.t.Fatal(err)
	}
	ws.SetReadLimit(1 << 20)
	h.mu.Lock()
	h.ws = ws
	h.mu.Unlock()
	registered := make(chan struct{})
	go h.serve(ws, registered)
	h.declare(0)
	receive(h.t, "registered", registered)
}

// declare tells what the page offers; which of the variants.
func (h *half) declare(variant int) {
	tool := func(name string) string {
		return fmt.Sprintf(`{"name":%q,"description":"does it for %s"}`, name, h.mark)
	}
	tools, more := tool("ask")+","+tool("work"), ""
	if variant%2 == 1 {
		tools, more = tools+","+tool("only_"+h.mark), `,{"uri":"more","name":"`+h.mark+`"}`
	}
	h.say(`{"type":"register_tools","appLabel":"App","summary":"` + h.mark + `","tools":[` + tools + `],
		"prompts":[{"name":"p","description":"` + h.mark + `","arguments":[{"name":"a","complete":true}]}],
		"resources":[{"uri":"test://same","name":"` + h.mark + `"}` + more + `],
		"resourceTemplates":[{"uriTemplate":"item/{id}","name":"` + h.mark + `","complete":["id"]}]}`)
}

func (h *half) say(message string) {
	h.writing.Lock()
	defer h.writing.Unlock()
	_ = h.ws.Write(h.t.Context(), websocket.MessageText, []byte(message)) // the socket may be gone
}

// serve is the page's script.
func (h *half) serve(ws *websocket.Conn, registered chan struct{}) {
	var once sync.Once
	for {
		_, data, err := ws.Read(h.t.Context())
		if err != nil {
			return
		}
		h.mu.Lock()
		h.told = append(h.told, string(data))
		h.mu.Unlock()
		var f struct{ Type, ID, Name string }
		if json.Unmarshal(data, &f) != nil {
			continue
		}
		result := func(v string) { h.say(fmt.Sprintf(`{"type":"call_result","id":%q,"result":%s}`, f.ID, v)) }
		switch f.Type {
		case "registered":
			once.Do(func() { close(registered) })
		case "call":
			h.mu.Lock()
			h.lastID = f.ID
			h.mu.Unlock()
			h.say(fmt.Sprintf(`{"type":"log","id":%q,"level":"info","data":%q}`, f.ID, h.mark))
			h.say(fmt.Sprintf(`{"type":"progress","id":%q,"progress":1,"message":%q}`, f.ID, h.mark))
			if f.Name == "ask" {
				h.say(fmt.Sprintf(`{"type":"ask","id":"q%s","callId":%q,"kind":"elicit","params":{"message":%q,"requestedSchema":{"type":"object","properties":{"answer":{"type":"string"}}}}}`, f.ID, f.ID, h.mark))
				continue // the answer ends the call
			}
			result(fmt.Sprintf("%q", h.mark))
		case "answer":
			h.say(fmt.Sprintf(`{"type":"call_result","id":%q,"result":%q}`, strings.TrimPrefix(f.ID, "q"), h.mark))
		case "get_prompt":
			result(fmt.Sprintf(`{"messages":[{"role":"user","content":{"type":"text","text":%q}}]}`, h.mark))
		case "read_resource":
			result(fmt.Sprintf(`{"contents":[{"text":%q}]}`, h.mark))
		case "complete":
			result(fmt.Sprintf(`{"values":[%q]}`, h.mark))
		}
	}
}

// step does something on one of the sides.
func (w *world) step(r *rand.Rand) {
	side := r.IntN(2)
	h, other := w.sides[side], w.sides[1-side]
	ctx := w.t.Context()
	// must notes an answer, which has to come from the own page.
	must := func(what string, v any, err error) {
		w.t.Helper()
		h.note(v)
		if b, _ := json.Marshal(v); err != nil || !strings.Contains(string(b), h.mark) {
			w.t.Fatalf("%s: %s of its own side: %.200s, %v", h.mark, what, b, err)
		}
	}
	call := func(name string) (*mcp.CallToolResult, error) {
		p := &mcp.CallToolParams{Name: name, Arguments: map[string]any{}}
		p.SetProgressToken(h.mark)
		return h.client.CallTool(ctx, p)
	}
	switch r.IntN(13) {
	case 0:
		h.declare(r.IntN(4))
	case 1:
		v, err := h.client.ListTools(ctx, nil)
		must("tools", v, err)
	case 2:
		v, err := h.client.ListPrompts(ctx, nil)
		must("prompts", v, err)
	case 3:
		v, err := h.client.ListResources(ctx, nil)
		must("resources", v, err)
	case 4:
		v, err := h.client.ReadResource(ctx, &mcp.ReadResourceParams{URI: []string{"test://same", "page://app/item/1"}[r.IntN(2)]})
		must("a resource", v, err)
	case 5:
		v, err := h.client.GetPrompt(ctx, &mcp.GetPromptParams{Name: "app__p"})
		must("a prompt", v, err)
	case 6:
		v, err := call("app__work")
		must("a call", v, err)
	case 7:
		v, err := call("app__ask")
		must("a question", v, err)
	case 8:
		v, err := h.client.Complete(ctx, &mcp.CompleteParams{Ref: &mcp.CompleteReference{Type: "ref/prompt", Name: "app__p"}, Argument: mcp.CompleteParamsArgument{Name: "a"}})
		must("a completion", v, err)
	case 9:
		if r.IntN(2) == 0 {
			_ = h.client.Subscribe(ctx, &mcp.SubscribeParams{URI: "test://same"})
		} else {
			_ = h.client.Unsubscribe(ctx, &mcp.UnsubscribeParams{URI: "test://same"})
		}
	case 10:
		h.say(`{"type":"resource_updated","uri":"test://same"}`)
	case 11: // an answer, and more, to the other side's calls
		other.mu.Lock()
		id := other.lastID
		other.mu.Unlock()
		h.say(fmt.Sprintf(`{"type":"call_result","id":%q,"result":%q}`, id, h.mark))
		h.say(fmt.Sprintf(`{"type":"log","id":%q,"level":"info","data":%q}`, id, h.mark))
		h.say(fmt.Sprintf(`{"type":"ask","id":"x","callId":%q,"kind":"roots"}`, id))
	case 12:
		h.join()
	}
}

// check looks for the other side's mark in all that was heard.
func (w *world) check() {
	for _, h := range w.sides {
		// What was sent before an answer has come before it.
		if _, err := h.client.CallTool(w.t.Context(), &mcp.CallToolParams{Name: "describe_tools"}); err != nil {
			w.t.Fatal(err)
		}
		h.mu.Lock()
		for _, what := range [][]string{h.seen, h.told} {
			for _, s := range what {
				if strings.Contains(s, h.other) {
					w.t.Errorf("%s heard of the other side: %s", h.mark, s)
				}
			}
		}
		h.mu.Unlock()
	}
}

// changes has one side's page change, and looks whether the other side's client is
// told.
func (w *world) changes() {
	count := func(h *half) int {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.changed
	}
	const lists = 3
	for _, h := range w.sides { // of its page's coming
		w.wait(func() bool { return count(h) >= lists })
	}
	w.sides[0].declare(1) // other tools, other resources
	w.wait(func() bool { return count(w.sides[0]) >= lists+2 })
	if n := count(w.sides[1]); n != lists {
		w.t.Errorf("a client was told of %d changes, want %d: those of its own page", n, lists)
	}
}

func (w *world) wait(for_ func() bool) {
	w.t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	limit := time.After(patience)
	for !for_() {
		select {
		case <-tick.C:
		case <-limit:
			w.t.Fatal("waited in vain")
		}
	}
}
