// Package dashboard is the JSON API behind the web UI: what there is, as a stream
// of events, and what a human may do about it. docs/dashboard-api.md describes it.
//
//	agents ─▶ tenant ──tells──▶ Journal ◀─┐ looks, when told that
//	            └──shows──▶ Registry ◀────┴─ hub ──events──▶ streams (tabs)
//
// Nothing waits for a dashboard: a call makes an entry in the [Journal], which is
// bounded memory, and the registry notes that something has changed. The hub then
// looks at both, at most four times a second, and makes one event of what differs
// from the last look. Each stream reads the events at its own pace, out of a ring,
// and is cut when it lags too far behind.
//
// Errors are JSON problems (RFC 9457). Who may call the API is for the guard in
// front.
package dashboard

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"jsbridge/bridge/state"
	"jsbridge/manifest"
	"jsbridge/tenant"
)

// DefaultHeartbeat is the time between comments on a silent event stream.
const DefaultHeartbeat = 15 * time.Second

// Session is an MCP session, as the agents' side describes it.
type Session struct {
	ID        string // no secret
	Client    tenant.Agent
	Protocol  string
	Stateless bool
	Workspace string // its key, "" for a tenant of its own
	Since     time.Time
	View      *tenant.View
}

// Options configures a [Handler]. All but Heartbeat must be given; Flags may be
// empty.
type Options struct {
	Logger   *slog.Logger
	Version  string
	Registry *tenant.Registry
	// Journal is the registry's observer.
	Journal *Journal
	// State has the approved origins and the workspaces, Flags are the origins
	// that the command line approved.
	State    *state.File
	Flags    []string
	PageCode tenant.PageCode
	// Sessions are those that have a view.
	Sessions func() []Session
	// Refused counts frames of pages.
	Refused func() int64
	// Run calls a tool. The result is MCP's of tools/call.
	Run func(ctx context.Context, p *tenant.Page, e tenant.Entry, args json.RawMessage) (json.RawMessage, error)
	// Snippet is the line that connects a page, see agent.Handler.Snippet.
	Snippet func(base, connect, form string) (string, error)
	// Heartbeat is the time between comments on a silent event stream.
	Heartbeat time.Duration
}

// Handler serves the API. Use [New], and [Handler.Close] when done.
type Handler struct {
	opts    Options
	log     *slog.Logger
	hub     *hub
	started time.Time
	mux     *http.ServeMux
}

// New returns the API.
func New(o Options) *Handler {
	if o.Heartbeat == 0 {
		o.Heartbeat = DefaultHeartbeat
	}
	if o.PageCode == "" {
		o.PageCode = tenant.AllowCode
	}
	h := &Handler{opts: o, log: o.Logger, started: time.Now().UTC().Truncate(time.Second), mux: http.NewServeMux()}
	h.hub = newHub(&h.opts)
	h.routes()
	return h
}

// Close ends every event stream and waits for the hub.
func (h *Handler) Close() { h.hub.close() }

// Streams is how many event streams are open.
func (h *Handler) Streams() int { return h.hub.open() }

// routes is the API's whole route table.
func (h *Handler) routes() {
	type methods map[string]http.HandlerFunc
	route := func(path string, m methods) {
		for method, handle := range m {
			h.mux.HandleFunc(method+" "+path, handle)
		}
		allow := strings.Join(slices.Sorted(maps.Keys(m)), ", ")
		h.mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Allow", allow)
			Problem(w, http.StatusMethodNotAllowed, "use "+allow)
		})
	}
	route("/api/events", methods{"GET": h.events})
	route("/api/connections/{id}", methods{"GET": h.details})
	route("/api/connections/{id}/identify", methods{"POST": h.identify})
	route("/api/connections/{id}/rename", methods{"POST": h.rename})
	route("/api/connections/{id}/move", methods{"POST": h.move})
	route("/api/connections/{id}/disconnect", methods{"POST": h.disconnect})
	route("/api/connections/{id}/tools", methods{"POST": h.addTool})
	route("/api/connections/{id}/tools/{name}", methods{"DELETE": h.removeTool})
	route("/api/connections/{id}/call", methods{"POST": h.call})
	route("/api/calls.jsonl", methods{"GET": h.callLog})
	route("/api/calls/{id}", methods{"GET": h.callDetails})
	route("/api/calls/{id}/cancel", methods{"POST": h.cancel})
	route("/api/snippets", methods{"POST": h.snippet})
	route("/api/origins", methods{"GET": h.list, "POST": h.approve, "DELETE": h.remove})
	h.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		Problem(w, http.StatusNotFound, fmt.Sprintf("there is nothing at %.100q", manifest.Clean(r.URL.Path, 256, false)))
	})
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.mux.ServeHTTP(w, r) }

// server describes this start, by the address that a request came to.
func (h *Handler) server(r *http.Request) Server {
	base := "http://" + r.Host
	return Server{Epoch: h.hub.epoch, Version: h.opts.Version, Started: h.started, MCP: base + "/mcp", Base: base, PageCode: h.opts.PageCode, Redacted: h.opts.Journal.redact}
}
