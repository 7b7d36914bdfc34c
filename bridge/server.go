// Package bridge is the server: listeners, routes and guards around the MCP
// side (bridge/agent) and the page side (bridge/page), which meet in package
// tenant.
//
//	s, err := bridge.New(ctx, bridge.Options{...}) // listens, serves nothing yet
//	s.Start()
//	defer s.Stop(ctx)
package bridge

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"jsbridge/bridge/agent"
	"jsbridge/bridge/dashboard"
	"jsbridge/bridge/metrics"
	"jsbridge/bridge/page"
	"jsbridge/bridge/state"
	"jsbridge/manifest"
	"jsbridge/tenant"
)

// DefaultPort is where clients and snippets look for jsbridge.
const DefaultPort = 8766

// DefaultDrain is how long running calls are waited for at the end.
const DefaultDrain = 5 * time.Second

// Options configures a [Server]. A zero field means its default, unless said
// otherwise.
type Options struct {
	Logger  *slog.Logger // default: slog.Default
	Version string
	// Port to listen on; 0 takes a free one.
	Port int
	// Host to listen on. Default: 127.0.0.1 and ::1. One that is not loopback
	// needs a Token.
	Host string
	// Token that clients of /mcp must present, "" for none.
	Token string
	// AllowHosts are further names that Host may have, without a port.
	AllowHosts []string
	// Drain is how long Stop waits for running calls.
	Drain time.Duration
	// Files are the bundled scripts and pages.
	Files fs.FS
	// State is the file of what outlives the process, "" for none.
	State string
	// AllowOrigins are origins, besides those in State and on loopback, whose
	// pages may have root connections and join channels; "null" stands for pages
	// without an origin of their own.
	AllowOrigins []string
	// Redact keeps calls' arguments and results out of the dashboard's journal.
	Redact bool
	// Metrics serves /metrics, for Prometheus; Debug serves Go's profiles under
	// /debug/pprof/, to programs on this machine.
	Metrics, Debug bool

	Tenant tenant.Options
	Page   page.Options
	Agent  agent.Options
}

// Server is one running jsbridge. Use [New].
type Server struct {
	opts      Options
	log       *slog.Logger
	registry  *tenant.Registry
	state     *state.File
	pages     *page.Handler
	agents    *agent.Handler
	dashboard *dashboard.Handler
	metrics   *metrics.Metrics // nil without Options.Metrics
	http      *http.Server
	listeners []net.Listener

	watching sync.WaitGroup // the state file's watcher
	endWatch context.CancelFunc
	base     context.Context // of every request; ends when Stop has drained
	endBase  context.CancelFunc
	serving  sync.WaitGroup
	failed   chan error // a listener's unexpected end

	startOnce, stopOnce sync.Once
	started, stopping   atomic.Bool
	stopErr             error
}

