package state

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Whatever is in the state file: what can be read stays, with all that this version
// does not know, and what can't is still there afterwards, byte for byte.
func FuzzStateFile(f *testing.F) {
	for _, seed := range []string{
		`{"version":1,"origins":[{"origin":"https://app.example","at":"2026-01-02T15:04:05Z"}],"workspaces":[{"key":"work","tenant":"3f2b8c1e-9a4d-4e57-b1c6-0d2f7a8e5b93","at":"2026-01-02"}]}`,
		`{"version":1,"origins":[{"origin":"gopher://later","more":[1]},{"origin":"https://b.example"},{"origin":"https://b.example","twice":true}],"later":{"a":1}}`,
		`{"version":2,"origins":[]}`, `{"version":1,"origins":null,"workspaces":null}`, `{"version":1,"origins":{}}`, `{"version":1,"Origins":[{"origin":"https://a.example"}]}`,
		`{"version":1,"workspaces":[{"key":"a"}]}`, `{"version":1`, "", "null", "[]", "\xef\xbb\xbf{}", "{\"version\":1,\"\xff\":\"\xff\"}",
	} {
		f.Add([]byte(seed), false)
		f.Add([]byte(seed), true)
	}
	const added = "https://added.example"
	f.Fuzz(func(t *testing.T, data []byte, whileOpen bool) {
		dir := t.TempDir()
		path := filepath.Join(dir, "state.json")
		before, whyNot := decode(data)
		var log bytes.Buffer
		var file *File
		open := func() {
			var err error
			if file, err = Open(path, slog.New(slog.NewTextHandler(&log, nil))); err != nil {
				t.Fatalf("opening: %v", err)
			}
		}
		if whileOpen { // another process, or an editor, wrote it
			open()
			put(t, path, string(data))
			file.poll()
		} else {
			put(t, path, string(data))
			open()
		}
		if whyNot == nil && log.Len() > 0 && before.problem == "" {
			t.Errorf("a good file makes noise: %s", &log)
		}
		if whyNot != nil && log.Len() == 0 {
			t.Error("a damaged file was passed over in silence")
		}
		unchanged, err := os.ReadFile(path)
		if (whyNot == nil || whileOpen) && (err != nil || !bytes.Equal(unchanged, data)) {
			t.Fatalf("looking at the file changed it: %q, %v", unchanged, err)
		}

		full := len(before.entries) >= MaxOrigins || len(data) >= MaxFile/2
		if !changes(t, file, added, full) {
			return
		}
		if whyNot != nil {
			stillThere(t, dir, data)
			return
		}
		after, _, err := load(path)
		if err != nil {
			t.Fatalf("what was written can't be read: %v", err)
		}
		keeps(t, before, after, added)
	})
}

// changes adds and removes something, each time writing the file. It tells whether it
// could, as it must unless the file may be full.
func changes(t *testing.T, file *File, origin string, full bool) bool {
	t.Helper()
	if _, err := file.Allow(origin); err != nil {
		if !full {
			t.Fatalf("allowing: %v", err)
		}
		return false
	}
	if _, err := file.Workspace("added"); err != nil {
		t.Fatalf("a workspace: %v", err)
	}
	if _, err := file.Remove(origin); err != nil {
		t.Fatalf("removing: %v", err)
	}
	return true
}

// stillThere looks for a file of exactly these bytes.
func stillThere(t *testing.T, dir string, data []byte) {
	t.Helper()
	for _, name := range files(t, dir) {
		if b, err := os.ReadFile(filepath.Join(dir, name)); err == nil && strings.Contains(name, ".damaged-") && bytes.Equal(b, data) {
			return
		}
	}
	t.Errorf("the damaged file is lost; there is %q", files(t, dir))
}

// keeps compares what a file held before an origin came and went with what it holds
// now.
func keeps(t *testing.T, before, after contents, origin string) {
	t.Helper()
	if before.allows(origin) { // it was there, and was taken out
		before, _ = before.without(origin)
	}
	if !before.sameOrigins(after) || len(before.entries) != len(after.entries) {
		t.Errorf("origins were %v, are %v", before.origins, after.origins)
	}
	for i := range min(len(before.entries), len(after.entries)) {
		if !sameJSON(before.entries[i].raw, after.entries[i].raw) {
			t.Errorf("the entry %s is %s", before.entries[i].raw, after.entries[i].raw)
		}
	}
	for name, raw := range before.others {
		if !sameJSON(raw, after.others[name]) {
			t.Errorf("the member %q was %s, is %s", name, raw, after.others[name])
		}
	}
	tenants := make(map[string]string)
	for _, w := range after.spaces {
		tenants[w.Key] = w.Tenant
	}
	for _, w := range before.spaces {
		if len(before.spaces) < MaxWorkspaces && tenants[w.Key] != w.Tenant {
			t.Errorf("the workspace %q had the tenant %s, has %q", w.Key, w.Tenant, tenants[w.Key])
		}
	}
}

// sameJSON compares texts apart from white space.
func sameJSON(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}
