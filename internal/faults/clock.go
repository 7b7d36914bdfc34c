package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"jsbridge/internal/rig"
)

// No program may set the clock of a machine that others use, and Go does not ask the
// C library for the time, where it could be told another one. So this scenario builds
// jsbridge with a package time whose wall clock jumps: an hour ahead at the first of
// these times after the start, back by a day at the second. All else is the same, the
// monotonic clock included, as when a human or NTP sets the clock.
const (
	jumpAhead = 15 * time.Second
	jumpBack  = 30 * time.Second
)

var clocks = []scenario{{
	name: "clock/jumps", args: []string{"--call-timeout", "40s"}, wrap: withJumpingClock,
	promise: "the wall clock jumps an hour ahead, and then back by a day: nothing ends early, neither a call, nor a session without a stream (30 min), nor a page that waits for approval (10 min); a limit still ends what it should; a change of the state file is noticed",
	run:     runClock,
}}

const (
	nowOfTime = "\tsec, nsec, mono := runtimeNow()\n\tif mono == 0 {"
	nowJumps  = "\tsec, nsec, mono := runtimeNow()\n\tif up := mono - startNano; up > %d {\n\t\tsec -= 86400 - 3600\n\t} else if up > %d {\n\t\tsec += 3600\n\t}\n\tif mono == 0 {"
)

func withJumpingClock(ctx context.Context, a *arena, _ string) (string, error) {
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", err
	}
	original := filepath.Join(strings.TrimSpace(string(root)), "src", "time", "time.go")
	source, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	if strings.Count(string(source), nowOfTime) != 1 {
		return "", fmt.Errorf("%w: this version of Go has a time.Now that the scenario does not know", errSkipped)
	}
	jumping := filepath.Join(a.dir, "time.go")
	changed := strings.Replace(string(source), nowOfTime, fmt.Sprintf(nowJumps, jumpBack.Nanoseconds(), jumpAhead.Nanoseconds()), 1)
	if err := os.WriteFile(jumping, []byte(changed), 0o600); err != nil {
		return "", err
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {original: jumping}})
	if err != nil {
		return "", err
	}
	path := filepath.Join(a.dir, "overlay.json")
	if err := os.WriteFile(path, overlay, 0o600); err != nil {
		return "", err
	}
	return rig.Build(ctx, a.dir, "-overlay", path)
}

func runClock(ctx context.Context, a *arena) (string, error) {
	w, err := newWorkspace(ctx, a)
	if err != nil {
		return "", err
	}
	defer w.leave()
	p, err := w.join(ctx, "page", "echo", "hold")
	if err != nil {
		return "", err
	}
	defer p.leave()
	idle, err := newWorkspaceWithoutStream(ctx, a)
	if err != nil {
		return "", err
	}
	defer idle.leave()
	waits, err := join(ctx, a.server.Base, pageOptions{connect: "waits", instance: "tab-of-one-that-waits", label: "Waits", origin: "https://waits.example", tools: []string{"echo"}})
	if err != nil {
		return "", err
	}
	defer waits.leave()
	done, call, err := w.hold(ctx, p)
	if err != nil {
		return "", err
	}

	ahead, err := awaitClock(ctx, a, func(off time.Duration) bool { return off > 30*time.Minute })
	if err != nil {
		return "", err
	}
	if err := errors.Join(idle.client.echo(ctx, p.prefix, "an idle session"), w.client.echo(ctx, p.prefix, "ahead")); err != nil {
		return "", err
	}
	back, err := awaitClock(ctx, a, func(off time.Duration) bool { return off < -12*time.Hour })
	if err != nil {
		return "", err
	}
	if err := p.answer(ctx, call.ID, "all the time"); err != nil {
		return "", err
	}
	end, err := ends(ctx, done)
	if err != nil || end.failed || end.text != "all the time" {
		return "", fmt.Errorf("the call that ran: %q, %w", end.text, errors.Join(err, end.err))
	}

	// A limit that begins now must end, and not a day later.
	brief := strings.ReplaceAll(declaration(w.options("page", "echo", "hold")), `"source":"host"`, `"source":"host","timeoutMs":2000`)
	if err := p.declare(ctx, brief); err != nil {
		return "", err
	}
	limited, _, err := w.hold(ctx, p)
	if err != nil {
		return "", err
	}
	if end, err = ends(ctx, limited); err != nil || !end.failed || !strings.Contains(end.text, "limit of 2 s") {
		return "", fmt.Errorf("the call that was to reach its limit: %q, %w", end.text, errors.Join(err, end.err))
	}
	select {
	case <-waits.ended:
		return "", fmt.Errorf("the page that waited was sent away: %w", waits.why)
	default:
	}
	allow := exec.CommandContext(ctx, a.binary, "allow", "--state", filepath.Join(a.dir, "state.json"), "https://waits.example")
	if out, err := allow.CombinedOutput(); err != nil {
		return "", fmt.Errorf("jsbridge allow: %w: %s", err, out)
	}
	if _, err := within(ctx, rig.Patience, "the page that waited to be let in", waits.registered); err != nil {
		return "", err
	}
	return fmt.Sprintf("the server's clock was %s and then %s off; a call over both jumps got its answer, one with a limit of 2 s ended after %s", short(ahead), short(back), short(end.took)), nil
}

// awaitClock waits until the server's clock, as it dates its answers, is off by what
// is wanted.
func awaitClock(ctx context.Context, a *arena, want func(time.Duration) bool) (off time.Duration, err error) {
	err = await(ctx, jumpBack+rig.Patience, "the clock to jump", func() (bool, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodHead, a.server.Base+"/healthz", nil)
		if err != nil {
			return false, err
		}
		res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
		if err != nil {
			return false, err
		}
		_ = res.Body.Close()
		at, err := http.ParseTime(res.Header.Get("Date"))
		off = time.Until(at)
		return want(off), err
	})
	return off, err
}
