package agent

//lint:file-ignore SA1019 MCP logging works in all versions before 2026-07-28, which clients will speak for long.

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"jsbridge/tenant"
)

// watch passes what a page says during a call on to its client, and speaks up
// itself when the page is silent for long.
type watch struct {
	s     *session
	ctx   context.Context // the call's: leads the SDK to the right stream
	r     *request
	label string
	token any // nil: the client wants no progress

	mu      sync.Mutex
	timer   *time.Timer
	stopped bool
	told    bool
	last    float64 // greatest progress told; MCP wants it to increase
	total   float64
}

func newWatch(ctx context.Context, s *session, r *request, label string) *watch {
	w := &watch{s: s, ctx: ctx, r: r, label: label, token: r.token}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(s.h.progressEvery-time.Since(r.begun), w.beat)
	return w
}

// stop ends the watch; nothing is sent afterwards.
func (w *watch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	w.timer.Stop()
}

// event passes on what the page said.
func (w *watch) event(e tenant.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.stopped:
	case e.Progress != nil && w.token != nil:
		w.total = e.Progress.Total
		w.tell(e.Progress.Progress, e.Progress.Message)
		w.timer.Reset(w.s.h.progressEvery)
	case e.Log != nil:
		_ = w.r.ss.Log(w.ctx, &mcp.LoggingMessageParams{
			Level: mcp.LoggingLevel(e.Log.Level), Logger: e.Log.Logger, Data: e.Log.Data,
		})
	}
}

// beat tells a client which asked for progress that the call goes on, and keeps
// any client's connection from being cut as idle.
func (w *watch) beat() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return
	}
	if w.token != nil {
		w.tell(w.last, fmt.Sprintf("still running in %q for %d s", w.label, int(time.Since(w.r.begun).Seconds())))
	} else if st, ok := w.s.h.posts.Load(w.r.post()); ok {
		st.(*stream).keepAlive()
		return // which goes on by itself
	}
	w.timer.Reset(w.s.h.progressEvery)
}

// tell sends progress that is more than what was told before. w.mu must be held.
func (w *watch) tell(progress float64, message string) {
	if w.told && progress <= w.last {
		progress = w.last + 1e-6
	}
	w.told, w.last = true, progress
	_ = w.r.ss.NotifyProgress(w.ctx, &mcp.ProgressNotificationParams{
		ProgressToken: w.token, Progress: progress, Total: w.total, Message: message,
	})
}
