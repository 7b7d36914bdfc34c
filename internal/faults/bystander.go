package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"jsbridge/internal/rig"
)

// A bystander is a client with a page of its own, in a workspace of its own, that
// has nothing to do with the fault: it calls all the time, and nothing may happen to
// it.
type bystander struct {
	client *client
	page   *page
	end    context.CancelFunc
	told   int64 // of changed lists, before the fault
	done   sync.WaitGroup

	mu      sync.Mutex // held through each call
	resting bool
	calls   int
	worst   time.Duration
	err     error
}

const (
	// callEvery is the pause between two calls.
	callEvery = 20 * time.Millisecond
	// bystanderLimit bounds one call: more than the longest that a scenario stops the
	// whole server.
	bystanderLimit = 90 * time.Second
)

func newBystander(ctx context.Context, base string) (_ *bystander, err error) {
	ctx, end := context.WithCancel(ctx)
	b := &bystander{end: end, resting: true}
	defer func() {
		if err != nil {
			b.leave()
		}
	}()
	if b.client, err = connect(ctx, base, "bystander", withSessions); err != nil {
		return nil, err
	}
	at, err := b.client.connectString(ctx)
	if err != nil {
		return nil, err
	}
	if b.page, err = join(ctx, base, pageOptions{connect: at, instance: "tab-of-the-bystander", label: "bystander", tools: []string{"echo"}}); err != nil {
		return nil, err
	}
	// Its client is told of the page once, maybe after some calls.
	err = await(ctx, rig.Patience, "the bystander to be told of its page", func() (bool, error) {
		return b.client.changed.Load() > 0, b.client.echo(ctx, b.page.prefix, "first")
	})
	if err != nil {
		return nil, err
	}
	b.told = b.client.changed.Load()
	b.done.Go(func() { b.live(ctx) })
	return b, nil
}

// live calls until the end.
func (b *bystander) live(ctx context.Context) {
	for n := 0; pause(ctx, callEvery) == nil; n++ {
		b.mu.Lock()
		if !b.resting && b.err == nil {
			begun := time.Now()
			limited, cancel := context.WithTimeout(ctx, bystanderLimit)
			text := fmt.Sprintf("call %d", n)
			err := b.client.succeed(limited, b.page.prefix+"__echo", map[string]any{"text": text}, text)
			cancel()
			if ctx.Err() == nil {
				b.err = err
				b.calls++ // also one that failed
				b.worst = max(b.worst, time.Since(begun))
			}
		}
		b.mu.Unlock()
	}
}

// resume has it call.
func (b *bystander) resume() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.resting = false
}

// rest has it make no calls, and hold no connections but its page's and its
// stream's.
func (b *bystander) rest(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.resting = true
	b.client.transport.CloseIdleConnections()
	return context.Cause(ctx)
}

// verdict tells what it saw, after at least one more call.
func (b *bystander) verdict(ctx context.Context) (string, error) {
	select {
	case <-b.page.ended:
		return "", fmt.Errorf("its page was disconnected: %w", b.page.why)
	default:
	}
	err := await(ctx, bystanderLimit, "a call of it", func() (bool, error) { // a fault may take no time
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.calls > 0, nil
	})
	if err != nil {
		return "", err
	}
	if err := b.client.echo(ctx, b.page.prefix, "last"); err != nil {
		return "", err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return "", fmt.Errorf("its call %d: %w", b.calls, b.err)
	}
	if n := b.client.changed.Load() - b.told; n != 0 {
		return "", fmt.Errorf("it was told %d times that its tools have changed", n)
	}
	return fmt.Sprintf("%d calls, the slowest took %s", b.calls, short(b.worst)), nil
}

// leave ends it; a second time it does nothing.
func (b *bystander) leave() {
	b.end()
	b.done.Wait()
	if b.page != nil {
		b.page.cut()
	}
	if b.client != nil {
		b.client.leave()
	}
}

func short(d time.Duration) time.Duration {
	switch {
	case d > 10*time.Second:
		return d.Round(time.Second)
	case d > time.Second:
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Millisecond)
}
