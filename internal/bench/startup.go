package main

import (
	"context"
	"fmt"
	"io"
	"time"
)

// dialEvery is how often a server that starts is tried to be connected to, which is
// how exact the measurement is.
const dialEvery = time.Millisecond / 2

// measureStarts gives, for each target, the times from the start of the process to
// the last byte of its answer to initialize. Each time it is a new process, on a new
// port; its file has been read before.
func measureStarts(c *crew, f field, count int, progress io.Writer) (map[string][]time.Duration, error) {
	fmt.Fprintf(progress, "bench: %d starts\n", count)
	starts := make(map[string][]time.Duration)
	for round := range count {
		for _, name := range inTurn(f.names(bare), round) {
			took, err := f.firstAnswer(c, name)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			starts[name] = append(starts[name], took)
		}
	}
	return starts, nil
}

func (f field) firstAnswer(c *crew, name string) (time.Duration, error) {
	port, err := freePort()
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	p, err := f.start(c, name, port)
	if err != nil {
		return 0, err
	}
	defer p.stop()
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	conn, err := endpoint{host: fmt.Sprintf("localhost:%d", port)}.dialStarting(ctx, dialEvery)
	if err != nil {
		return 0, err
	}
	defer conn.close()
	_ = conn.conn.SetDeadline(time.Now().Add(patience))
	if err := conn.greet(); err != nil {
		return 0, err
	}
	return time.Since(begun), nil
}
