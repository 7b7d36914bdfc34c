package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/chromedp"
)

//go:embed page
var pageFiles embed.FS

// A tab is the fixture page, open in a browser of its own.
type tab struct {
	console *tail
	close   func()
}

// openPage serves the page on a port of its own, as in real life a page is of
// another origin than jsbridge, and opens it.
func openPage(ctx context.Context, base string) (_ *tab, err error) {
	path, err := chromium()
	if err != nil {
		return nil, err
	}
	files, err := fs.Sub(pageFiles, "page")
	if err != nil {
		return nil, err
	}
	site := httptest.NewServer(http.FileServerFS(files))
	stop := []func(){site.Close}
	t := &tab{console: &tail{}, close: func() {
		for i := len(stop) - 1; i >= 0; i-- {
			stop[i]()
		}
	}}
	defer func() {
		if err != nil {
			t.close()
		}
	}()

	opts := append([]chromedp.ExecAllocatorOption{chromedp.ExecPath(path), chromedp.WSURLReadTimeout(time.Minute)}, chromedp.DefaultExecAllocatorOptions[:]...)
	for _, f := range []string{"no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-background-networking", "disable-component-update", "disable-sync"} {
		opts = append(opts, chromedp.Flag(f, true))
	}
	alloc, stopBrowser := chromedp.NewExecAllocator(ctx, opts...)
	tabCtx, stopTab := chromedp.NewContext(alloc)
	stop = append(stop, stopBrowser, stopTab)
	if err := chromedp.Do(tabCtx); err != nil {
		return nil, fmt.Errorf("starting Chromium: %w", err)
	}
	messages := chromedp.Console(tabCtx)
	var listener sync.WaitGroup
	listener.Go(func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			fmt.Fprintln(t.console, m)
		}
	})
	stop = append(stop[:len(stop)-1], listener.Wait, stopTab)

	// The name that a browser trusts: crypto.subtle needs it.
	address := strings.Replace(site.URL, "127.0.0.1", "localhost", 1) + "/?server=" + url.QueryEscape(base)
	limited, cancel := context.WithTimeout(tabCtx, patience)
	defer cancel()
	if err := chromedp.Do(limited, chromedp.Navigate(address)); err != nil {
		return nil, fmt.Errorf("opening the page: %w", err)
	}
	return t, nil
}

func chromium() (string, error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			return p, nil
		}
	}
	return "", errors.New("no Chromium found (chromium, google-chrome); install one, for example: apt-get install chromium")
}
