package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"jsbridge/internal/rig"
)

// roleVariable makes this program one of the other processes; see play.
const roleVariable = "JSBRIDGE_BENCH_ROLE"

// A crew is the processes of one run. The first that ends by itself ends them
// all.
type crew struct {
	dir     string          // of this run, to be removed with all in it
	ctx     context.Context // ends with the run; its cause says why
	cancel  context.CancelCauseFunc
	waiters sync.WaitGroup // one per process
}

func newCrew(ctx context.Context, dir string) *crew {
	c := &crew{dir: dir}
	c.ctx, c.cancel = context.WithCancelCause(ctx)
	return c
}

// stop ends every process and waits for it.
func (c *crew) stop() {
	c.cancel(errors.New("the run is over"))
	c.waiters.Wait()
}

// A process is one that was started.
type process struct {
	name  string
	pid   int
	in    io.Writer          // its stdin; the roles end when it is closed
	out   *rig.AddressFinder // nil for a peer, which need not print its address
	end   context.CancelFunc
	ended chan struct{} // closed once it has been waited for
	after func()        // nil, or what ends those that it started itself
}

// start runs the binary at path, or, when path is "", this program in a role.
func (c *crew) start(name, path, role string, args ...string) (*process, error) {
	if path == "" {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		path = self
	}
	ctx, end := context.WithCancel(c.ctx)
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	p := &process{name: name, out: rig.NewAddressFinder(), end: end, ended: make(chan struct{})}
	cmd.Stdout = p.out
	return p, c.watch(ctx, p, cmd)
}

// watch starts the command and waits for it. Until ctx ends it must run.
func (c *crew) watch(ctx context.Context, p *process, cmd *exec.Cmd) error {
	cmd.WaitDelay = 5 * time.Second // after which it is killed
	log := &rig.Tail{}
	cmd.Stderr = log
	if cmd.Stdout == nil {
		cmd.Stdout = log
	}
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		p.end()
		return fmt.Errorf("starting %s: %w", p.name, err)
	}
	p.in, p.pid = in, cmd.Process.Pid
	c.waiters.Go(func() {
		err := cmd.Wait()
		if p.after != nil {
			p.after()
		}
		if ctx.Err() == nil {
			c.cancel(fmt.Errorf("%s ended too early: %v\n%s", p.name, err, log))
		}
		p.end()
		close(p.ended)
	})
	return nil
}

// stop ends the process and waits for it.
func (p *process) stop() {
	p.end()
	<-p.ended
}

// address waits for the address that a server prints.
func (p *process) address(ctx context.Context) (string, error) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case base := <-p.out.Found:
		return base, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case <-timer.C:
		return "", fmt.Errorf("%s printed no address within %s", p.name, patience)
	}
}
