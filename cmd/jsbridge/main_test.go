package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func environ(kv ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for i := 0; i < len(kv); i += 2 {
			if kv[i] == name {
				return kv[i+1], true
			}
		}
		return "", false
	}
}

func TestUsage(t *testing.T) {
	for _, tc := range []struct {
		args     string
		env      []string
		wantCode int
		want     string // in what it prints
	}{
		{"version", nil, 0, "jsbridge "},
		{"--help", nil, 0, "JSBRIDGE_"},
		{"serve --help", nil, 0, "--call-timeout"},
		{"demo --help", nil, 0, "--port"},
		{"nonsense", nil, 2, `"nonsense"`},
		{"--nonsense", nil, 2, "--nonsense"},
		{"demo extra", nil, 2, `"extra"`},
		{"--port x", nil, 2, "--port"},
		{"--port 70000", nil, 2, "65535"},
		{"--max-tools 0", nil, 2, "--max-tools must be more than 0"},
		{"--max-name 10", nil, 1, "--max-name"},
		{"--log-level loud", nil, 2, "loud"},
		{"--log-format xml", nil, 2, "neither text nor json"},
		{"", []string{"JSBRIDGE_LOG_FORMAT", "xml"}, 2, "neither text nor json"},
		{"--host 0.0.0.0", nil, 1, "--token"},
		{"", []string{"JSBRIDGE_PORT", "x"}, 2, "JSBRIDGE_PORT"},
		{"", []string{"PORT", "70000"}, 2, "65535"},
		{"serve", []string{"JSBRIDGE_MAX_CALLS", "-1"}, 2, "--max-calls"},
		{"--max-calls -2", []string{"JSBRIDGE_MAX_CALLS", "5"}, 2, "--max-calls"},
		{"demo", []string{"JSBRIDGE_DEMO_PORT", "x"}, 2, "JSBRIDGE_DEMO_PORT"},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // what would serve ends at once
		var out strings.Builder
		code := run(ctx, strings.Fields(tc.args), environ(tc.env...), &out, &out)
		if code != tc.wantCode || !strings.Contains(out.String(), tc.want) {
			t.Errorf("jsbridge %s %v: code %d, %s; want %d and %q", tc.args, tc.env, code, out.String(), tc.wantCode, tc.want)
		}
	}
}

// started runs a command and gives the first address it prints.
func started(t *testing.T, env func(string) (string, bool), args ...string) (url string, stop func() int) {
	t.Helper()
	return startedWith(t, io.Discard, env, args...)
}

// startedWith is started for a command whose stderr matters.
func startedWith(t *testing.T, stderr io.Writer, env func(string) (string, bool), args ...string) (url string, stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, args, env, w, stderr)
		w.Close()
	}()
	lines := bufio.NewScanner(r)
	for url == "" && lines.Scan() {
		url = regexp.MustCompile(`http://\S+`).FindString(lines.Text())
	}
	if url == "" {
		cancel()
		t.Fatalf("jsbridge %v ended with %d and printed no address", args, <-code)
	}
	go func() { _, _ = io.Copy(io.Discard, r) }()
	return url, func() int {
		cancel()
		select {
		case c := <-code:
			return c
		case <-time.After(30 * time.Second):
			t.Fatal("it does not stop")
			return -1
		}
	}
}

func get(t *testing.T, url string) string {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	defer http.DefaultClient.CloseIdleConnections()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(res.StatusCode, " ", string(b))
}

func TestDemoServesTheExample(t *testing.T) {
	url, stop := started(t, environ("JSBRIDGE_PORT", "1"), "demo", "--port", "0")
	if got := get(t, url); !strings.HasPrefix(got, "200") || !strings.Contains(got, "__mcpTools") {
		t.Errorf("%s: %.200s", url, got)
	}
	if got := get(t, strings.TrimSuffix(url, "/hello-world.html")+"/"); !strings.Contains(got, "__mcpTools") {
		t.Errorf("/: %.200s", got)
	}
	if code := stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func TestServeStartsFromVariables(t *testing.T) {
	url, stop := started(t, environ("PORT", "0", "JSBRIDGE_LOG_LEVEL", "error", "JSBRIDGE_STATE", filepath.Join(t.TempDir(), "state.json")))
	if got := get(t, strings.TrimSuffix(url, "/mcp")+"/healthz"); !strings.HasPrefix(got, `200 {"name":"jsbridge"`) {
		t.Errorf("%s: %s", url, got)
	}
	if code := stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
