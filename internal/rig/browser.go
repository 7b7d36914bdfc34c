package rig

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/chromedp/chromedp"
)

// Chromium starts a browser with one empty tab, whose context it gives. The
// function ends both.
func Chromium(ctx context.Context) (tab context.Context, stop func(), err error) {
	path, err := chromium()
	if err != nil {
		return nil, nil, err
	}
	opts := append([]chromedp.ExecAllocatorOption{chromedp.ExecPath(path), chromedp.WSURLReadTimeout(time.Minute)}, chromedp.DefaultExecAllocatorOptions[:]...)
	for _, f := range []string{"no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-background-networking", "disable-component-update", "disable-sync"} {
		opts = append(opts, chromedp.Flag(f, true))
	}
	alloc, stopBrowser := chromedp.NewExecAllocator(ctx, opts...)
	tab, stopTab := chromedp.NewContext(alloc)
	stop = func() {
		stopTab()
		stopBrowser()
	}
	if err := chromedp.Do(tab); err != nil {
		stop()
		return nil, nil, fmt.Errorf("starting Chromium: %w", err)
	}
	return tab, stop, nil
}

func chromium() (string, error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			return p, nil
		}
	}
	return "", errors.New("no Chromium found (chromium, google-chrome); install one, for example: apt-get install chromium")
}
