package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"jsbridge/internal/rig"
)

// These scenarios give the server a file system of its own, of 64 KiB, in a mount
// namespace of its own: nothing of it is left when the server ends.
var disks = []scenario{{
	name: "disk/full", quick: true, alarms: true, wrap: withDisk,
	promise: "a disk that is full: everything goes on but for what must be written, which fails with the reason, once each; the state file is as it was; once there is room, it is written, with what could not be written before",
	run: func(ctx context.Context, a *arena) (string, error) {
		return runDisk(ctx, a, "no space left on device", fill, unfill)
	},
}, {
	name: "disk/read-only", quick: true, alarms: true, wrap: withDisk,
	promise: "the same for a disk that has become read-only",
	run: func(ctx context.Context, a *arena) (string, error) {
		return runDisk(ctx, a, "read-only file system", remount("ro"), remount("rw"))
	},
}, {
	name: "disk/a folder in the file's place", quick: true, alarms: true, wrap: withDisk,
	promise: "the same when the state file is not there any more, but something else is in its place, which is left alone",
	run: func(ctx context.Context, a *arena) (string, error) {
		return runDisk(ctx, a, "is no regular file", misplace, putBack)
	},
}}

// withDisk gives a program that mounts the file system and becomes the server.
func withDisk(ctx context.Context, a *arena, binary string) (string, error) {
	disk := filepath.Join(a.dir, "disk")
	if err := os.Mkdir(disk, 0o700); err != nil {
		return "", err
	}
	a.args = append(a.args, "--state", filepath.Join(disk, "state.json"))
	// The root of a new user namespace may mount.
	script := fmt.Sprintf(`#!/bin/sh
exec unshare --user --map-root-user --mount sh -c 'mount -t tmpfs -o size=64k none "%s" && exec "%s" "$@"' sh "$@"
`, disk, binary)
	path := filepath.Join(a.dir, "with-disk")
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		return "", err
	}
	try := exec.CommandContext(ctx, "unshare", "--user", "--map-root-user", "--mount", "sh", "-c", `mount -t tmpfs none "$1"`, "sh", disk)
	if out, err := try.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: this machine lets no program mount a file system in a namespace: %w %s", errSkipped, err, bytes.TrimSpace(out))
	}
	return path, nil
}

// onDisk is where a file of the server's file system is for others.
func (a *arena) onDisk(name string) string {
	return filepath.Join(fmt.Sprintf("/proc/%d/root", a.server.Pid), a.dir, "disk", name)
}

const diskState = "state.json"

