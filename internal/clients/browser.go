package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"

	"github.com/chromedp/chromedp"

	"jsbridge/internal/rig"
	legacypage "jsbridge/legacy-page"
)

// A browser is a Chromium, and the example page on an origin of its own.
type browser struct {
	ctx    context.Context
	bridge string // jsbridge's address
	page   string // the example page's
	close  func()
}

func openBrowser(ctx context.Context, bridge string) (*browser, error) {
	first, stop, err := rig.Chromium(ctx)
	if err != nil {
		return nil, err
	}
	site := httptest.NewServer(http.FileServerFS(legacypage.Files))
	return &browser{ctx: first, bridge: bridge, page: strings.Replace(site.URL, "127.0.0.1", "localhost", 1) + "/hello-world.html", close: func() {
		stop()
		site.Close()
	}}, nil
}

// openHello opens the page that all clients use, as the connection "hello".
func (b *browser) openHello() error { return b.join(b.ctx, "hello") }

// openSecond opens another one, which closes again with the given function.
func (b *browser) openSecond() (shut func(), err error) {
	ctx, shut := chromedp.NewContext(b.ctx)
	if err := chromedp.Do(ctx); err != nil {
		shut()
		return nil, fmt.Errorf("opening a tab: %w", err)
	}
	if err := b.join(ctx, "second"); err != nil {
		shut()
		return nil, err
	}
	return shut, nil
}

// join opens the example page in a tab and connects it under a name.
func (b *browser) join(tab context.Context, name string) error {
	ctx, cancel := context.WithTimeout(tab, rig.Patience)
	defer cancel()
	if err := chromedp.Do(ctx, chromedp.Navigate(b.page)); err != nil {
		return fmt.Errorf("opening %s: %w", b.page, err)
	}
	line := fmt.Sprintf("import(%q).then(() => true)", b.bridge+"/main.js?server="+url.QueryEscape(b.bridge)+"&tenant="+name)
	if _, err := chromedp.Run(ctx, chromedp.Evaluate[bool](line, chromedp.EvalAwaitPromise)); err != nil {
		return fmt.Errorf("connecting %s: %w", name, err)
	}
	return nil
}
