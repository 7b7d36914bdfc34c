package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// patience bounds every wait for something that should happen at once.
const patience = 30 * time.Second

// A server is one running jsbridge.
type server struct {
	base  string // http://localhost:port
	log   *tail
	end   context.CancelFunc
	ended chan struct{}
}

// startServer starts jsbridge on a free port, with the names of the connection
// "conformance" left as they are.
func startServer(ctx context.Context, binary, state string) (*server, error) {
	ctx, end := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, binary, "--port", "0", "--state", state, "--bare", "conformance", "--drain", "1s")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second // then it is killed
	s := &server{log: &tail{}, end: end, ended: make(chan struct{})}
	address := &addressFinder{found: make(chan string, 1)}
	cmd.Stdout, cmd.Stderr = address, s.log
	if err := cmd.Start(); err != nil {
		end()
		return nil, fmt.Errorf("starting jsbridge: %w", err)
	}
	go func() {
		_ = cmd.Wait()
		close(s.ended)
	}()
	select {
	case s.base = <-address.found:
		return s, nil
	case <-s.ended:
		end()
		return nil, fmt.Errorf("jsbridge ended at once: %s", s.log)
	case <-time.After(patience):
		s.stop()
		return nil, fmt.Errorf("jsbridge printed no address within %s: %s", patience, s.log)
	}
}

// stop ends jsbridge and waits for it; a second time it does nothing.
func (s *server) stop() {
	s.end()
	<-s.ended
}

var addressPattern = regexp.MustCompile(`(http://localhost:\d+)\D`)

// An addressFinder takes a server's stdout and looks for its address.
type addressFinder struct {
	found chan string // buffered
	text  []byte
	done  bool
}

func (f *addressFinder) Write(b []byte) (int, error) {
	if f.done {
		return len(b), nil
	}
	f.text = append(f.text, b...)
	if m := addressPattern.FindSubmatch(f.text); m != nil {
		f.found <- string(m[1])
		f.done, f.text = true, nil
	}
	return len(b), nil
}

// A tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailBytes = 64 << 10

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	if over := len(t.text) - tailBytes; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}

// published is the page's tool that is waited for: all of a page's tools,
// prompts and resources come at once.
const published = "test_simple_text"

// waitPublished waits until clients of both eras see what the page declared.
func waitPublished(ctx context.Context, base string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, r := range revisions {
		if err := waitTool(ctx, base, r.name); err != nil {
			return fmt.Errorf("%s, waiting for the page's tools: %w", r.name, err)
		}
	}
	return nil
}

func waitTool(ctx context.Context, base, version string) error {
	c := mcp.NewClient(&mcp.Implementation{Name: "conformance", Version: "1"}, nil)
	ss, err := c.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: base + "/mcp", DisableStandaloneSSE: true},
		&mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		return err
	}
	defer ss.Close()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		var names []string
		for tool, err := range ss.Tools(ctx, nil) {
			if err != nil {
				return errors.Join(err, context.Cause(ctx))
			}
			names = append(names, tool.Name)
		}
		if slices.Contains(names, published) {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("no %s among: %s", published, strings.Join(names, ", "))
		}
	}
}
