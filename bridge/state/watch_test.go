package state

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestWatch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	server, _ := open(t, path)
	cli, _ := open(t, path)
	ctx, cancel := context.WithCancel(t.Context())
	seen, ended := make(chan string), make(chan struct{})
	go func() {
		server.Watch(ctx, time.Millisecond, func() { seen <- names(server) })
		close(ended)
	}()
	expect := func(want string) {
		t.Helper()
		select {
		case got := <-seen:
			if got != want {
				t.Errorf("told of %q, want %q", got, want)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("not told of %q", want)
		}
	}
	allow(t, cli, "https://a.example")
	expect("https://a.example")
	// Same size, and likely the same time.
	if _, err := cli.Remove("https://a.example"); err != nil {
		t.Fatal(err)
	}
	expect("")
	allow(t, cli, "https://b.example")
	expect("https://b.example")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	expect("")
	cancel()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Fatal("it does not end")
	}
}

func TestWatchIsQuietAboutItsOwn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	server, log := open(t, path)
	if server.poll() {
		t.Error("told of no file")
	}
	allow(t, server, "https://a.example")
	for range 3 {
		if server.poll() {
			t.Error("told of its own change")
		}
	}
	if log.Len() != 0 {
		t.Errorf("logged: %s", log)
	}
}

// A change of its own reads the file, and with it what another process wrote.
func TestWatchTellsWhatAChangeFound(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	server, _ := open(t, path)
	cli, _ := open(t, path)
	allow(t, cli, "https://a.example")
	allow(t, server, "https://b.example")
	if !server.Allows("https://a.example") || !server.poll() {
		t.Errorf("not told of https://a.example among %v", server.Origins())
	}
	if server.poll() {
		t.Error("told twice")
	}
}

// A file that was not touched for a while is not read again.
func TestWatchReadsWhatChanged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	cli, _ := open(t, path)
	allow(t, cli, "https://a.example")
	old := time.Now().Add(-time.Hour)
	touch := func() {
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	touch()
	server, _ := open(t, path)
	// In place, as long, and at the same time: not to be seen, which shows that
	// nothing was read.
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[len(`{ "origins": [ { "origin": "https://`)+12]++
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	touch()
	if server.poll() {
		t.Errorf("read again: %v", server.Origins())
	}
	old = old.Add(time.Millisecond)
	touch()
	if !server.poll() || server.Allows("https://a.example") {
		t.Errorf("not read again: %v", server.Origins())
	}
}

func TestWatchOfMemoryEnds(t *testing.T) {
	f, _ := open(t, "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f.Watch(ctx, 0, func() { t.Error("told of something") })
}
