package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"
)

// fakePeerVariable makes the test's binary the least that is a peer.
const fakePeerVariable = "JSBRIDGE_BENCH_FAKE_PEER"

// A fakePeer knows the older page protocol and nothing else: a page that says more
// loses its socket.
type fakePeer struct {
	mu    sync.Mutex
	pages map[string]*fakePage // by name
	calls map[string]chan json.RawMessage
	sent  int
}

type fakePage struct {
	ws    *websocket.Conn
	tools []map[string]any
}

func serveFakePeer() error {
	p := &fakePeer{pages: make(map[string]*fakePage), calls: make(map[string]chan json.RawMessage)}
	mux := http.NewServeMux()
	mux.HandleFunc("/ws", p.page)
	mux.HandleFunc("POST /mcp", p.post)
	return http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), mux)
}

func (p *fakePeer) page(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Query().Get("tenant")
	ws, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer func() { _ = ws.CloseNow() }()
	ws.SetReadLimit(frameLimit)
	if r.URL.RawQuery != "tenant="+name {
		_ = ws.Close(websocket.StatusPolicyViolation, "the address says more than the tenant")
		return
	}
	_ = ws.Write(r.Context(), websocket.MessageText, []byte(`{"type":"init","resolvedName":"x","recreated":false}`))
	for {
		_, data, err := ws.Read(r.Context())
		if err != nil {
			return
		}
		var msg struct {
			Type, ID string
			Result   json.RawMessage
			Tools    []map[string]any
		}
		fields := make(map[string]json.RawMessage)
		if json.Unmarshal(data, &msg) != nil || json.Unmarshal(data, &fields) != nil || !p.take(name, ws, msg.Type, msg.ID, msg.Result, msg.Tools, fields) {
			_ = ws.Close(websocket.StatusPolicyViolation, "not the older protocol")
			return
		}
	}
}

// take takes a message, unless it is more than older pages say.
func (p *fakePeer) take(name string, ws *websocket.Conn, typ, id string, result json.RawMessage, tools []map[string]any, fields map[string]json.RawMessage) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch typ {
	case "register_tools":
		for _, t := range tools {
			if t["params"] == nil || !within(t, "name", "description", "params", "source") {
				return false
			}
		}
		p.pages[name] = &fakePage{ws, tools}
		return within(fields, "type", "tools", "summary", "appLabel")
	case "call_result":
		if done := p.calls[id]; done != nil {
			delete(p.calls, id)
			done <- result
		}
		return within(fields, "type", "id", "result", "error")
	}
	return false
}

func within[V any](m map[string]V, names ...string) bool {
	for name := range m {
		if !slices.Contains(names, name) {
			return false
		}
	}
	return true
}

// post answers each request as an event stream, as the MCP SDKs do.
func (p *fakePeer) post(w http.ResponseWriter, r *http.Request) {
	var req struct {
		ID     json.RawMessage
		Method string
		Params struct {
			Name      string
			Arguments json.RawMessage
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var result any
	switch req.Method {
	case "initialize":
		w.Header().Set("Mcp-Session-Id", "one")
		result = map[string]any{"protocolVersion": "2025-06-18", "capabilities": map[string]any{}, "serverInfo": map[string]string{"name": "fake", "version": "7"}}
	case "tools/list":
		result = map[string]any{"tools": p.list()}
	case "tools/call":
		text := p.call(req.Params.Name, req.Params.Arguments)
		result = map[string]any{"content": []any{map[string]any{"type": "text", "text": text}}}
	default:
		w.WriteHeader(http.StatusAccepted)
		return
	}
	if v := r.Header.Get("Mcp-Protocol-Version"); req.Method != "initialize" && (v != "2025-06-18" || r.Header.Get("Mcp-Session-Id") != "one") {
		http.Error(w, "wrong version or session", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	data, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": req.ID, "result": result})
	fmt.Fprintf(w, "event: message\ndata: %s\n\n", data)
}

func (p *fakePeer) list() []any {
	p.mu.Lock()
	defer p.mu.Unlock()
	tools := []any{map[string]any{"name": "own", "inputSchema": map[string]string{"type": "object"}}}
	for _, name := range slices.Sorted(maps.Keys(p.pages)) {
		for _, t := range p.pages[name].tools {
			tools = append(tools, map[string]any{"name": fmt.Sprintf("%s__%s", name, t["name"]), "description": t["description"],
				"inputSchema": map[string]any{"type": "object", "properties": t["params"]}})
		}
	}
	return tools
}

func (p *fakePeer) call(tool string, args json.RawMessage) json.RawMessage {
	name, own, _ := strings.Cut(tool, "__")
	p.mu.Lock()
	p.sent++
	id := fmt.Sprint("call-", p.sent)
	done := make(chan json.RawMessage, 1)
	p.calls[id] = done
	page := p.pages[name]
	p.mu.Unlock()
	msg, _ := json.Marshal(map[string]any{"type": "call", "id": id, "name": own, "args": args})
	if err := page.ws.Write(context.Background(), websocket.MessageText, msg); err != nil {
		return json.RawMessage(`"the page is gone"`)
	}
	return <-done
}

// TestPeerEnds asserts that a peer ends with all that it started.
func TestPeerEnds(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	c := newCrew(t.Context(), t.TempDir())
	defer c.stop()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// Not by exec: a launcher that waits for its server.
	f := field{peer: fmt.Sprintf(`sh -c '%s=1 "$0"; exit 3' %s`, fakePeerVariable, self)}
	server, host, err := f.servingPeer(c)
	if err != nil {
		t.Fatal(err)
	}
	if all := family(server.pid); len(all) != 2 && os.PathSeparator == '/' {
		if _, err := os.Stat("/proc/self/task"); err == nil {
			t.Errorf("the peer's processes are %d", all)
		}
	}
	server.stop()
	if conn, err := (endpoint{host: host}).dial(t.Context()); err == nil {
		conn.close()
		t.Error("the peer's server still listens")
	}
	if err := context.Cause(c.ctx); err != nil {
		t.Errorf("the run was ended: %v", err)
	}
}
