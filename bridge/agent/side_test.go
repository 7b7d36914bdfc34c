package agent

//lint:file-ignore SA1019 MCP logging works in all versions before 2026-07-28, which clients will speak for long.

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"jsbridge/manifest"
	"jsbridge/tenant"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 30 * time.Second

// side is the MCP side over real HTTP, with pages that are scripted.
type side struct {
	t *testing.T
	*Handler
	registry *tenant.Registry
	url      string
	requests chan *http.Request // those with an X-Test header
}

func newSide(t *testing.T, opts Options, topts tenant.Options) *side {
	opts.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	opts.NoShortcut = opts.NoShortcut || os.Getenv("JSBRIDGE_NO_SHORTCUT") != "" // see the Makefile
	var spaces sync.Map
	opts.Workspace = func(key string) (string, error) {
		id, _ := spaces.LoadOrStore(key, uuid.NewString())
		return id.(string), nil
	}
	topts.IsWorkspace = func(id string) (found bool) {
		spaces.Range(func(_, v any) bool { found = v == id; return !found })
		return found
	}
	topts.Reserved = IsBuiltin
	s := &side{t: t, registry: tenant.NewRegistry(topts), requests: make(chan *http.Request, 10)}
	s.Handler = New(s.registry, opts)
	mux := http.NewServeMux()
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Test") != "" {
			s.requests <- r
		}
		s.Handler.ServeHTTP(w, r)
	})
	mux.Handle("/{key}", s.Handler)
	srv := httptest.NewServer(mux)
	s.url = srv.URL
	t.Cleanup(func() {
		s.registry.Close()
		s.Handler.Close()
		srv.CloseClientConnections()
		srv.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return s
}

type cl struct {
	*mcp.ClientSession
	t         *testing.T
	changed   chan struct{}
	prompts   chan struct{}
	resources chan struct{}
	updated   chan string
	mu        sync.Mutex
	notes     []*mcp.ProgressNotificationParams
	logs      []*mcp.LoggingMessageParams
}

func (s *side) connect() *cl { return s.connectAs("2025-11-25", "", nil) }

// connectAs connects a client of a protocol version, below a path. elicit answers
// the questions to its user; nil: it has none.
func (s *side) connectAs(version, path string, elicit func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error)) *cl {
	s.t.Helper()
	c := &cl{t: s.t, changed: make(chan struct{}, 1000), prompts: make(chan struct{}, 1000), resources: make(chan struct{}, 1000), updated: make(chan string, 1000)}
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler:         elicit,
		Capabilities:               &mcp.ClientCapabilities{},
		ToolListChangedHandler:     func(context.Context, *mcp.ToolListChangedRequest) { c.changed <- struct{}{} },
		PromptListChangedHandler:   func(context.Context, *mcp.PromptListChangedRequest) { c.prompts <- struct{}{} },
		ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) { c.resources <- struct{}{} },
		ResourceUpdatedHandler:     func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { c.updated <- r.Params.URI },
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.notes = append(c.notes, r.Params)
		},
		LoggingMessageHandler: func(_ context.Context, r *mcp.LoggingMessageRequest) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.logs = append(c.logs, r.Params)
		},
	})
	ss, err := client.Connect(s.t.Context(), &mcp.StreamableClientTransport{Endpoint: s.url + path}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		s.t.Fatal(err)
	}
	c.ClientSession = ss
	s.t.Cleanup(func() { _ = ss.Close() })
	return c
}

// tenantOf is the session's connect string, from the snippet.
func (s *side) tenantOf(c *cl) tenant.Connect {
	s.t.Helper()
	r, err := c.CallTool(s.t.Context(), &mcp.CallToolParams{Name: "get_embed_snippet"})
	if err != nil {
		s.t.Fatal(err)
	}
	_, id, _ := strings.Cut(r.Content[0].(*mcp.TextContent).Text, "tenant=")
	connect := tenant.ParseConnect(strings.TrimSuffix(id, `");`))
	if connect.Session == "" || !s.registry.Knows(connect) {
		s.t.Fatalf("the snippet's tenant %q is not there", id)
	}
	return connect
}

// fakePage answers calls by a function.
type fakePage struct {
	link    *tenant.Link
	on      func(l *tenant.Link, c tenant.CallFrame)
	answers chan tenant.Answer // to its questions
	watched chan string        // +uri, -uri
	heard   chan string        // complaints
	stopped chan string        // cancelled calls
}

func (f *fakePage) Call(c tenant.CallFrame) error    { go f.on(f.link, c); return nil }
func (f *fakePage) Cancel(id, _ string)              { f.stopped <- id }
func (f *fakePage) Probe()                           { f.link.Heard() }
func (f *fakePage) Answer(_ string, a tenant.Answer) { f.answers <- a }
func (f *fakePage) Complain(message string)          { f.heard <- message }
func (f *fakePage) Watch(uri string, on bool) {
	if on {
		f.watched <- "+" + uri
	} else {
		f.watched <- "-" + uri
	}
}
func (f *fakePage) Identify(string)                {}
func (f *fakePage) Approved(*tenant.Registration)  {}
func (f *fakePage) Registered(tenant.Registration) {}
func (f *fakePage) Move(tenant.Connect)            {}
func (f *fakePage) Close(tenant.Reason)            {}

func (s *side) join(at tenant.Connect, tools string, on func(*tenant.Link, tenant.CallFrame)) *tenant.Link {
	s.t.Helper()
	return s.page(at, tools, on).link
}

// page is join, and gives the page itself.
func (s *side) page(at tenant.Connect, tools string, on func(*tenant.Link, tenant.CallFrame)) *fakePage {
	s.t.Helper()
	f := &fakePage{on: on, answers: make(chan tenant.Answer, 100), watched: make(chan string, 100), heard: make(chan string, 100), stopped: make(chan string, 100)}
	l, err := s.registry.Join(at, tenant.Joining{Origin: "http://a.test", Probes: true, Transport: f})
	if err != nil {
		s.t.Fatal(err)
	}
	f.link = l
	s.register(l, tools)
	return f
}

// register declares tools, and perhaps further members of the frame.
func (s *side) register(l *tenant.Link, tools string) {
	s.t.Helper()
	m, err := manifest.Parse([]byte(`{"type":"register_tools","appLabel":"P","tools":`+tools+`}`), manifest.Limits{})
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := l.Register(m); err != nil {
		s.t.Fatal(err)
	}
}

func answer(result string) func(*tenant.Link, tenant.CallFrame) {
	return func(l *tenant.Link, c tenant.CallFrame) {
		_ = l.Answer(c.ID, tenant.Answer{Result: json.RawMessage(result)})
	}
}

func (c *cl) wait() {
	c.t.Helper()
	select {
	case <-c.changed:
	case <-time.After(patience):
		c.t.Fatal("no list_changed")
	}
}

func (c *cl) names() []string {
	c.t.Helper()
	var names []string
	for tool, err := range c.Tools(c.t.Context(), nil) {
		if err != nil {
			c.t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	return names
}