// New wires a server and opens its port, which [Server.Start] begins to serve.
// The error is a [*PortError] when the port is taken.
func New(ctx context.Context, opts Options) (*Server, error) {
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	if opts.Drain == 0 {
		opts.Drain = DefaultDrain
	}
	if opts.Files == nil {
		return nil, errors.New("bridge: Options.Files is missing")
	}
	hosts := loopback
	if opts.Host != "" {
		hosts = []string{opts.Host}
		if opts.Host == "localhost" {
			hosts = loopback
		} else if !isLoopbackName(opts.Host) && opts.Token == "" {
			return nil, fmt.Errorf("listening on %q lets other machines in: give a --token that MCP clients must present, or leave --host out", opts.Host)
		}
	}
	if n := opts.Tenant.MaxName; n != 0 && n < manifest.MinMaxName {
		return nil, fmt.Errorf("--max-name must be at least %d, not %d", manifest.MinMaxName, n)
	}
	allowed, err := parseOrigins(opts.AllowOrigins)
	if err != nil {
		return nil, err
	}
	assets, err := loadAssets(opts.Files)
	if err != nil {
		return nil, err
	}
	file, err := state.Open(opts.State, opts.Logger)
	if err != nil {
		return nil, err
	}
	listeners, err := listen(ctx, hosts, opts.Port)
	if err != nil {
		return nil, err
	}

	s := &Server{opts: opts, log: opts.Logger, state: file, listeners: listeners, failed: make(chan error, len(listeners))}
	s.base, s.endBase = context.WithCancel(context.Background())
	// A peer of this machine without an Origin is no page, but a program.
	opts.Tenant.Allow = func(origin string, remote bool) bool {
		local := !remote && (origin == "" || isLoopbackOrigin(origin))
		return local || slices.Contains(allowed, origin) || file.Allows(origin)
	}
	opts.Tenant.IsWorkspace = file.IsWorkspace
	opts.Tenant.Reserved = agent.IsBuiltin
	journal := dashboard.NewJournal(opts.Redact)
	if opts.Metrics {
		s.metrics = metrics.New(opts.Version, metrics.Sources{
			// Nobody scrapes before all of them are there.
			Census: func() tenant.Census { return s.registry.Census() }, Agents: func() agent.Stats { return s.agents.Stats() },
			Pages: func() page.Stats { return s.pages.Stats() }, DashboardStreams: func() int { return s.dashboard.Streams() },
		})
	}
	opts.Tenant.Observer = observe(journal, s.metrics, opts.Logger)
	s.registry = tenant.NewRegistry(opts.Tenant)
	opts.Agent.Workspace = file.Workspace
	opts.Page.RefuseCode = opts.Tenant.PageCode == tenant.RefuseCode
	opts.Agent.Inline = string(assets["/inline.js"].data)
	opts.Page.Logger, opts.Agent.Logger, opts.Agent.Version = opts.Logger, opts.Logger, opts.Version
	s.pages = page.New(s.registry, opts.Page)
	s.agents = agent.New(s.registry, opts.Agent)
	s.dashboard = dashboard.New(dashboard.Options{
		Logger: opts.Logger, Version: opts.Version, Registry: s.registry, Journal: journal, State: file, Flags: allowed, PageCode: opts.Tenant.PageCode,
		Sessions: s.sessions, Refused: s.pages.Refused, Run: s.agents.Run, Snippet: s.agents.Snippet,
	})
	s.http = &http.Server{
		Handler:           s.routes(assets),
		BaseContext:       func(net.Listener) context.Context { return s.base },
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
		// No ReadTimeout and WriteTimeout: they would end streams. Each write
		// to a stream has a deadline of its own, as has each body that is read.
		ErrorLog: slog.NewLogLogger(opts.Logger.Handler(), slog.LevelDebug),
	}
	watch, end := context.WithCancel(context.Background())
	s.endWatch = end
	s.watching.Go(func() { file.Watch(watch, 0, s.registry.Recheck) })
	return s, nil
}

func parseOrigins(given []string) ([]string, error) {
	var origins []string
	for _, o := range given {
		if o == "null" {
			origins = append(origins, o)
			continue
		}
		origin, err := state.ParseOrigin(o)
		if err != nil {
			return nil, fmt.Errorf("--allow-origin: %w", err)
		}
		origins = append(origins, origin)
	}
	return origins, nil
}

// sessions describes the MCP sessions to the dashboard, which does not know the
// agents' side.
func (s *Server) sessions() []dashboard.Session {
	var all []dashboard.Session
	for _, from := range s.agents.List() {
		all = append(all, dashboard.Session(from))
	}
	return all
}

// scripts are what pages of any origin may import.
var scripts = []string{"main.js", "extras.js", "connect.js", "tool-bus.js", "client.js"}

// routes is the whole route table.
func (s *Server) routes(assets map[string]asset) http.Handler {
	g := &guard{allowHosts: make(map[string]bool), token: s.opts.Token, pageToken: rand.Text(), log: s.log, metrics: s.metrics}
	for _, h := range s.opts.AllowHosts {
		g.allowHosts[hostName(h)] = true
	}
	if s.opts.Host != "" {
		g.allowHosts[hostName(s.opts.Host)] = true
	}
	mux := http.NewServeMux()
	mcp := g.mcp(readDeadline(s.agents))
	mux.Handle("/mcp", mcp)
	mux.Handle("/mcp/{$}", mcp)
	mux.Handle("/mcp/{key}", mcp)
	mux.Handle("GET /ws", s.pages)
	for _, name := range scripts {
		mux.Handle("GET /"+name, assets["/"+name].script())
	}
	mux.Handle("/api/", g.api(readDeadline(s.dashboard)))
	mux.Handle("GET /{$}", assets["/index.html"].withToken(g.pageToken))
	mux.Handle("GET /index.js", assets["/index.js"].own())
	mux.Handle("GET /index.css", assets["/index.css"].own())
	mux.HandleFunc("GET /healthz", s.healthz)
	mux.HandleFunc("GET /readyz", s.readyz)
	if s.metrics != nil {
		mux.Handle("GET /metrics", g.scrape(uncached(s.metrics.Handler(s.log))))
	}
	if s.opts.Debug {
		mux.Handle("GET /debug/pprof/", g.debug(uncached(profiles())))
	}
	mux.HandleFunc("/", s.notFound)
	return g.host(mux)
}

