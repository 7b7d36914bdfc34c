package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"jsbridge/internal/rig"
)

var kills = []scenario{{
	name:    "kill/server",
	promise: "kill -9 of the server ends a running call at once; on the same port again, it answers an old session with 404 at once, the tab (Chromium) comes back by itself, under its prefix, and a call works",
	run:     runKillServer,
}, {
	name:    "kill/browser",
	promise: "kill -9 of the browser (Chromium) ends a running call at once, as an error that says that the page went away and the call may have run; a call of another page goes on",
	run:     runKillBrowser,
}, {
	name: "kill/client, sessions", quick: true, args: []string{"--session-idle", "2s", "--call-timeout", "4s"},
	promise: "kill -9 of a client with a session (2025-11-25): in that version a lost connection is no cancellation, so the call goes on to its limit (--call-timeout), or to the session's end (--session-idle) if that is earlier; then the page hears the cancellation, and nothing of the session is left",
	run:     func(ctx context.Context, a *arena) (string, error) { return runKillClient(ctx, a, withSessions) },
}, {
	name: "kill/client, stateless", quick: true,
	promise: "kill -9 of a client without a session (2026-07-28) is a cancellation: the page hears it at once",
	run:     func(ctx context.Context, a *arena) (string, error) { return runKillClient(ctx, a, stateless) },
}}

func runKillServer(ctx context.Context, a *arena) (string, error) {
	w, err := newWorkspace(ctx, a)
	if err != nil {
		return "", err
	}
	defer func() { w.leave() }()
	t, err := openTab(ctx, w)
	if err != nil {
		return "", err
	}
	defer t.close()
	old := w.client.ID()
	done := w.client.begin(ctx, "tab__hold", nil)
	if err := t.holds(ctx); err != nil {
		return "", err
	}

	killed := time.Now()
	a.server.Kill()
	end, err := ends(ctx, done)
	if err != nil {
		return "", err
	}
	callEnd := end.at.Sub(killed)
	if end.err == nil || callEnd > atOnce {
		return "", fmt.Errorf("the call ended after %s with %q, %v", callEnd, end.text, end.err)
	}

	if err := a.restart(ctx); err != nil {
		return "", err
	}
	a.by.resume()
	restarted := time.Now()
	if err := unknownSession(ctx, a.server.Base, old); err != nil {
		return "", err
	}
	refused := time.Since(restarted)
	w.leave()
	if w, err = newWorkspace(ctx, a); err != nil {
		return "", err
	}
	err = await(ctx, rig.Patience, "the tab to come back", func() (bool, error) {
		_, failed, err := w.client.call(ctx, "tab__echo", map[string]any{"text": "back"})
		return err == nil && !failed, nil // there is no such tool yet
	})
	if err != nil {
		return "", fmt.Errorf("%w\nthe tab's console:\n%s", err, t.console)
	}
	back := time.Since(restarted)
	if err := w.client.succeed(ctx, "tab__echo", map[string]any{"text": "there"}, "there"); err != nil {
		return "", err
	}
	return fmt.Sprintf("the call failed %s after the kill; old session: 404 after %s; tab back %s after the restart",
		short(callEnd), short(refused), short(back)), nil
}

// unknownSession uses a session that the server must not know.
func unknownSession(ctx context.Context, base, id string) error {
	ctx, cancel := context.WithTimeout(ctx, atOnce)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/mcp/"+workspaceKey, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
	if err != nil {
		return err
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "Mcp-Session-Id": {id}, "Mcp-Protocol-Version": {withSessions}}
	transport := &http.Transport{DisableKeepAlives: true}
	res, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusNotFound {
		return fmt.Errorf("the old session was answered with %s", res.Status)
	}
	return nil
}

