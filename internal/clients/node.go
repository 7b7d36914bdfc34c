package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"jsbridge/internal/rig"
)

// A node is the Node that clients run in, and where they are installed.
type node struct {
	path string
	dir  string // this program's source, with node_modules
	home string // a home directory of the clients' own
}

// findNode looks where "npm ci" puts things, beside this program's source.
func findNode(ctx context.Context) (*node, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", "jsbridge/internal/clients").Output()
	if err != nil {
		return nil, fmt.Errorf("looking for the clients: %w", err)
	}
	n := &node{path: "node", dir: string(bytes.TrimSpace(out))}
	if _, err := os.Stat(filepath.Join(n.dir, "node_modules")); err != nil {
		return nil, fmt.Errorf("the clients are not installed (%w); run: make clients", err)
	}
	// Each platform's Node is a package of its own. Where there is none, the
	// machine's may do; the Inspector needs 22.
	if own, _ := filepath.Glob(filepath.Join(n.dir, "node_modules", "node-*", "bin", "node")); len(own) > 0 {
		n.path = own[0]
	}
	return n, nil
}

// command runs a file of node's folder, with nothing of the user's settings.
func (n *node) command(ctx context.Context, file string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, n.path, append([]string{filepath.Join(n.dir, file)}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+n.home)
	return cmd
}

// script tries a client by a script beside this file, which prints what it does.
func script(file string, args ...string) func(context.Context, *env, *row) error {
	return func(ctx context.Context, e *env, r *row) error {
		ctx, cancel := context.WithTimeout(ctx, 2*rig.Patience)
		defer cancel()
		cmd := e.node.command(ctx, file, append([]string{e.url}, args...)...)
		var log rig.Tail
		cmd.Stderr = &log
		out, err := cmd.StdoutPipe()
		if err != nil {
			return err
		}
		if err := cmd.Start(); err != nil {
			return fmt.Errorf("starting %s: %w", file, err)
		}
		err = follow(bufio.NewScanner(out), e, r)
		if end := cmd.Wait(); end != nil || err != nil {
			return fmt.Errorf("%s: %w\n%s", file, errors.Join(err, end), &log)
		}
		return nil
	}
}

// follow reads what a script says.
func follow(lines *bufio.Scanner, e *env, r *row) error {
	for lines.Scan() {
		var line struct{ Step, Detail, Error, Want string }
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return fmt.Errorf("%q: %w", lines.Text(), err)
		}
		switch {
		case line.Want == "page":
			shut, err := e.pages.openSecond()
			if err != nil {
				return err
			}
			defer shut()
		case line.Error != "":
			r.fail(line.Step, errors.New(line.Error))
		default:
			r.done(line.Step, line.Detail)
		}
	}
	return lines.Err()
}
