package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// startBrowser starts a Chromium with a fresh profile. A flag is its name, or
// name=value.
func startBrowser(path string, flags ...string) (ctx context.Context, stop func(), err error) {
	opts := append([]chromedp.ExecAllocatorOption{chromedp.ExecPath(path)}, chromedp.DefaultExecAllocatorOptions[:]...)
	for _, f := range append(flags, "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-background-networking", "disable-component-update", "disable-sync") {
		if name, value, ok := strings.Cut(f, "="); ok {
			opts = append(opts, chromedp.Flag(name, value))
		} else {
			opts = append(opts, chromedp.Flag(name, true))
		}
	}
	alloc, stopAlloc := chromedp.NewExecAllocator(context.Background(), append(opts, chromedp.WSURLReadTimeout(time.Minute))...)
	ctx, stopTab := chromedp.NewContext(alloc)
	stop = func() {
		stopTab()
		stopAlloc()
	}
	if err := chromedp.Do(ctx); err != nil {
		stop()
		return nil, nil, fmt.Errorf("starting Chromium: %w", err)
	}
	return ctx, stop, nil
}

// withBrowser has the test's tabs opened in a browser of its own.
func withBrowser(t *testing.T, flags ...string) {
	t.Helper()
	needBrowser(t)
	ctx, stop, err := startBrowser(chromium(), flags...)
	if err != nil {
		t.Fatal(err)
	}
	usual := browser
	browser = ctx
	t.Cleanup(func() {
		browser = usual
		stop()
	})
}

// needBrowser skips, or fails under CI, without a Chromium.
func needBrowser(t *testing.T) {
	t.Helper()
	if browser == nil {
		if os.Getenv("CI") != "" {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
}

func chromium() string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			return p
		}
	}
	return ""
}

// tab is one tab of the browser.
type tab struct {
	t   *testing.T
	ctx context.Context
	end context.CancelFunc

	mu      sync.Mutex
	console []string
}

func newTab(t *testing.T) *tab {
	t.Helper()
	needBrowser(t)
	ctx, end := chromedp.NewContext(browser)
	tb := &tab{t: t, ctx: ctx, end: end}
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("opening a tab: %v", err)
	}
	messages := chromedp.Console(ctx)
	var listener sync.WaitGroup
	listener.Go(func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			tb.mu.Lock()
			tb.console = append(tb.console, m.String())
			tb.mu.Unlock()
		}
	})
	t.Cleanup(func() {
		end()
		listener.Wait()
	})
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("console:\n%s", strings.Join(tb.lines(""), "\n"))
		}
	})
	return tb
}

// lines are the console's lines so far that contain a text.
func (tb *tab) lines(part string) []string {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	var found []string
	for _, l := range tb.console {
		if strings.Contains(l, part) {
			found = append(found, l)
		}
	}
	return found
}

func (tb *tab) waitLine(part string) {
	tb.t.Helper()
	waitFor(tb.t, "console line with "+part, func() bool { return len(tb.lines(part)) > 0 })
}

func (tb *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	tb.t.Helper()
	ctx, cancel := context.WithTimeout(tb.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		tb.t.Fatalf("browser: %v", err)
	}
}

func (tb *tab) open(url string) *tab {
	tb.t.Helper()
	tb.do(chromedp.Navigate(url))
	return tb
}

// paste evaluates a line as the console of DevTools does.
func (tb *tab) paste(line string) *tab {
	tb.t.Helper()
	tb.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		yes := true
		res, err := cdp.Call(ctx, t, runtime.Evaluate, runtime.EvaluateParams{Expression: line, UserGesture: &yes, ReplMode: &yes})
		if err == nil && res.ExceptionDetails != nil {
			err = errors.New(res.ExceptionDetails.Text)
		}
		return err
	}))
	return tb
}

// eval gives the value of an expression, awaited.
func eval[T any](tb *tab, js string) T {
	tb.t.Helper()
	ctx, cancel := context.WithTimeout(tb.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](js, chromedp.EvalAwaitPromise))
	if err != nil {
		tb.t.Fatalf("evaluating %s: %v", js, err)
	}
	return v
}

// shut closes the tab as a user does.
func (tb *tab) shut() { tb.end() }

// press clicks the button of this name, wherever in the page it is, as a user
// does. Nothing happens when there is none.
func (tb *tab) press(button string) {
	tb.t.Helper()
	tb.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		tree, err := cdp.Call(ctx, t, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
		if err != nil {
			return err
		}
		for _, n := range tree.Nodes {
			if n.Ignored || n.Name == nil || n.Role == nil || string(n.Role.Value) != `"button"` || string(n.Name.Value) != fmt.Sprintf("%q", button) {
				continue
			}
			box, err := cdp.Call(ctx, t, dom.GetContentQuads, dom.GetContentQuadsParams{BackendNodeID: n.BackendDOMNodeID})
			if err != nil || len(box.Quads) == 0 {
				return nil // it has just gone
			}
			q := box.Quads[0]
			for _, what := range []input.DispatchMouseEventType{"mousePressed", "mouseReleased"} {
				if _, err := cdp.Call(ctx, t, input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: what, X: (q[0] + q[4]) / 2, Y: (q[1] + q[5]) / 2, Button: "left", ClickCount: 1}); err != nil {
					return err
				}
			}
		}
		return nil
	}))
}