func runKillBrowser(ctx context.Context, a *arena) (string, error) {
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
	other, err := w.join(ctx, "other", "hold")
	if err != nil {
		return "", err
	}
	defer other.leave()
	done := w.client.begin(ctx, "tab__hold", nil)
	if err := t.holds(ctx); err != nil {
		return "", err
	}
	untouched, f, err := w.hold(ctx, other)
	if err != nil {
		return "", err
	}

	killed := time.Now()
	t.signal(syscall.SIGKILL)
	end, err := ends(ctx, done)
	if err != nil {
		return "", err
	}
	took := end.at.Sub(killed)
	if end.err != nil || !end.failed || took > atOnce || !strings.Contains(end.text, "went away") || !strings.Contains(end.text, "may have run") {
		return "", fmt.Errorf("the call ended after %s with %q, %v", took, end.text, end.err)
	}
	select {
	case u := <-untouched:
		return "", fmt.Errorf("the other page's call ended too: %q, %v", u.text, u.err)
	default:
	}
	if err := other.answer(ctx, f.ID, "untouched"); err != nil {
		return "", err
	}
	if end, err := ends(ctx, untouched); err != nil || end.text != "untouched" || end.failed {
		return "", fmt.Errorf("the other page's call: %q, %w", end.text, errors.Join(err, end.err))
	}
	return fmt.Sprintf("the call failed %s after the kill: \"%.40s…\"; the other page's call gave its answer", short(took), end.text), nil
}

// roleVariable makes this program one of the other processes; see play.
const roleVariable = "JSBRIDGE_FAULTS_ROLE"

const clientRole = "client"

// play is this program as another process: a client that calls a tool and waits.
func play(role string, args []string) int {
	if role != clientRole || len(args) != 3 {
		fmt.Fprintf(os.Stderr, "faults: there is no role %q with %d arguments\n", role, len(args))
		return 2
	}
	c, err := connect(context.Background(), args[0], workspaceKey, args[1])
	if err == nil {
		_, _, err = c.call(context.Background(), args[2], nil)
	}
	fmt.Fprintln(os.Stderr, "faults: the client that was to be killed has ended:", err)
	return 1
}

func runKillClient(ctx context.Context, a *arena, version string) (string, error) {
	w, err := newWorkspace(ctx, a)
	if err != nil {
		return "", err
	}
	defer w.leave()
	p, err := w.join(ctx, "only", "hold", "echo")
	if err != nil {
		return "", err
	}
	defer p.leave()
	sessions, err := sessionCount(ctx, a)
	if err != nil {
		return "", err
	}
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, self, a.server.Base, version, p.prefix+"__hold")
	cmd.Env = append(os.Environ(), roleVariable+"="+clientRole)
	log := &rig.Tail{}
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		return "", err
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	call, err := p.hears(ctx, "call")
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, log)
	}

	killed := time.Now()
	if err := cmd.Process.Kill(); err != nil {
		return "", err
	}
	cancelled, err := p.hears(ctx, "cancel")
	if err != nil {
		return "", err
	}
	took := time.Since(killed)
	if cancelled.ID != call.ID {
		return "", fmt.Errorf("call %s was cancelled, not %s", cancelled.ID, call.ID)
	}
	if version == stateless && took > atOnce {
		return "", fmt.Errorf("the page heard of it after %s", took)
	}
	err = await(ctx, rig.Patience, "the dead client's session to end", func() (bool, error) {
		n, err := sessionCount(ctx, a)
		return version == stateless || n <= sessions, err
	})
	if err != nil {
		return "", err
	}
	freed := time.Since(killed)
	if err := w.client.echo(ctx, p.prefix, "after"); err != nil {
		return "", err
	}
	return fmt.Sprintf("the page heard %q %s after the kill; all was freed after %s", cancelled.Reason, short(took), short(freed)), nil
}

// sessionCount counts the MCP sessions that the dashboard is shown.
func sessionCount(ctx context.Context, a *arena) (int, error) {
	var state struct {
		Sessions []json.RawMessage `json:"sessions"`
	}
	err := dashboard(ctx, a.server, &state)
	return len(state.Sessions), err
}

// dashboard reads the dashboard's first event, which is all there is.
func dashboard(ctx context.Context, s *rig.Server, into any) error {
	ctx, cancel := context.WithTimeout(ctx, rig.Patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.Base+"/api/events", nil)
	if err != nil {
		return err
	}
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	event := make([]byte, 0, 1<<16)
	for {
		if _, rest, found := strings.Cut(string(event), "data: "); found {
			if data, _, whole := strings.Cut(rest, "\n"); whole {
				return json.Unmarshal([]byte(data), into)
			}
		}
		n, err := res.Body.Read(event[len(event):cap(event)])
		if event = event[:len(event)+n]; len(event) == cap(event) {
			event = append(event, 0)[:len(event)]
		}
		if err != nil {
			return errors.Join(err, io.ErrUnexpectedEOF)
		}
	}
}