// bodyTimeout bounds the sending of a request's body: a client that sends one
// byte a minute holds a connection otherwise.
const bodyTimeout = 30 * time.Second

func readDeadline(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			b := &timedBody{r.Body, http.NewResponseController(w)}
			_ = b.rc.SetReadDeadline(time.Now().Add(bodyTimeout))
			r.Body = b
		}
		next.ServeHTTP(w, r)
	})
}

// timedBody lifts the deadline once the body is there. It would end a long
// request otherwise: net/http goes on reading, to notice a client that leaves.
type timedBody struct {
	io.ReadCloser
	rc *http.ResponseController
}

func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		_ = b.rc.SetReadDeadline(time.Time{})
	}
	return n, err
}

// notFound answers in JSON: MCP clients look for signs of a sign-in under
// /.well-known, and take a page there for one.
func (s *Server) notFound(w http.ResponseWriter, r *http.Request) {
	detail := fmt.Sprintf("there is nothing at %.100q; MCP clients use /mcp, pages /main.js and /ws, people /", clean(r.URL.Path))
	if strings.HasPrefix(r.URL.Path, "/.well-known/") {
		detail = "this server needs no sign-in"
	}
	dashboard.Problem(w, http.StatusNotFound, detail)
}

// Port is the port listened on.
func (s *Server) Port() int { return s.listeners[0].Addr().(*net.TCPAddr).Port }

// Start begins to serve. Calling it again does nothing.
func (s *Server) Start() {
	s.startOnce.Do(func() {
		s.started.Store(true)
		for _, l := range s.listeners {
			s.serving.Add(1)
			go func() {
				defer s.serving.Done()
				if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
					s.failed <- fmt.Errorf("serving %s: %w", l.Addr(), err)
				}
			}()
		}
	})
}

// Run starts the server, waits for ctx's end or a listener's failure, and stops.
func (s *Server) Run(ctx context.Context) error {
	s.Start()
	var err error
	select {
	case <-ctx.Done():
	case err = <-s.failed:
	}
	return errors.Join(err, s.Stop(context.WithoutCancel(ctx)))
}

// Stop takes no more calls, gives running ones Options.Drain, tells pages with
// close code 1001, and returns when all goroutines have ended, or ctx has.
func (s *Server) Stop(ctx context.Context) error {
	s.stopOnce.Do(func() { s.stopErr = s.stop(ctx) })
	return s.stopErr
}

func (s *Server) stop(ctx context.Context) error {
	s.stopping.Store(true)
	s.endWatch()
	s.watching.Wait()
	s.registry.Drain()
	s.drain(ctx)
	for _, l := range s.listeners { // also those that were never served
		_ = l.Close()
	}
	s.registry.Close()
	settle, cancel := context.WithTimeout(ctx, time.Second)
	s.agents.Settle(settle)
	cancel()
	s.agents.Close()
	ctx, cancel = context.WithTimeout(ctx, 7*time.Second)
	defer cancel()
	s.pages.Wait(ctx) // for the pages' close handshakes
	s.endBase()       // ends streams
	err := s.http.Shutdown(ctx)
	if errors.Is(err, net.ErrClosed) { // a listener, closed above
		err = nil
	}
	if err != nil {
		err = errors.Join(err, s.http.Close())
	}
	s.serving.Wait()
	s.dashboard.Close()
	return err
}

// drain waits for running calls.
func (s *Server) drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Drain)
	defer cancel()
	select {
	case <-s.registry.Idle():
	case <-ctx.Done():
		s.log.Warn("stopping although calls are running", "calls", s.registry.Running())
	}
}
