package e2e

//lint:file-ignore SA1019 MCP logging works in all versions before 2026-07-28, which clients will speak for long.

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// patience bounds every wait of these tests; none of them asserts that
// something is fast by it.
const patience = 30 * time.Second

var (
	binary  string          // the built jsbridge
	browser context.Context // the running Chromium; nil without one
	missing string          // why there is none
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "jsbridge-e2e")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "jsbridge")
	build := []string{"build", "-o", binary}
	if raceEnabled { // it needs cgo, which not every machine with Go has
		build = append(build, "-race")
	}
	if out, err := exec.Command("go", append(build, "jsbridge/cmd/jsbridge")...).CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building jsbridge: %v\n%s", err, out)
		return 1
	}
	path := chromium()
	if path == "" {
		missing = "no Chromium found (chromium, google-chrome); install one, for example: apt-get install chromium"
		return m.Run()
	}
	ctx, stop, err := startBrowser(path)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer stop()
	browser = ctx
	return m.Run()
}

// waitFor waits until ok says so.
func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	limit := time.After(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("waited %s in vain for: %s", patience, what)
		}
	}
}

// A buffer that two goroutines may use.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// server is one running jsbridge.
type server struct {
	t    *testing.T
	cmd  *exec.Cmd
	base string // http://localhost:port
	log  *buffer
	done chan struct{} // closed when the process has ended
}

var baseLine = regexp.MustCompile(`http://localhost:\d+`)

// serve starts jsbridge on a free port. What looks like NAME=value goes into its
// environment.
func serve(t *testing.T, args ...string) *server {
	t.Helper()
	var env []string
	args = slices.DeleteFunc(slices.Clone(args), func(a string) bool {
		variable := !strings.HasPrefix(a, "-") && strings.Contains(a, "=")
		if variable {
			env = append(env, a)
		}
		return variable
	})
	if !slices.Contains(args, "--port") {
		args = append(args, "--port", "0")
	}
	if !slices.Contains(args, "--state") { // never the user's own
		args = append(args, "--state", filepath.Join(t.TempDir(), "state.json"))
	}
	s := &server{t: t, cmd: exec.Command(binary, args...), log: &buffer{}, done: make(chan struct{})}
	s.cmd.Stderr = s.log
	s.cmd.Env = append(os.Environ(), env...)
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	for s.base == "" {
		line, err := lines.ReadString('\n')
		if err != nil {
			_ = s.cmd.Wait()
			t.Fatalf("jsbridge did not start: %v\n%s", err, s.log)
		}
		s.base = baseLine.FindString(line)
	}
	go func() {
		_, _ = io.Copy(io.Discard, lines)
		_ = s.cmd.Wait()
		close(s.done)
	}()
	t.Cleanup(func() {
		s.stop()
		for _, bad := range []string{"DATA RACE", "panic", "level=ERROR"} {
			if strings.Contains(s.log.String(), bad) {
				t.Errorf("jsbridge's log has %q:\n%s", bad, s.log)
			}
		}
		if t.Failed() {
			t.Logf("jsbridge's log:\n%s", s.log)
		}
	})
	return s
}

// port is where it listens.
func (s *server) port() string { return s.base[strings.LastIndex(s.base, ":")+1:] }

// kill ends it as nobody should.
func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	<-s.done
}

// stop ends it as a user would, and waits.
func (s *server) stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.done:
	case <-time.After(patience):
		_ = s.cmd.Process.Signal(syscall.SIGQUIT) // prints its goroutines
		<-s.done
		s.t.Errorf("jsbridge did not stop:\n%s", s.log)
	}
}

// client is one MCP client with its session.
type client struct {
	t *testing.T
	*mcp.ClientSession
	sdk       *mcp.Client
	changed   chan struct{} // one for each list_changed of tools; likewise
	prompts   chan struct{}
	resources chan struct{}
	updated   chan string // the URIs of resources that have changed

	mu       sync.Mutex
	progress []*mcp.ProgressNotificationParams
	logs     []*mcp.LoggingMessageParams
}

func (s *server) connect() *client { return s.connectTo("/mcp") }

func (s *server) connectTo(path string) *client { return s.connectAs(withSessions, path, nil) }

