package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"jsbridge/internal/rig"
)

// roleVariable makes this program the pages' process.
const roleVariable = "JSBRIDGE_LOAD_ROLE"

const rolePages = "pages"

// A pagesProcess has the pages; it is asked by orders.
type pagesProcess struct {
	in    io.Writer
	out   *json.Decoder
	end   context.CancelFunc
	ended chan struct{}
	log   *rig.Tail
}

// startPages starts the process. It ends with ctx, or with stop.
func startPages(ctx context.Context) (*pagesProcess, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	ctx, end := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), roleVariable+"="+rolePages)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second // then it is killed
	p := &pagesProcess{end: end, ended: make(chan struct{}), log: &rig.Tail{}}
	cmd.Stderr = p.log
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2); err != nil {
		end()
		return nil, err
	}
	p.in, p.out = in, json.NewDecoder(bufio.NewReader(out))
	if err := cmd.Start(); err != nil {
		end()
		return nil, fmt.Errorf("starting the pages: %w", err)
	}
	go func() {
		<-ctx.Done()
		_ = cmd.Wait() // it is only over once stdout was read, and nobody does any more
		close(p.ended)
	}()
	return p, nil
}

// ask gives one order and waits for its account.
func (p *pagesProcess) ask(o order) (account, error) {
	b, err := json.Marshal(o)
	if err != nil {
		return account{}, err
	}
	var a account
	if _, err = p.in.Write(append(b, '\n')); err == nil {
		err = p.out.Decode(&a)
	}
	if err != nil {
		p.stop()
		return a, fmt.Errorf("the pages' process (%s): %w\n%s", o.Do, err, p.log)
	}
	return a, nil
}

func (p *pagesProcess) stop() {
	p.end()
	<-p.ended
}
