package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"jsbridge/internal/rig"
)

var ports = []scenario{{
	name: "port/two servers", quick: true,
	promise: "a second server on the same port ends within a second, with exit code 1 and a sentence that says who has the port; the first one goes on",
	run:     runTwoServers,
}}

func runTwoServers(ctx context.Context, a *arena) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, rig.Patience)
	defer cancel()
	begun := time.Now()
	out, err := exec.CommandContext(ctx, a.binary, "--port", a.server.Port(), "--state", a.dir+"/second.json").CombinedOutput()
	took := time.Since(begun)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		return "", fmt.Errorf("the second one ended with %v: %s", err, out)
	}
	if lines := bytes.Count(out, []byte("\n")); lines != 1 || !bytes.Contains(out, []byte("is already running there")) {
		return "", fmt.Errorf("the second one said in %d lines: %s", lines, out)
	}
	return fmt.Sprintf("exit code 1 after %s: \"%s\"", short(took), bytes.TrimSpace(out)), nil
}
