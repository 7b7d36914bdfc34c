package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// changeEvery is the time between changes: longer than jsbridge collects
// several into one.
const changeEvery = 320 * time.Millisecond

// changes is what was measured of the tool list.
type changes struct {
	count       int
	median, max time.Duration
}

// measureChanges has the page change its tool again and again, and waits for
// the session to be told each time. A latency is the time from asking the
// page's process for the change to the notification on the open stream.
func measureChanges(ctx context.Context, t *target, count int) (changes, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c, err := t.dial(ctx)
	if err != nil {
		return changes{}, err
	}
	defer c.close()
	res, err := c.request(http.MethodGet, "text/event-stream", nil)
	if err != nil {
		return changes{}, err
	}
	if res.StatusCode != http.StatusOK {
		return changes{}, fmt.Errorf("GET: %s", res.Status)
	}
	told := make(chan time.Time, count+1)
	go func() { cancel(notifications(res.Body, func(at time.Time) { told <- at })) }()

	var all []time.Duration
	for len(all) < count {
		if err := pause(ctx, changeEvery); err != nil {
			return changes{}, err
		}
		if len(told) > 0 {
			return changes{}, errors.New("the session was told of a change that was none")
		}
		begun := time.Now()
		if _, err := io.WriteString(t.pages[0].in, "\n"); err != nil {
			return changes{}, err
		}
		timer := time.NewTimer(patience)
		select {
		case at := <-told:
			all = append(all, at.Sub(begun))
		case <-ctx.Done():
			err = context.Cause(ctx)
		case <-timer.C:
			err = fmt.Errorf("the session was not told of a change within %s", patience)
		}
		timer.Stop()
		if err != nil {
			return changes{}, err
		}
	}
	tool, err := t.pageTool(ctx)
	if err != nil {
		return changes{}, err
	}
	if tool == nil || !strings.HasPrefix(tool.Description, describe(count)) {
		return changes{}, fmt.Errorf("after %d changes tools/list shows %+v", count, tool)
	}
	return changes{count: count, median: median(all), max: slices.Max(all)}, nil
}

// notifications says when each change was told, until the stream ends.
func notifications(stream io.Reader, told func(at time.Time)) error {
	lines := bufio.NewScanner(stream)
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data:"); ok && strings.Contains(data, `"notifications/tools/list_changed"`) {
			told(time.Now())
		}
	}
	return fmt.Errorf("the session's stream has ended: %v", lines.Err())
}
