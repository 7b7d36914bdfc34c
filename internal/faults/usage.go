package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"

	"jsbridge/internal/rig"
)

// heapSlack is how much more heap a server may have after a scenario than before:
// its log of calls, which the dashboard shows, has filled meanwhile. It is bounded,
// but not empty.
const heapSlack = 6 << 20

// usage is what a server holds.
type usage struct {
	goroutines  int
	descriptors int
	heap        int64 // bytes in use after a collection
}

func (u usage) String() string {
	return fmt.Sprintf("%d goroutines, %d descriptors, %s MB of heap", u.goroutines, u.descriptors, mb(u.heap))
}

// within tells whether u is no more than before, but for the heap's slack.
func (u usage) within(before usage) bool {
	return u.goroutines <= before.goroutines && u.descriptors <= before.descriptors && u.heap <= before.heap+heapSlack
}

// measure asks the server, and the system, what the server holds. What the asking
// itself takes is part of it, each time the same: it has a connection of its own that
// stays open.
func measure(ctx context.Context, a *arena) (u usage, err error) {
	// Twice, since what is pooled survives one collection.
	for range 2 {
		heap, err := a.ask(ctx, "/debug/pprof/heap?gc=1&debug=1")
		if err != nil {
			return u, err
		}
		if u.heap, err = number(heap, "# HeapAlloc = "); err != nil {
			return u, err
		}
	}
	profile, err := a.ask(ctx, "/debug/pprof/goroutine?debug=1")
	if err != nil {
		return u, err
	}
	total, err := number(profile, "goroutine profile: total ")
	if err != nil {
		return u, err
	}
	u.goroutines = int(total)
	u.descriptors, err = descriptors(a.server.Pid)
	return u, err
}

func descriptors(pid int) (int, error) {
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	return len(open), err
}

// number reads what follows a text.
func number(text []byte, after string) (int64, error) {
	_, rest, found := bytes.Cut(text, []byte(after))
	if !found {
		return 0, fmt.Errorf("the profile has no %q", after)
	}
	digits := rest[:len(rest)-len(bytes.TrimLeft(rest, "0123456789"))]
	return strconv.ParseInt(string(digits), 10, 64)
}

// ask fetches something over the connection that measures.
func (a *arena) ask(ctx context.Context, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, rig.Patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.server.Base+path, nil)
	if err != nil {
		return nil, err
	}
	res, err := a.asking.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET %s: %s", path, res.Status)
	}
	return io.ReadAll(res.Body)
}

// settling, fixed but for tests, bounds the wait for things to be as before: what a server waits for
// longest, after its peers have gone, is a dashboard that might come back.
var settling = 120 * time.Second

// steady measures a server whose bystander rests, once it has held the same for a
// while: what it had for its start would hide a leak.
func steady(ctx context.Context, a *arena) (usage, error) {
	const enough = 4
	var last usage
	same := 0
	err := await(ctx, rig.Patience, "the server to be steady", func() (bool, error) {
		u, err := a.atRest(ctx)
		if u.goroutines != last.goroutines || u.descriptors != last.descriptors {
			same = 0
		}
		same++
		last = u
		return same == enough, err
	})
	return last, err
}

// settle waits until the server holds no more than before.
func settle(ctx context.Context, a *arena, before usage) (u usage, err error) {
	err = await(ctx, settling, "", func() (bool, error) {
		u, err = a.atRest(ctx)
		return u.within(before), err
	})
	if errors.Is(err, errWaited) {
		profile, _ := a.ask(ctx, "/debug/pprof/goroutine?debug=1") // for a human; it may be missing
		return u, fmt.Errorf("%s later the server holds %s; before: %s\n%s", settling, u, before, profile)
	}
	return u, err
}

func (a *arena) atRest(ctx context.Context) (usage, error) {
	if err := a.by.rest(ctx); err != nil {
		return usage{}, err
	}
	return measure(ctx, a)
}

var errWaited = errors.New("waited in vain")

// await asks again and again, until ok, an error, or the limit.
func await(ctx context.Context, limit time.Duration, what string, ok func() (bool, error)) error {
	end := time.NewTimer(limit)
	defer end.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if done, err := ok(); done || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-end.C:
			return fmt.Errorf("%w %s for %s", errWaited, limit, what)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// pause waits for that long, or for ctx's end.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
