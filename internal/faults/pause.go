package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"jsbridge/internal/rig"
)

// stopped is how long processes are stopped.
const stopped = 30 * time.Second

var pauses = []scenario{{
	name: "pause/server", args: []string{"--reconnect-grace", "3s"},
	promise: "a server that is stopped for 30 s (SIGSTOP) and goes on: no page and no session is lost, calls that ran get their answers, also those whose page was just being asked for a sign of life, or was just reconnecting, and calls that were made meanwhile succeed",
	run:     runPauseServer,
}, {
	name:    "pause/browser",
	promise: "a browser that is stopped (SIGSTOP): a call fails within 5 s with advice, further ones do not run; when it goes on, calls succeed, and nothing that failed runs late unseen",
	run:     runPauseBrowser,
}, {
	name:    "pause/laptop",
	promise: "server and browser stopped for 30 s, as when a laptop sleeps: a call that ran gets its answer, and the tab is there as before",
	run:     runPauseLaptop,
}}

// stopServer stops the server; the function, which may be called again, has it go on.
func stopServer(a *arena) (goOn func(), err error) {
	s := a.server
	return func() { _ = s.Signal(sigGoOn) }, s.Signal(sigStop)
}

func runPauseServer(ctx context.Context, a *arena) (string, error) {
	const pages = 20
	w, err := newWorkspace(ctx, a)
	if err != nil {
		return "", err
	}
	defer w.leave()
	// One page answers a probe only once the server is stopped.
	late := w.options("late", "hold")
	late.label = "Late"
	late.mute = func(f frame) bool { return f.Type == "probe" }
	asked, err := join(ctx, a.server.Base, late)
	if err != nil {
		return "", err
	}
	defer asked.leave()
	held, err := holdAll(ctx, w, pages)
	defer func() {
		for _, h := range held {
			h.page.leave()
		}
	}()
	if err != nil {
		return "", err
	}
	done, call, err := w.hold(ctx, asked)
	if err != nil {
		return "", err
	}
	probe, err := asked.hears(ctx, "probe")
	if err != nil {
		return "", err
	}
	// One page is between two sockets, and awaited by a call.
	tab := w.options("between", "echo")
	tab.label = "Between"
	before, err := join(ctx, a.server.Base, tab)
	if err != nil {
		return "", err
	}
	before.cut()
	err = await(ctx, rig.Patience, "the server to notice a page's end", func() (bool, error) {
		states, err := connectionStates(ctx, a)
		return states["Between"] == "reconnecting", err
	})
	if err != nil {
		return "", err
	}
	awaited := w.client.begin(ctx, before.prefix+"__echo", map[string]any{"text": "between"})

	goOn, err := stopServer(a)
	if err != nil {
		return "", err
	}
	defer goOn()
	alive := fmt.Sprintf(`{"type":"alive","id":%q}`, probe.ID)
	if err := asked.say(ctx, alive); err != nil {
		return "", err
	}
	back := make(chan error, 1)
	var after *page
	go func() {
		p, err := join(ctx, a.server.Base, tab)
		after = p
		back <- err
	}()
	meanwhile := w.client.begin(ctx, "get_embed_snippet", nil)
	if err := pause(ctx, stopped); err != nil {
		return "", err
	}
	goOn()

	if err := <-back; err != nil {
		return "", err
	}
	defer after.leave()
	if after.prefix != before.prefix {
		return "", fmt.Errorf("the page that reconnected meanwhile was %s and is %s", before.prefix, after.prefix)
	}
	if end, err := ends(ctx, awaited); err != nil || end.failed || end.text != "between" {
		return "", fmt.Errorf("the call of the page that was reconnecting: %q, %w", end.text, errors.Join(err, end.err))
	}
	// Time for whatever the server might now take for overdue.
	if err := answerProbes(ctx, asked, 5*time.Second); err != nil {
		return "", err
	}
	if err := asked.answer(ctx, call.ID, "late"); err != nil {
		return "", err
	}
	end, err := ends(ctx, done)
	if err != nil || end.failed || end.text != "late" {
		return "", fmt.Errorf("the call of the page that was being asked: %q, %w", end.text, errors.Join(err, end.err))
	}
	for _, h := range held {
		if err := h.finish(ctx); err != nil {
			return "", err
		}
	}
	if end, err := ends(ctx, meanwhile); err != nil || end.err != nil || end.failed {
		return "", fmt.Errorf("the call that was made meanwhile: %q, %w", end.text, errors.Join(err, end.err))
	}
	return fmt.Sprintf("%d pages and their sessions still there; all %d calls that ran got their answers, as did one that waited for a page to reconnect and one made meanwhile", pages+2, pages+1), nil
}

