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
	ctx     context.Context // ends with the run; its cause says why
	cancel  context.CancelCauseFunc
	waiters sync.WaitGroup // one per process
}

func newCrew(ctx context.Context) *crew {
	c := &crew{}
	c.ctx, c.cancel = context.WithCancelCause(ctx)
	return c
}

// stop ends every process and waits for it.
func (c *crew) stop() {
	c.cancel(errors.New("the run is over"))
	c.waiters.Wait()
}

// A process is one that was started and has not been waited for.
type process struct {
	name string
	pid  int
	in   io.Writer // its stdin; the roles end when it is closed
	out  *rig.AddressFinder
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
	cmd := exec.CommandContext(c.ctx, path, args...)
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second // then it is killed
	p := &process{name: name, out: rig.NewAddressFinder()}
	log := &rig.Tail{}
	cmd.Stdout, cmd.Stderr = p.out, log
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	p.in = in
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	p.pid = cmd.Process.Pid
	c.waiters.Go(func() {
		err := cmd.Wait()
		// After the run's end this does nothing: the first cause counts.
		c.cancel(fmt.Errorf("%s ended too early: %v\n%s", name, err, log))
	})
	return p, nil
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
