// Package rig starts the real parts for programs that try jsbridge: its binary,
// and a browser.
package rig

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"time"
)

// Patience bounds every wait for something that should happen at once.
const Patience = 30 * time.Second

// Build builds jsbridge into a directory and gives the binary's path.
func Build(ctx context.Context, dir string) (string, error) {
	binary := filepath.Join(dir, "jsbridge")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", binary, "jsbridge/cmd/jsbridge").CombinedOutput(); err != nil {
		return "", fmt.Errorf("building jsbridge: %w\n%s", err, out)
	}
	return binary, nil
}

// A Server is one running jsbridge.
type Server struct {
	Base string // http://localhost:port
	Log  *Tail  // the end of its stderr

	end   context.CancelFunc
	ended chan struct{}
}

// Start starts jsbridge on a free port, with further arguments. It ends with
// [Server.Stop], or with ctx.
func Start(ctx context.Context, binary string, args ...string) (*Server, error) {
	ctx, end := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, binary, append([]string{"--port", "0", "--drain", "1s"}, args...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second // then it is killed
	s := &Server{Log: &Tail{}, end: end, ended: make(chan struct{})}
	address := NewAddressFinder()
	cmd.Stdout, cmd.Stderr = address, s.Log
	if err := cmd.Start(); err != nil {
		end()
		return nil, fmt.Errorf("starting jsbridge: %w", err)
	}
	go func() {
		_ = cmd.Wait()
		close(s.ended)
	}()
	select {
	case s.Base = <-address.Found:
		return s, nil
	case <-s.ended:
		end()
		return nil, fmt.Errorf("jsbridge ended at once: %s", s.Log)
	case <-time.After(Patience):
		s.Stop()
		return nil, fmt.Errorf("jsbridge printed no address within %s: %s", Patience, s.Log)
	}
}

// Stop ends jsbridge and waits for it; a second time it does nothing.
func (s *Server) Stop() {
	s.end()
	<-s.ended
}

var addressPattern = regexp.MustCompile(`(http://localhost:\d+)\D`)

// An AddressFinder takes a server's stdout and looks for its address.
type AddressFinder struct {
	Found chan string // has the address once it is there

	text []byte
	done bool
}

// NewAddressFinder gives one that has found nothing yet.
func NewAddressFinder() *AddressFinder { return &AddressFinder{Found: make(chan string, 1)} }

func (f *AddressFinder) Write(b []byte) (int, error) {
	if f.done {
		return len(b), nil
	}
	f.text = append(f.text, b...)
	if m := addressPattern.FindSubmatch(f.text); m != nil {
		f.Found <- string(m[1])
		f.done, f.text = true, nil
	}
	return len(b), nil
}

// A Tail keeps the end of what is written to it, 16 KiB.
type Tail struct {
	mu   sync.Mutex
	text []byte
}

const tailBytes = 16 << 10

func (t *Tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	if over := len(t.text) - tailBytes; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(b), nil
}

func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
