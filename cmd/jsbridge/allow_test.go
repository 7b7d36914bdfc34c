package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jsbridge/bridge/state"
)

// allowed runs "jsbridge allow" on a state file.
func allowed(t *testing.T, path string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err strings.Builder
	code = run(t.Context(), append([]string{"allow"}, args...), environ("JSBRIDGE_STATE", path), &out, &err)
	return code, out.String(), err.String()
}

func TestAllow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jsbridge", "state.json")
	for _, tc := range []struct {
		args           string
		wantCode       int
		stdout, stderr string // in what it prints; "" is nothing
	}{
		{"--list", 0, "no origin is allowed yet", ""},
		{"https://App.example:443/page", 0, "allowed https://app.example; a running jsbridge lets its pages in within a second\n", ""},
		{"https://app.example https://b.example", 0, "https://app.example was allowed already\nallowed https://b.example;", ""},
		{"http://localhost:3000", 0, "http://localhost:3000 needs no approval", ""},
		{"https://c.example c.example", 2, "", `"c.example" has no scheme`},
		{"null", 2, "", "--allow-origin null"},
		{"", 2, "", "name an origin"},
		{"--remove", 2, "", "name an origin"},
		{"--list https://c.example", 2, "", "--list"},
		{"--list --remove", 2, "", "--list"},
		{"--nonsense", 2, "", "--nonsense"},
		{"--remove https://c.example", 1, "", "not allowed before: https://c.example; allowed are:\n  https://app.example\n  https://b.example\n"},
		{"--list", 0, "https://app.example  since 20", ""},
		{"--remove https://B.example/ https://c.example", 1, "removed https://b.example; ", "not allowed before: https://c.example; allowed are:\n  https://app.example\n"},
		{"--remove https://app.example", 0, "removed https://app.example; ", ""},
		{"--remove https://app.example", 1, "", "not allowed before: https://app.example; no origin is"},
	} {
		code, stdout, stderr := allowed(t, path, strings.Fields(tc.args)...)
		if code != tc.wantCode || !strings.Contains(stdout, tc.stdout) || !strings.Contains(stderr, tc.stderr) ||
			(tc.stdout == "") != (stdout == "") || (tc.stderr == "") != (stderr == "") {
			t.Errorf("jsbridge allow %s: code %d, stdout %q, stderr %q; want %d, %q, %q", tc.args, code, stdout, stderr, tc.wantCode, tc.stdout, tc.stderr)
		}
	}
}

func TestAllowWritesNothingForLoopback(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	if code, _, stderr := allowed(t, path, "http://localhost:3000", "http://[::1]"); code != 0 {
		t.Errorf("code %d, %s", code, stderr)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the state file: %v", err)
	}
}

func TestAllowTakesTheFileOfItsFlag(t *testing.T) {
	dir := t.TempDir()
	flag, variable := filepath.Join(dir, "flag.json"), filepath.Join(dir, "variable.json")
	if code, _, stderr := allowed(t, variable, "--state", flag, "https://app.example"); code != 0 {
		t.Errorf("code %d, %s", code, stderr)
	}
	f, err := state.Open(flag, nil)
	if err != nil || !f.Allows("https://app.example") {
		t.Errorf("%v, %v", f.Origins(), err)
	}
	if _, err := os.Stat(variable); !os.IsNotExist(err) {
		t.Errorf("the variable's file: %v", err)
	}
}

func TestAllowWithoutAUsableFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	if code, _, stderr := allowed(t, path, "--state", "", "https://app.example"); code != 2 || !strings.Contains(stderr, "--state") {
		t.Errorf("no file: code %d, %s", code, stderr)
	}
	if code, _, stderr := allowed(t, path, "--state", filepath.Dir(path), "https://app.example"); code != 1 || !strings.Contains(stderr, filepath.Dir(path)) {
		t.Errorf("a folder: code %d, %s", code, stderr)
	}
	if err := os.WriteFile(path, []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, stdout, stderr := allowed(t, path, "https://app.example"); code != 0 || !strings.HasPrefix(stdout, "allowed ") || strings.Count(stderr, "damaged") == 0 {
		t.Errorf("a damaged file: code %d, %s%s", code, stdout, stderr)
	}
}
