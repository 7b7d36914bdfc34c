package state

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestWorkspaceKeepsItsTenant(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	open := func() *File {
		t.Helper()
		f, err := Open(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	f := open()
	id, err := f.Workspace("my-project")
	if err != nil || !f.IsWorkspace(id) {
		t.Fatalf("%q, %v", id, err)
	}
	if other, err := f.Workspace("other"); other == id || err != nil {
		t.Errorf("another workspace has the tenant %q, %v", other, err)
	}
	if _, err := f.Allow("https://app.example"); err != nil {
		t.Fatal(err)
	}
	for _, f := range []*File{f, open()} {
		if again, err := f.Workspace("my-project"); again != id || err != nil || !f.IsWorkspace(id) {
			t.Errorf("the tenant was %q and is %q, %v", id, again, err)
		}
		if !f.Allows("https://app.example") {
			t.Error("the origin is lost")
		}
	}
	if f.IsWorkspace("6c2d0b5e-1111-4222-8333-444455556666") || f.IsWorkspace("") {
		t.Error("a stranger is a workspace")
	}
	for _, bad := range []string{"", "a b", "ä", "a/b", strings.Repeat("x", 65)} {
		if id, err := f.Workspace(bad); id != "" || !errors.Is(err, ErrKey) {
			t.Errorf("%q: %q, %v", bad, id, err)
		}
	}
}

// Without a file, and when it can't be written, it lives as long as the process.
func TestWorkspaceWithoutAFile(t *testing.T) {
	memory, err := Open("", nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "no-folder")
	if err := os.WriteFile(dir, nil, 0o600); err != nil { // a file stands in its place
		t.Fatal(err)
	}
	broken := &File{path: filepath.Join(dir, "state.json"), log: slog.New(slog.DiscardHandler), lockWait: lockWait}
	for f, fails := range map[*File]bool{memory: false, broken: true} {
		id, err := f.Workspace("w")
		if id == "" || (err != nil) != fails {
			t.Errorf("%q, %v", id, err)
		}
		if again, _ := f.Workspace("w"); again != id || !f.IsWorkspace(id) {
			t.Errorf("the tenant was %q and is %q", id, again)
		}
	}
}

// What could not be written is not forgotten when the file changes, and is written
// when that works again.
func TestUnwrittenWorkspaceIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	f, err := Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Allow("https://app.example"); err != nil {
		t.Fatal(err)
	}
	kept, err := f.Workspace("kept")
	if err != nil {
		t.Fatal(err)
	}
	block := path + ".tmp" // where the new file would be made
	spoil := func() {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(block, "full"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	mend := func() {
		t.Helper()
		if err := os.RemoveAll(block); err != nil {
			t.Fatal(err)
		}
	}
	same := func(when, id string) {
		t.Helper()
		if again, err := f.Workspace("unwritten"); again != id || err != nil || !f.IsWorkspace(id) {
			t.Errorf("%s: the tenant was %s and is %s, %v", when, id, again, err)
		}
	}
	reopened := func(key, want string) {
		t.Helper()
		other, err := Open(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if id, err := other.Workspace(key); id != want || err != nil {
			t.Errorf("another process has the workspace %s as %s, not %s, %v", key, id, want, err)
		}
	}

	spoil()
	id, err := f.Workspace("unwritten")
	if id == "" || err == nil {
		t.Fatalf("%q, %v", id, err)
	}
	same("the second time", id)
	f.seen = nil // as if another process had changed the file
	f.poll()
	same("after a look at the file", id)
	if _, err := f.Allow("https://two.example"); err == nil {
		t.Error("a file that can't be written was changed")
	}
	same("after a change that failed", id)
	mend()
	if _, err := f.Allow("https://two.example"); err != nil {
		t.Fatal(err)
	}
	same("after a change", id)
	reopened("unwritten", id)
	reopened("kept", kept)

	spoil()
	late, err := f.Workspace("late")
	if err == nil {
		t.Fatal("it was written")
	}
	mend()
	f.poll() // not so soon again
	f.retry = time.Now()
	f.poll()
	reopened("late", late)
}

func TestWorkspacesAreBounded(t *testing.T) {
	c := contents{}
	for i := range MaxWorkspaces + 1 {
		c, _ = c.opened(fmt.Sprint("w", i), "2026-01-01")
	}
	if len(c.spaces) != MaxWorkspaces || c.spaces[0].Key != "w1" {
		t.Errorf("%d are kept, the oldest is %s", len(c.spaces), c.spaces[0].Key)
	}
	c, changed := c.opened("w1", "2026-01-02")
	if last := c.spaces[len(c.spaces)-1]; !changed || last.Key != "w1" || len(c.spaces) != MaxWorkspaces {
		t.Errorf("the one just opened is not the newest: %+v", last)
	}
}

func TestDamagedWorkspaces(t *testing.T) {
	const id = "6c2d0b5e-1111-4222-8333-444455556666"
	for _, bad := range []string{`5`, `[5]`, `[{"key":"a","tenant":"x"}]`, `[{"key":"a b","tenant":"` + id + `"}]`, `[{"key":"a","tenant":"` + strings.ToUpper(id) + `"}]`,
		`[{"key":"a","tenant":"` + id + `"},{"key":"b","tenant":"` + id + `"}]`} {
		if _, err := decode([]byte(`{"version":1,"workspaces":` + bad + `}`)); !errors.Is(err, errDamaged) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// Some clients change their token every hour: that must not push a named workspace out.
func TestTokensPushOutNoNames(t *testing.T) {
	spaces := make([]workspace, 0, MaxWorkspaces+1)
	spaces = append(spaces, workspace{Key: "named", Tenant: "1", At: "2026-01-01"})
	for i := range MaxWorkspaces {
		spaces = append(spaces, workspace{Key: fmt.Sprintf("bearer:%064x", i), Tenant: fmt.Sprint(i), At: "2026-01-02"})
	}
	next, changed := contents{spaces: spaces}.opened(fmt.Sprintf("bearer:%064x", MaxWorkspaces), "2026-01-03")
	if !changed || len(next.spaces) != MaxWorkspaces+1 || next.spaces[0].Key != "named" || next.spaces[1].Key != fmt.Sprintf("bearer:%064x", 1) {
		t.Errorf("%d spaces, the first are %s and %s", len(next.spaces), next.spaces[0].Key, next.spaces[1].Key)
	}
}