// answerProbes is a page's sign of life for a while.
func answerProbes(ctx context.Context, p *page, during time.Duration) error {
	timer := time.NewTimer(during)
	defer timer.Stop()
	for {
		select {
		case f := <-p.told:
			if f.Type != "probe" {
				return fmt.Errorf("the page was told %+v", f)
			}
			if err := p.say(ctx, fmt.Sprintf(`{"type":"alive","id":%q}`, f.ID)); err != nil {
				return err
			}
		case <-p.ended:
			return fmt.Errorf("the page was disconnected: %w", p.why)
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// A held call waits in a page of its own.
type heldCall struct {
	page *page
	id   string
	done <-chan answered
}

func holdAll(ctx context.Context, w *workspace, n int) (held []heldCall, err error) {
	for i := range n {
		p, err := w.join(ctx, fmt.Sprint("page", i), "hold")
		if err != nil {
			return held, err
		}
		held = append(held, heldCall{page: p})
	}
	for i := range held {
		h := &held[i]
		done, f, err := w.hold(ctx, h.page)
		if err != nil {
			return held, err
		}
		h.id, h.done = f.ID, done
	}
	return held, nil
}

// finish answers the call, whose client must get it.
func (h heldCall) finish(ctx context.Context) error {
	if err := h.page.answer(ctx, h.id, "answer to "+h.id); err != nil {
		return fmt.Errorf("a page: %w", err)
	}
	end, err := ends(ctx, h.done)
	if err != nil || end.failed || end.text != "answer to "+h.id {
		return fmt.Errorf("call %s: %q, %w", h.id, end.text, errors.Join(err, end.err))
	}
	return nil
}

func runPauseBrowser(ctx context.Context, a *arena) (string, error) {
	w, err := newWorkspace(ctx, a)
	if err != nil {
		return "", err
	}
	defer w.leave()
	t, err := openTab(ctx, w)
	if err != nil {
		return "", err
	}
	defer t.close()
	t.signal(sigStop)
	var took [2]time.Duration
	for i, want := range []string{"may have run", "did not run"} {
		end, err := ends(ctx, w.client.begin(ctx, "tab__echo", map[string]any{"text": "frozen"}))
		if err != nil {
			return "", err
		}
		if took[i] = end.took; end.err != nil || !end.failed || !strings.Contains(end.text, "no sign of life") || !strings.Contains(end.text, want) {
			return "", fmt.Errorf("call %d of the stopped tab ended with %q, %v", i+1, end.text, end.err)
		}
	}
	t.signal(sigGoOn)
	begun := time.Now()
	err = await(ctx, rig.Patience, "the tab to answer again", func() (bool, error) {
		_, failed, err := w.client.call(ctx, "tab__echo", map[string]any{"text": "again"})
		return !failed, err
	})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("calls failed after %s (may have run) and %s (did not run); one succeeded %s after it went on", short(took[0]), short(took[1]), short(time.Since(begun))), nil
}

func runPauseLaptop(ctx context.Context, a *arena) (string, error) {
	w, err := newWorkspace(ctx, a)
	if err != nil {
		return "", err
	}
	defer w.leave()
	t, err := openTab(ctx, w)
	if err != nil {
		return "", err
	}
	defer t.close()
	before, err := connections(ctx, a)
	if err != nil {
		return "", err
	}
	done := w.client.begin(ctx, "tab__slow", nil)
	if err := t.holds(ctx); err != nil {
		return "", err
	}
	goOn, err := stopServer(a)
	if err != nil {
		return "", err
	}
	defer goOn()
	t.signal(sigStop)
	if err := pause(ctx, stopped); err != nil {
		return "", err
	}
	goOn()
	t.signal(sigGoOn)
	begun := time.Now()
	end, err := ends(ctx, done)
	if err != nil || end.failed || end.text != "done at last" {
		return "", fmt.Errorf("the call that ran: %q, %w", end.text, errors.Join(err, end.err))
	}
	answered := time.Since(begun)
	if err := w.client.succeed(ctx, "tab__echo", map[string]any{"text": "as before"}, "as before"); err != nil {
		return "", err
	}
	after, err := connections(ctx, a)
	if err != nil {
		return "", err
	}
	if fmt.Sprint(before) != fmt.Sprint(after) {
		return "", fmt.Errorf("the connections were %v and are %v", before, after)
	}
	return fmt.Sprintf("the call that ran was answered %s after the end of sleep, over the same connection", short(answered)), nil
}

// connectionStates are the pages' states by their labels.
func connectionStates(ctx context.Context, a *arena) (map[string]string, error) {
	var state struct {
		Connections []struct{ Label, State string }
	}
	if err := dashboard(ctx, a.server, &state); err != nil {
		return nil, err
	}
	states := make(map[string]string)
	for _, c := range state.Connections {
		states[c.Label] = c.State
	}
	return states, nil
}

// connections are the ids of connected pages, sorted.
func connections(ctx context.Context, a *arena) ([]string, error) {
	var state struct {
		Connections []struct{ ID string }
	}
	if err := dashboard(ctx, a.server, &state); err != nil {
		return nil, err
	}
	ids := []string{}
	for _, c := range state.Connections {
		ids = append(ids, c.ID)
	}
	slices.Sort(ids)
	return ids, nil
}
