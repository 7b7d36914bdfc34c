package main

import (
	"context"
	"fmt"
	"time"

	"jsbridge/internal/rig"
)

var reconnects = []scenario{{
	name: "reconnect/500 times", quick: true,
	promise: "a page that loses its socket 500 times keeps its prefix, and so do those that have the same name; a call after each reaches it; nothing grows",
	run:     runReconnects,
}}

// Some ends without and some with a close frame, as networks, reloads and crashes
// do it.
func runReconnects(ctx context.Context, a *arena) (string, error) {
	const times = 500
	w, err := newWorkspace(ctx, a)
	if err != nil {
		return "", err
	}
	defer w.leave()
	// A second page of the same name, which must keep the other prefix.
	first, err := w.join(ctx, "first", "echo")
	if err != nil {
		return "", err
	}
	defer first.leave()
	o := w.options("second", "echo")
	begun := time.Now()
	var grown usage
	for n := range times {
		p, err := join(ctx, a.server.Base, o)
		if err != nil {
			return "", fmt.Errorf("time %d: %w", n, err)
		}
		if first.prefix != "app" || p.prefix != "app2" {
			return "", fmt.Errorf("time %d: the prefixes are %q and %q", n, first.prefix, p.prefix)
		}
		if n%10 == 0 {
			if err := w.client.echo(ctx, p.prefix, fmt.Sprint(n)); err != nil {
				return "", fmt.Errorf("time %d: %w", n, err)
			}
		}
		if n == times/10 {
			if grown, err = measure(ctx, a); err != nil {
				return "", err
			}
		}
		switch n % 3 {
		case 0:
			p.cut()
		case 1:
			_ = p.ws.Close(4000, "pagehide")
			<-p.ended
		case 2: // the old socket is still open when the new one comes
			defer p.cut()
		}
	}
	took := time.Since(begun)
	last, err := join(ctx, a.server.Base, o)
	if err != nil {
		return "", err
	}
	defer last.leave()
	if err := w.client.echo(ctx, last.prefix, "last"); err != nil {
		return "", err
	}
	end, err := measure(ctx, a)
	if err != nil {
		return "", err
	}
	if end.heap > grown.heap+heapSlack {
		return "", fmt.Errorf("the heap grew from %s MB after %d times to %s", mb(grown.heap), times/10, mb(end.heap))
	}
	return fmt.Sprintf("prefixes app and app2 kept through %d reconnects, %s each; heap %s MB after %d, %s MB at the end",
		times, short(took/times), mb(grown.heap), times/10, mb(end.heap)), nil
}

// A workspace is a client, and the pages that join it.
type workspace struct {
	base    string
	client  *client
	connect string // the connect string
}

// workspaceKey is the workspace of most scenarios. Without one a session has a tenant
// of its own.
const (
	workspaceKey = "faults"
	noWorkspace  = ""
)

func newWorkspace(ctx context.Context, a *arena) (*workspace, error) {
	c, err := connect(ctx, a.server.Base, workspaceKey, withSessions)
	if err != nil {
		return nil, err
	}
	return workspaceOf(ctx, a.server.Base, c)
}

func workspaceOf(ctx context.Context, base string, c *client) (*workspace, error) {
	at, err := c.connectString(ctx)
	if err != nil {
		c.leave()
		return nil, err
	}
	return &workspace{base: base, client: c, connect: at}, nil
}

// options are those of a page named App, in a tab of this name.
func (w *workspace) options(tab string, tools ...string) pageOptions {
	return pageOptions{connect: w.connect, instance: "tab-0123456789-" + tab, label: "App", tools: tools}
}

func (w *workspace) join(ctx context.Context, tab string, tools ...string) (*page, error) {
	return join(ctx, w.base, w.options(tab, tools...))
}

func (w *workspace) leave() { w.client.leave() }

// hold begins a call that the page holds, and gives the page's side of it.
func (w *workspace) hold(ctx context.Context, p *page) (<-chan answered, frame, error) {
	done := w.client.begin(ctx, p.prefix+"__hold", nil)
	f, err := p.hears(ctx, "call")
	return done, f, err
}

// at once is how soon something must happen that takes no waiting. It is far more
// than it takes, for busy machines; what it took is in the table.
const atOnce = 3 * time.Second

// ends waits for a call that must end at once, and gives its end.
func ends(ctx context.Context, done <-chan answered) (answered, error) {
	return within(ctx, rig.Patience, "the call's end", done)
}