func fill(_ context.Context, a *arena) error {
	f, err := os.OpenFile(a.onDisk("filler"), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	for {
		if _, err := f.Write(make([]byte, 512)); errors.Is(err, syscall.ENOSPC) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func unfill(_ context.Context, a *arena) error { return os.Remove(a.onDisk("filler")) }

func remount(mode string) func(context.Context, *arena) error {
	return func(ctx context.Context, a *arena) error {
		out, err := exec.CommandContext(ctx, "nsenter", "--target", fmt.Sprint(a.server.Pid), "--user", "--mount", "--preserve-credentials",
			"mount", "-o", "remount,"+mode, filepath.Join(a.dir, "disk")).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	}
}

func misplace(_ context.Context, a *arena) error {
	return errors.Join(os.Rename(a.onDisk(diskState), a.onDisk("kept")), os.MkdirAll(a.onDisk(diskState+"/precious"), 0o700))
}

func putBack(_ context.Context, a *arena) error {
	// Not RemoveAll: what is in there must be as it was.
	return errors.Join(os.Remove(a.onDisk(diskState+"/precious")), os.Remove(a.onDisk(diskState)), os.Rename(a.onDisk("kept"), a.onDisk(diskState)))
}

// The origins that are approved before, while and after the disk is in trouble.
const (
	originBefore = "https://before.example"
	originLater  = "https://later.example"
)

func runDisk(ctx context.Context, a *arena, reason string, spoil, mend func(context.Context, *arena) error) (string, error) {
	api, err := newAPI(ctx, a)
	if err != nil {
		return "", err
	}
	if status, body, err := api.post(ctx, "/api/origins", originBefore); err != nil || status != http.StatusOK {
		return "", fmt.Errorf("approving an origin: %d %s %w", status, body, err)
	}
	before, err := os.ReadFile(a.onDisk(diskState))
	if err != nil {
		return "", err
	}
	if err := spoil(ctx, a); err != nil {
		return "", err
	}

	status, body, err := api.post(ctx, "/api/origins", originLater)
	if err != nil || status != http.StatusInternalServerError || !strings.Contains(body, reason) {
		return "", fmt.Errorf("approving an origin that can't be written: %d %s %w", status, body, err)
	}
	// A workspace that is opened now can't be kept, but it works; also for the next
	// client.
	unkept, err := unkeptWorkspace(ctx, a, "")
	if err != nil {
		return "", err
	}
	if _, err := unkeptWorkspace(ctx, a, unkept); err != nil {
		return "", err
	}
	if err := approved(ctx, a, originBefore); err != nil {
		return "", err
	}
	if err := pause(ctx, 1500*time.Millisecond); err != nil { // three looks at the file
		return "", err
	}
	warnings := strings.Count(a.server.Log.String(), reason)
	if warnings > 4 { // the origin's, the workspace's for each client, and the watcher's
		return "", fmt.Errorf("the log has %d lines with %q:\n%s", warnings, reason, a.server.Log)
	}

	if err := mend(ctx, a); err != nil {
		return "", err
	}
	after, err := os.ReadFile(a.onDisk(diskState))
	if err != nil || !bytes.Equal(before, after) {
		return "", fmt.Errorf("the state file was %s and is %s, %w", before, after, err)
	}
	if status, body, err := api.post(ctx, "/api/origins", originLater); err != nil || status != http.StatusOK {
		return "", fmt.Errorf("approving an origin once it can be written: %d %s %w", status, body, err)
	}
	if _, err := unkeptWorkspace(ctx, a, unkept); err != nil {
		return "", fmt.Errorf("after another change of the file: %w", err)
	}
	kept, err := os.ReadFile(a.onDisk(diskState))
	if err != nil {
		return "", err
	}
	for _, what := range []string{originBefore, originLater, unkept} {
		if !bytes.Contains(kept, []byte(what)) {
			return "", fmt.Errorf("the state file lacks %s: %s", what, kept)
		}
	}
	if left, _ := filepath.Glob(a.onDisk("*.tmp")); len(left) > 0 {
		return "", fmt.Errorf("left behind: %v", left)
	}
	return fmt.Sprintf("refused with %q; %d lines in the log; the old file was untouched, the new one has all", reason, warnings), nil
}

// unkeptWorkspace has a client open a workspace of its own, with a page. It gives
// the tenant, which must be want, if that is something.
func unkeptWorkspace(ctx context.Context, a *arena, want string) (string, error) {
	c, err := connect(ctx, a.server.Base, "unkept", withSessions)
	if err != nil {
		return "", err
	}
	defer c.leave()
	at, err := c.connectString(ctx)
	if err != nil {
		return "", err
	}
	if want != "" && at != want {
		return "", fmt.Errorf("a workspace that could not be written was %s and is %s", want, at)
	}
	p, err := join(ctx, a.server.Base, pageOptions{connect: at, instance: "tab-of-the-unkept-one", label: "App", tools: []string{"echo"}})
	if err != nil {
		return "", err
	}
	defer p.leave()
	return at, c.echo(ctx, p.prefix, "kept or not")
}

// approved has a page of an origin join under a name, which needs approval.
func approved(ctx context.Context, a *arena, origin string) error {
	p, err := join(ctx, a.server.Base, pageOptions{connect: "channel:faults", instance: "tab-of-an-approved-one", label: "App", origin: origin, tools: []string{"echo"}})
	if err != nil {
		return err
	}
	defer p.leave()
	if p.prefix == "" {
		return fmt.Errorf("pages of %s wait for approval", origin)
	}
	return nil
}

// An api is the dashboard's, with the token of this start.
type api struct{ base, token string }

func newAPI(ctx context.Context, a *arena) (*api, error) {
	token, err := apiToken(ctx, a)
	return &api{a.server.Base, token}, err
}

func (a *api) post(ctx context.Context, path, origin string) (status int, body string, err error) {
	ctx, cancel := context.WithTimeout(ctx, rig.Patience)
	defer cancel()
	in, err := json.Marshal(map[string]string{"origin": origin})
	if err != nil {
		return 0, "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.base+path, bytes.NewReader(in))
	if err != nil {
		return 0, "", err
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "X-Jsbridge-Token": {a.token}}
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	out, err := io.ReadAll(res.Body)
	return res.StatusCode, string(out), err
}
