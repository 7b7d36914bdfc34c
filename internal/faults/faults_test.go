package main

import (
	"context"
	"errors"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"jsbridge/internal/rig"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" { // a client that is to be killed
		os.Exit(play(role, os.Args[1:]))
	}
	os.Exit(m.Run())
}

// needLinux skips where there is no /proc, which tells what a server holds.
func needLinux(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("faults are tried on Linux only")
	}
}

// The quick scenarios; make faults tries all of them.
func TestQuickScenarios(t *testing.T) {
	needLinux(t)
	dir := t.TempDir()
	binary, err := rig.Build(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range slices.Concat(families...) {
		if !s.quick {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			o := try(t.Context(), binary, dir, s)
			if errors.Is(o.err, errSkipped) {
				t.Skip(o.err)
			}
			if o.err != nil {
				t.Fatal(o.err)
			}
			t.Logf("%s; bystander: %s; before %s; after %s", o.detail, o.by, o.before, o.after)
		})
	}
}

// What the scenarios stand on must be able to fail.
func TestBrokenPromisesAreNoticed(t *testing.T) {
	needLinux(t)
	dir := t.TempDir()
	binary, err := rig.Build(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func(was time.Duration) { settling = was }(settling)
	settling = 2 * time.Second
	for _, tc := range []struct {
		name, want string
		run        func(ctx context.Context, a *arena) error
	}{
		{"a leak", "later the server holds", func(ctx context.Context, a *arena) error {
			s, err := slowTo(ctx, a.server)
			if err == nil {
				t.Cleanup(func() { s.conn.Close() }) // too late
			}
			return err
		}},
		{"a bystander's page that is lost", "its page was disconnected", func(_ context.Context, a *arena) error {
			a.by.page.cut()
			return nil
		}},
		{"a bystander that is told of a change", "that its tools have changed", func(ctx context.Context, a *arena) error {
			at, err := a.by.client.connectString(ctx)
			if err != nil {
				return err
			}
			p, err := join(ctx, a.server.Base, pageOptions{connect: at, instance: "tab-of-an-intruder", label: "Intruder", tools: []string{"echo"}})
			if err != nil {
				return err
			}
			defer p.leave()
			return await(ctx, rig.Patience, "the change to be told", func() (bool, error) { return a.by.client.changed.Load() > a.by.told, nil })
		}},
		{"a server that is gone", "bystander", func(_ context.Context, a *arena) error {
			a.server.Kill()
			return nil
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := try(t.Context(), binary, dir, scenario{name: tc.name, run: func(ctx context.Context, a *arena) (string, error) { return "", tc.run(ctx, a) }})
			if o.err == nil || !strings.Contains(o.err.Error(), tc.want) {
				t.Errorf("the outcome is %v, want one with %q", o.err, tc.want)
			}
		})
	}
}

func TestScenariosAreNamed(t *testing.T) {
	seen := make(map[string]bool)
	for _, s := range slices.Concat(families...) {
		if s.name == "" || s.promise == "" || s.run == nil || seen[s.name] {
			t.Errorf("%q is nameless, or there twice, or has no promise", s.name)
		}
		seen[s.name] = true
	}
	if _, err := choose("no such scenario"); err == nil {
		t.Error("a pattern that matches nothing is taken")
	}
	if _, err := choose("("); err == nil {
		t.Error("a pattern that is none is taken")
	}
	if chosen, err := choose("^kill/"); err != nil || len(chosen) != len(kills) {
		t.Errorf("%d kills, %v", len(chosen), err)
	}
}

func TestGrammarRepeats(t *testing.T) {
	a, b := newGrammar(), newGrammar()
	for range 1000 {
		if x, y := a.frame(), b.frame(); x != y {
			t.Fatalf("%q and %q", x, y)
		}
		if x, y := a.request("s"), b.request("s"); x != y {
			t.Fatalf("%q and %q", x, y)
		}
	}
}
