package main

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"

	"github.com/chromedp/chromedp"

	"jsbridge/internal/rig"
)

//go:embed page
var pageFiles embed.FS

// A tab is the fixture page, open in a browser of its own.
type tab struct {
	console *rig.Tail
	close   func()
}

// openPage serves the page on a port of its own, as in real life a page is of
// another origin than jsbridge, and opens it.
func openPage(ctx context.Context, base string) (_ *tab, err error) {
	files, err := fs.Sub(pageFiles, "page")
	if err != nil {
		return nil, err
	}
	site := httptest.NewServer(http.FileServerFS(files))
	stop := []func(){site.Close}
	t := &tab{console: &rig.Tail{}, close: func() {
		for i := len(stop) - 1; i >= 0; i-- {
			stop[i]()
		}
	}}
	defer func() {
		if err != nil {
			t.close()
		}
	}()

	tabCtx, stopBrowser, err := rig.Chromium(ctx)
	if err != nil {
		return nil, err
	}
	stop = append(stop, stopBrowser)
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
	stop = append(stop[:len(stop)-1], listener.Wait, stopBrowser)

	// The name that a browser trusts: crypto.subtle needs it.
	address := strings.Replace(site.URL, "127.0.0.1", "localhost", 1) + "/?server=" + url.QueryEscape(base)
	limited, cancel := context.WithTimeout(tabCtx, rig.Patience)
	defer cancel()
	if err := chromedp.Do(limited, chromedp.Navigate(address)); err != nil {
		return nil, fmt.Errorf("opening the page: %w", err)
	}
	return t, nil
}
