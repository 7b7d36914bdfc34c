package agent

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"jsbridge/tenant"
)

// Many clients read the list once, when they connect: before any page is there.
func TestAClientThatListsOnceReachesALaterPage(t *testing.T) {
	s := newSide(t, Options{}, tenant.Options{})
	eachEra(t, func(t *testing.T, version string) {
		c := s.connectAs(version, "/once"+version, nil)
		init := c.InitializeResult()
		if init.Capabilities.Tools == nil || !init.Capabilities.Tools.ListChanged {
			t.Errorf("capabilities %+v: listChanged is not declared", init.Capabilities)
		}
		names := strings.Join(c.names(), " ")
		for _, name := range []string{"get_embed_snippet", "describe_tools", "call_page_tool"} {
			if !strings.Contains(names, name) || !strings.Contains(init.Instructions, name) {
				t.Errorf("%s is not listed, or nobody says what it is for: %s", name, names)
			}
		}
		// There is no page yet: what to do is in the error.
		if text, failed := c.ask("call_page_tool", `{"name":"p__a"}`); !failed || !strings.Contains(text, "get_embed_snippet") {
			t.Errorf("without a page: %s", text)
		}
		s.join(s.tenantOf(c), `[{"name":"a","description":"","params":{"n":"number"}}]`, func(l *tenant.Link, f tenant.CallFrame) {
			_ = l.Answer(f.ID, tenant.Answer{Result: f.Args})
		})
		c.wait() // it is told all the same
		if text, failed := c.ask("describe_tools", `{}`); failed || !strings.Contains(text, `"p__a"`) {
			t.Errorf("describe_tools: %s", text)
		}
		if text, failed := c.ask("call_page_tool", `{"name":"p__a","arguments":{"n":"5"}}`); failed || text != `{"n":5}` {
			t.Errorf("call_page_tool: %s", text)
		}
	})
}

