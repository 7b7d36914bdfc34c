// Package rig starts the real parts for programs that try jsbridge: its binary,
// and a browser.
package rig

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Patience bounds every wait for something that should happen at once.
const Patience = 30 * time.Second

// Build builds jsbridge into a directory, with further flags of go build, and gives
// the binary's path.
func Build(ctx context.Context, dir string, flags ...string) (string, error) {
	binary := filepath.Join(dir, "jsbridge")
	args := append(append([]string{"build", "-o", binary}, flags...), "jsbridge/cmd/jsbridge")
	if out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("building jsbridge: %w\n%s", err, out)
	}
	return binary, nil
}

// A Server is one running jsbridge.
type Server struct {
	Base string // http://localhost:port
	Log  *Tail  // the end of its stderr
	Pid  int

	cmd   *exec.Cmd
	end   context.CancelFunc
	ended chan struct{}
}

// Start starts jsbridge on a free port, or the one that further arguments name. It
// ends with [Server.Stop], or with ctx.
func Start(ctx context.Context, binary string, args ...string) (*Server, error) {
	ctx, end := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, binary, append([]string{"--port", "0", "--drain", "1s"}, args...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second // then it is killed
	s := &Server{Log: &Tail{}, cmd: cmd, end: end, ended: make(chan struct{})}
	address := NewAddressFinder()
	cmd.Stdout, cmd.Stderr = address, s.Log
	if err := cmd.Start(); err != nil {
		end()
		return nil, fmt.Errorf("starting jsbridge: %w", err)
	}
	s.Pid = cmd.Process.Pid
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

// Kill ends jsbridge as nobody should, with SIGKILL, and waits for it.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill() // it may have ended
	s.Stop()
}

// Signal sends jsbridge a signal.
func (s *Server) Signal(sig syscall.Signal) error { return s.cmd.Process.Signal(sig) }

// Port is where it listens.
func (s *Server) Port() string { return s.Base[strings.LastIndex(s.Base, ":")+1:] }

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

// A Tail keeps the end of what is written to it, 16 KiB, and the first lines that
// tell of a fault.
type Tail struct {
	mu     sync.Mutex
	text   []byte
	alarms []string
}

const maxAlarms = 20

const tailBytes = 16 << 10

func (t *Tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	for line := range bytes.Lines(b) { // slog writes whole lines, and so does a panic its first
		if len(t.alarms) < maxAlarms && isAlarm(line) {
			t.alarms = append(t.alarms, string(bytes.TrimSpace(line)))
		}
	}
	if over := len(t.text) - tailBytes; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(b), nil
}

func isAlarm(line []byte) bool {
	for _, sign := range []string{"level=ERROR", "panic", "fatal error", "DATA RACE"} {
		if bytes.Contains(line, []byte(sign)) {
			return true
		}
	}
	return false
}

// Alarms are the lines that no healthy server writes, the first 20.
func (t *Tail) Alarms() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]string(nil), t.alarms...)
}

func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