// connectAs has the client speak a version of the protocol; more sets what else
// it is able to do.
func (s *server) connectAs(version, path string, more func(*mcp.ClientOptions)) *client {
	s.t.Helper()
	c := &client{t: s.t, changed: make(chan struct{}, 1000), prompts: make(chan struct{}, 1000), resources: make(chan struct{}, 1000), updated: make(chan string, 1000)}
	options := &mcp.ClientOptions{
		ToolListChangedHandler:     func(context.Context, *mcp.ToolListChangedRequest) { c.changed <- struct{}{} },
		PromptListChangedHandler:   func(context.Context, *mcp.PromptListChangedRequest) { c.prompts <- struct{}{} },
		ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) { c.resources <- struct{}{} },
		ResourceUpdatedHandler:     func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { c.updated <- r.Params.URI },
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.progress = append(c.progress, r.Params)
		},
		LoggingMessageHandler: func(_ context.Context, r *mcp.LoggingMessageRequest) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.logs = append(c.logs, r.Params)
		},
	}
	if more != nil {
		more(options)
	}
	c.sdk = mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, options)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ss, err := c.sdk.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: s.base + path}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		s.t.Fatalf("MCP client: %v", err)
	}
	c.ClientSession = ss
	s.t.Cleanup(func() { _ = ss.Close() })
	return c
}

// settled counts the list changes, those on their way included: they come on
// another stream than the answers, so some round trips are waited for.
func (c *client) settled() int {
	c.t.Helper()
	for range 20 {
		if err := c.Ping(c.ctx(), nil); err != nil {
			c.t.Fatalf("ping: %v", err)
		}
	}
	return c.drain()
}

func (c *client) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	c.t.Cleanup(cancel)
	return ctx
}

// pageTools are the names of the list that are no built-ins.
func (c *client) pageTools() []string {
	c.t.Helper()
	names := []string{}
	for tool, err := range c.Tools(c.ctx(), nil) {
		if err != nil {
			c.t.Fatalf("tools/list: %v", err)
		}
		if strings.Contains(tool.Name, "__") {
			names = append(names, tool.Name)
		}
	}
	return names
}

func (c *client) tool(name string) *mcp.Tool {
	c.t.Helper()
	for tool, err := range c.Tools(c.ctx(), nil) {
		if err != nil {
			c.t.Fatalf("tools/list: %v", err)
		}
		if tool.Name == name {
			return tool
		}
	}
	return nil
}

// waitTools waits until the list has exactly these page tools.
func (c *client) waitTools(want ...string) {
	c.t.Helper()
	slices.Sort(want)
	waitFor(c.t, fmt.Sprintf("tools %v", want), func() bool { return slices.Equal(c.pageTools(), want) })
}

// call calls a tool; a protocol error fails the test.
func (c *client) call(name string, args any) *mcp.CallToolResult {
	c.t.Helper()
	res, err := c.CallTool(c.ctx(), &mcp.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		c.t.Fatalf("%s: %v", name, err)
	}
	return res
}

// text is a result's text; more than one content is an error.
func text(t *testing.T, r *mcp.CallToolResult) string {
	t.Helper()
	if len(r.Content) != 1 {
		t.Fatalf("%d contents, want one", len(r.Content))
	}
	tc, ok := r.Content[0].(*mcp.TextContent)
	if !ok {
		t.Fatalf("content is %T, want text", r.Content[0])
	}
	return tc.Text
}

func (c *client) ok(name string, args any) string {
	c.t.Helper()
	r := c.call(name, args)
	if r.IsError {
		c.t.Fatalf("%s failed: %s", name, text(c.t, r))
	}
	return text(c.t, r)
}

func (c *client) fails(name string, args any) string {
	c.t.Helper()
	r := c.call(name, args)
	if !r.IsError {
		c.t.Fatalf("%s succeeded: %s", name, text(c.t, r))
	}
	return text(c.t, r)
}

func (c *client) snippet() string { return c.ok("get_embed_snippet", nil) }

// site serves pages on an origin of its own.
type site struct {
	*httptest.Server
	mu    sync.Mutex
	pages map[string]string
	head  map[string]http.Header
}

func newSite(t *testing.T) *site {
	s := &site{pages: map[string]string{}, head: map[string]http.Header{}}
	s.Server = httptest.NewServer(s.handler())
	t.Cleanup(s.Close)
	return s
}

func (s *site) handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		body, ok := s.pages[r.URL.Path]
		for k, v := range s.head[r.URL.Path] {
			w.Header()[k] = v
		}
		s.mu.Unlock()
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, body)
	})
}

// page puts a page there and gives its URL.
func (s *site) page(path, html string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pages[path] = html
	return s.URL + path
}

func (s *site) header(path, name, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.head[path] = http.Header{name: {value}}
}

// fixture is a page with a title, a script that declares tools, and maybe a
// baked-in snippet.
func fixture(title, tools, snippet string) string {
	baked := ""
	if snippet != "" {
		baked = `<script type="module">` + snippet + `</script>`
	}
	return `<!doctype html><title>` + title + `</title><link rel=icon href="data:,"><h1>old</h1><script>window.__mcpTools = ` + tools + `</script>` + baked
}