// A client that only posts has no stream to be told on. Nothing piles up for it.
func TestChangesOfAClientWithoutAStream(t *testing.T) {
	s := newSide(t, Options{}, tenant.Options{})
	c := &raw{t: t, url: s.url + "/w"}
	c.initialize()
	lists := []string{`[{"name":"t0","description":""}]`, `[{"name":"t1","description":""}]`}
	l := s.join(s.tenantOf(s.connectAs(withSessions, "/w", nil)), lists[0], answer(`"fine"`))
	for i := range 10_000 {
		s.register(l, lists[(i+1)%2])
	}
	res := c.post(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"call_page_tool","arguments":{"name":"p__t0"}}}`)
	b, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if err != nil || !strings.Contains(string(b), `"fine"`) {
		t.Errorf("the next call: %s, %v", b, err)
	}
	// Once there is one, it hears once that its list is out of date.
	stream := openStream(t, c.url, c.id)
	stream.until("tools/list_changed")
	if n := strings.Count(stream.all.String(), "list_changed"); n != 1 {
		t.Errorf("it was told %d times at once", n)
	}
}

// lines is a standalone stream that is being read.
type lines struct {
	t   *testing.T
	r   *bufio.Reader
	all strings.Builder
}

func openStream(t *testing.T, url, session string) *lines {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set(sessionHeader, session)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	if res.StatusCode != 200 {
		t.Fatalf("GET: %d", res.StatusCode)
	}
	return &lines{t: t, r: bufio.NewReader(res.Body)}
}

// until reads up to a line with this part.
func (l *lines) until(part string) {
	l.t.Helper()
	for {
		line, err := l.r.ReadString('\n')
		l.all.WriteString(line)
		if err != nil {
			l.t.Fatalf("the stream ended before %q: %v", part, err)
		}
		if strings.Contains(line, part) {
			return
		}
	}
}

// Proxies cut what is silent for a minute, Node for five; and what comes after a long
// silence has to arrive.
func TestListChangedAfterALongSilence(t *testing.T) {
	if DefaultKeepAlive > 25*time.Second || progressEvery > 10*time.Second {
		t.Errorf("comments come every %s, progress every %s", DefaultKeepAlive, progressEvery)
	}
	s := newSide(t, Options{KeepAlive: 5 * time.Millisecond}, tenant.Options{})
	c := &raw{t: t, url: s.url + "/w"}
	c.initialize()
	stream := openStream(t, c.url, c.id)
	for range 20 {
		stream.until(": keep-alive")
	}
	s.join(s.tenantOf(s.connectAs(withSessions, "/w", nil)), `[{"name":"a","description":""}]`, answer("1"))
	stream.until("tools/list_changed")
}

// Clients seldom end their sessions.
func TestVanishedClientsLeaveNothing(t *testing.T) {
	if DefaultSessionIdle != 30*time.Minute {
		t.Errorf("sessions end after %s", DefaultSessionIdle)
	}
	s := newSide(t, Options{SessionIdle: 100 * time.Millisecond}, tenant.Options{})
	stays := s.connect()
	tn := s.tenantOf(stays)
	release := make(chan struct{})
	called := make(chan struct{})
	s.join(tn, `[{"name":"a","description":""}]`, func(l *tenant.Link, f tenant.CallFrame) {
		close(called)
		<-release
		_ = l.Answer(f.ID, tenant.Answer{})
	})
	done := make(chan error, 1)
	go func() {
		res, err := stays.CallTool(t.Context(), &mcp.CallToolParams{Name: "p__a"})
		if err == nil && res.IsError {
			err = fmt.Errorf("%v", res.Content)
		}
		done <- err
	}()
	<-called
	const vanished = 50
	round := func() {
		for range vanished {
			c := &raw{t: t, url: s.url}
			c.initialize()
			res := c.post(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
			_, _ = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
		}
		waitUntil(t, "the vanished clients' sessions to end", func() bool { return s.Sessions() == 1 })
	}
	round() // what is made once and stays, is made now
	before := runtime.NumGoroutine()
	round()
	waitUntil(t, "their goroutines to end", func() bool { return runtime.NumGoroutine() <= before+vanished/10 })
	// The one with a call that runs, and a stream, is there as long as these are.
	close(release)
	if err := <-done; err != nil {
		t.Errorf("the call that ran meanwhile: %v", err)
	}
}

// Some clients take 128 tools in all, or 40.
func TestPageToolsMayBeLeftOutOfTheList(t *testing.T) {
	eachEra(t, func(t *testing.T, version string) {
		s := newSide(t, Options{HidePageTools: true}, tenant.Options{})
		c := s.connectAs(version, "/w", nil)
		before := c.names()
		s.join(s.tenantOf(c), offerings, answer(`"fine"`))
		take(t, c.prompts) // the other lists change, and are told of
		if now := c.names(); strings.Join(now, " ") != strings.Join(before, " ") || len(c.changed) != 0 {
			t.Errorf("listed %v, then %v, told %d times", before, now, len(c.changed))
		}
		if text, failed := c.ask("describe_tools", `{}`); failed || !strings.Contains(text, `"p__t"`) {
			t.Errorf("describe_tools: %s", text)
		}
		for name, args := range map[string]string{"call_page_tool": `{"name":"p__t"}`, "p__t": `{}`} {
			if text, failed := c.ask(name, args); failed || text != "fine" {
				t.Errorf("%s: %s", name, text)
			}
		}
	})
}

func TestLongListIsWarnedOfOnce(t *testing.T) {
	var warnings atomic.Int32
	s := newSide(t, Options{}, tenant.Options{})
	s.Handler.log = slog.New(countingLog{slog.NewTextHandler(io.Discard, nil), "a long list of tools", &warnings})
	c := s.connect()
	tn := s.tenantOf(c)
	many := func(n int) string {
		tools := make([]string, n)
		for i := range tools {
			tools[i] = fmt.Sprintf(`{"name":"t%d"}`, i)
		}
		return `[` + strings.Join(tools, ",") + `]`
	}
	l := s.join(tn, many(manyTools-len(s.builtinTools)), answer("1"))
	c.names()
	if n := warnings.Load(); n != 0 {
		t.Errorf("%d warnings of a list that is not long", n)
	}
	s.register(l, many(manyTools))
	c.names()
	c.names()
	if n := warnings.Load(); n != 1 {
		t.Errorf("%d warnings, want one", n)
	}
}
