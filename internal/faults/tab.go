package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/chromedp/chromedp"

	"jsbridge/internal/rig"
)

// A tab is a real page in a browser of its own: named Tab, with the tools echo,
// slow and hold. It connects by itself.
type tab struct {
	ctx     context.Context
	console *rig.Tail
	held    chan struct{} // an entry for each call of slow or hold that runs
	pid     int
	close   func()
}

const tabPage = `<!doctype html><title>Tab</title><link rel=icon href="data:,"><script>
window.__mcpTools = [
  {name: 'echo', description: 'Gives the text back.', params: {text: {type: 'string'}}, fn: ({text}) => text},
  {name: 'slow', description: 'Takes five seconds.', fn: () => { fetch('/holds'); return new Promise((done) => setTimeout(done, 5000, 'done at last')) }},
  {name: 'hold', description: 'Never ends.', fn: () => { fetch('/holds'); return new Promise(() => {}) }},
]
</script><script type=module>import(%q)</script>`

func openTab(ctx context.Context, w *workspace) (_ *tab, err error) {
	t := &tab{console: &rig.Tail{}, held: make(chan struct{}, 100)}
	page := fmt.Sprintf(tabPage, w.base+"/main.js?"+url.Values{"server": {w.base}, "tenant": {w.connect}}.Encode())
	site := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/holds" {
			t.held <- struct{}{}
			return
		}
		rw.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(rw, page)
	}))
	browser, stop, err := rig.Chromium(ctx)
	if err != nil {
		site.Close()
		return nil, err
	}
	t.ctx = browser
	t.pid = chromedp.FromContext(browser).Browser.Process().Pid
	messages := chromedp.Console(browser)
	var listener sync.WaitGroup
	listener.Go(func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			fmt.Fprintln(t.console, m)
		}
	})
	t.close = func() {
		t.signal(sigGoOn)
		stop()
		listener.Wait()
		site.CloseClientConnections()
		site.Close()
	}
	limited, cancel := context.WithTimeout(browser, rig.Patience)
	defer cancel()
	if err := chromedp.Do(limited, chromedp.Navigate(strings.Replace(site.URL, "127.0.0.1", "localhost", 1))); err != nil {
		t.close()
		return nil, fmt.Errorf("opening the tab: %w", err)
	}
	err = await(ctx, rig.Patience, "the tab to be connected", func() (bool, error) {
		_, failed, err := w.client.call(ctx, "tab__echo", map[string]any{"text": "hello"})
		return err == nil && !failed, nil // there is no such tool yet
	})
	if err != nil {
		t.close()
		return nil, fmt.Errorf("%w\nits console:\n%s", err, t.console)
	}
	return t, nil
}

// holds waits until a call of slow or hold runs in the tab.
func (t *tab) holds(ctx context.Context) error {
	_, err := within(ctx, rig.Patience, "the tab to hold a call", t.held)
	return err
}

// signal sends a signal to every process of the browser.
func (t *tab) signal(sig syscall.Signal) {
	for _, pid := range family(t.pid) {
		_ = kill(pid, sig) // it may have ended
	}
}

// family is a process, and all that it has started, by /proc.
func family(pid int) []int {
	parents := make(map[int][]int)
	all, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is right
	for _, path := range all {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		child, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		// The name, which may hold anything, is in parentheses.
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if err != nil || len(fields) < 2 {
			continue
		}
		if parent, err := strconv.Atoi(fields[1]); err == nil {
			parents[parent] = append(parents[parent], child)
		}
	}
	found := []int{pid}
	for i := 0; i < len(found); i++ {
		found = append(found, parents[found[i]]...)
	}
	return found
}
