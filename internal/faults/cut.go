package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	wire "jsbridge/bridge/page"
)

// pingsMissed is how long a server may take to notice that a page's network is
// gone: until the next ping, and two that are not answered.
const pingsMissed = 3 * wire.DefaultPingInterval

var cuts = []scenario{{
	name:    "cut/page, no FIN",
	promise: "a page whose network is gone, with no end of the connection: a running call fails with the advice to look after the tab within 5 s of silence and a probe; two missed pings (at most 45 s) end the socket, and the page leaves the list",
	run:     runCutPage,
}, {
	name: "cut/page, half open", quick: true,
	promise: "a tab that lost its connection, of which the server knows nothing, comes back by another: it gets its prefix at once, calls reach the new socket, and the old one is freed",
	run:     runHalfOpenPage,
}, {
	name:    "cut/client, no FIN",
	promise: "a client whose network is gone in mid-call and with its stream open: its session goes on over a new connection, a new stream takes the old one's place, and the old answer is waited for by nobody",
	run:     runCutClient,
}}

func runCutPage(ctx context.Context, a *arena) (string, error) {
	w, err := newWorkspace(ctx, a)
	if err != nil {
		return "", err
	}
	defer w.leave()
	x, err := newProxy(ctx, a.server.Base)
	if err != nil {
		return "", err
	}
	defer x.close()
	p, err := join(ctx, x.Base, w.options("cut", "hold"))
	if err != nil {
		return "", err
	}
	defer p.cut()
	done, _, err := w.hold(ctx, p)
	if err != nil {
		return "", err
	}

	begun := time.Now()
	x.cut()
	end, err := ends(ctx, done)
	if err != nil {
		return "", err
	}
	failed := end.at.Sub(begun)
	if end.err != nil || !end.failed || !strings.Contains(end.text, "no sign of life") || !strings.Contains(end.text, "may have run") {
		return "", fmt.Errorf("the call ended after %s with %q, %v", failed, end.text, end.err)
	}
	err = await(ctx, pingsMissed+10*time.Second, "the page to leave the list", func() (bool, error) {
		here, err := w.lists(ctx, p.prefix)
		return !here, err
	})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("the call failed after %s: \"%.46s…\"; the page left the list after %s", short(failed), end.text, short(time.Since(begun))), nil
}

// lists tells whether there are tools of this prefix.
func (w *workspace) lists(ctx context.Context, prefix string) (bool, error) {
	for tool, err := range w.client.Tools(ctx, nil) {
		if err != nil {
			return false, err
		}
		if strings.HasPrefix(tool.Name, prefix+"__") {
			return true, nil
		}
	}
	return false, nil
}

func runHalfOpenPage(ctx context.Context, a *arena) (string, error) {
	w, err := newWorkspace(ctx, a)
	if err != nil {
		return "", err
	}
	defer w.leave()
	x, err := newProxy(ctx, a.server.Base)
	if err != nil {
		return "", err
	}
	defer x.close()
	old, err := join(ctx, x.Base, w.options("tab", "echo", "hold"))
	if err != nil {
		return "", err
	}
	done, _, err := w.hold(ctx, old)
	if err != nil {
		return "", err
	}
	x.cut()
	old.cut() // which the proxy keeps from the server
	begun := time.Now()
	p, err := join(ctx, a.server.Base, w.options("tab", "echo", "hold"))
	if err != nil {
		return "", err
	}
	defer p.leave()
	took := time.Since(begun)
	if p.prefix != old.prefix || took > atOnce {
		return "", fmt.Errorf("the prefix is %q after %s, it was %q", p.prefix, took, old.prefix)
	}
	end, err := ends(ctx, done)
	if err != nil {
		return "", err
	}
	if end.err != nil || !end.failed || !strings.Contains(end.text, "may have run") {
		return "", fmt.Errorf("the old socket's call ended with %q, %v", end.text, end.err)
	}
	if err := w.client.echo(ctx, p.prefix, "to the new one"); err != nil {
		return "", err
	}
	return fmt.Sprintf("prefix %s again after %s; the call of the old socket failed after %s, saying that it may have run", p.prefix, short(took), short(end.at.Sub(begun))), nil
}

func runCutClient(ctx context.Context, a *arena) (string, error) {
	w, err := newWorkspace(ctx, a)
	if err != nil {
		return "", err
	}
	defer w.leave()
	p, err := w.join(ctx, "here", "echo", "hold", "big")
	if err != nil {
		return "", err
	}
	defer p.leave()
	x, err := newProxy(ctx, a.server.Base)
	if err != nil {
		return "", err
	}
	defer x.close()
	far, err := connect(ctx, x.Base, workspaceKey, withSessions)
	if err != nil {
		return "", err
	}
	defer far.leave()
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	done := far.begin(limited, p.prefix+"__hold", nil)
	call, err := p.hears(ctx, "call")
	if err != nil {
		return "", err
	}

	x.cut()
	near := &raw{base: a.server.Base, session: far.ID()}
	stream, err := near.open(ctx)
	if err != nil {
		return "", err
	}
	defer stream.Body.Close()
	begun := time.Now()
	if err := near.echo(ctx, p.prefix); err != nil {
		return "", err
	}
	took := time.Since(begun)
	// More than the buffers on the way hold, to a client that is not there.
	if err := p.answer(ctx, call.ID, strings.Repeat("x", 8<<20)); err != nil {
		return "", err
	}
	select {
	case end := <-done:
		return "", fmt.Errorf("the call ended behind the cut: %.100q, %v", end.text, end.err)
	default:
	}
	cancel()
	<-done
	if err := near.echo(ctx, p.prefix); err != nil {
		return "", err
	}
	if err := near.end(ctx); err != nil {
		return "", err
	}
	return fmt.Sprintf("the same session called over a new connection %s after the cut, beside a new stream", short(took)), nil
}

// raw is a client that can hold a session of another one.
type raw struct{ base, session string }

func (r *raw) request(ctx context.Context, method, body string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, r.base+"/mcp/"+workspaceKey, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
		"Mcp-Session-Id": {r.session}, "Mcp-Protocol-Version": {withSessions}}
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err == nil && res.StatusCode/100 != 2 {
		err = errors.Join(fmt.Errorf("%s: %s", method, res.Status), res.Body.Close())
	}
	return res, err
}

// open opens the standalone stream.
func (r *raw) open(ctx context.Context) (*http.Response, error) {
	return r.request(ctx, http.MethodGet, "")
}

// end ends the session.
func (r *raw) end(ctx context.Context) error {
	res, err := r.request(ctx, http.MethodDelete, "")
	if err != nil {
		return err
	}
	return res.Body.Close()
}

func (r *raw) echo(ctx context.Context, prefix string) error {
	ctx, cancel := context.WithTimeout(ctx, atOnce)
	defer cancel()
	res, err := r.request(ctx, http.MethodPost, fmt.Sprintf(`{"jsonrpc":"2.0","id":"again","method":"tools/call","params":{"name":"%s__echo","arguments":{"text":"over here"}}}`, prefix))
	if err != nil {
		return err
	}
	defer res.Body.Close()
	return readsText(res.Body, "over here")
}

// readsText reads a response to its end, which must hold a text.
func readsText(body io.Reader, text string) error {
	all, err := io.ReadAll(body)
	if err == nil && !strings.Contains(string(all), text) {
		err = fmt.Errorf("the answer is %.300q", all)
	}
	return err
}
