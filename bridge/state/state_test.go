package state

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gofrs/flock"
)

func open(t *testing.T, path string) (*File, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	f, err := Open(path, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return f, &log
}

func allow(t *testing.T, f *File, origin string) {
	t.Helper()
	if added, err := f.Allow(origin); !added || err != nil {
		t.Fatalf("Allow(%q) = %v, %v", origin, added, err)
	}
}

func names(f *File) string {
	var list []string
	for _, o := range f.Origins() {
		list = append(list, o.Origin)
	}
	return strings.Join(list, " ")
}

// files are the names in a folder, without the lock.
func files(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".lock") {
			list = append(list, e.Name())
		}
	}
	return list
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestAllowOutlivesTheProcess(t *testing.T) {
	for _, kept := range []bool{true, false} {
		path := ""
		if kept {
			path = filepath.Join(t.TempDir(), "new", "state.json")
		}
		f, _ := open(t, path)
		begin := time.Now().Truncate(time.Second)
		allow(t, f, "https://b.example/page")
		allow(t, f, "https://a.example")
		if added, err := f.Allow("https://A.example:443"); added || err != nil {
			t.Errorf("the second time: %v, %v", added, err)
		}
		if _, err := f.Allow("nonsense"); err == nil {
			t.Error("nonsense was allowed")
		}
		if !f.Allows("https://b.example") || f.Allows("https://b.example.") || f.Allows("") {
			t.Errorf("Allows is wrong with %v", f.Origins())
		}
		if at := f.Origins()[0].At; at.Before(begin) || at.After(time.Now()) {
			t.Errorf("allowed at %v", at)
		}
		f.Origins()[0].Origin = "https://forged.example"
		if kept {
			again, _ := open(t, path)
			if !slices.Equal(again.Origins(), f.Origins()) {
				t.Errorf("read again: %v, want %v", again.Origins(), f.Origins())
			}
		}
		if removed, err := f.Remove("https://a.example/"); !removed || err != nil {
			t.Errorf("Remove = %v, %v", removed, err)
		}
		if removed, err := f.Remove("https://a.example/"); removed || err != nil {
			t.Errorf("the second Remove = %v, %v", removed, err)
		}
		if _, err := f.Remove("nonsense"); err == nil {
			t.Error("nonsense was removed")
		}
		if got := names(f); got != "https://b.example" {
			t.Errorf("left: %s", got)
		}
		if kept {
			again, _ := open(t, path)
			if got := names(again); got != "https://b.example" {
				t.Errorf("read again: %s", got)
			}
		}
	}
}

func TestOnlyTheUserReadsIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jsbridge", "state.json")
	f, _ := open(t, path)
	allow(t, f, "https://a.example")
	mode := func(path string) os.FileMode {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode().Perm()
	}
	if dir, file := mode(filepath.Dir(path)), mode(path); dir != 0o700 || file != 0o600 {
		t.Errorf("folder %v, file %v", dir, file)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	allow(t, f, "https://b.example")
	if got := mode(path); got != 0o600 {
		t.Errorf("after the next change: %v", got)
	}
}

func TestKeepsWhatItDoesNotKnow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	put(t, path, `{"version":1,"x-later":{"a":[1,12345678901234567890,"<é>"]},"Origins":null,
		"origins":[{"origin":"https://a.example","at":"2026-01-02T15:04:05+01:00","by":{"x":1}},{"origin":"https://B.example/"},
		{"origin":"pattern:*.example","at":"?"},{"origin":"https://a.example"}]}`)
	f, log := open(t, path)
	if got := fmt.Sprint(f.Origins()); got != "[{https://a.example 2026-01-02 14:04:05 +0000 UTC} {https://b.example 0001-01-01 00:00:00 +0000 UTC}]" {
		t.Errorf("read as %s", got)
	}
	if got := log.String(); strings.Count(got, "level=WARN") != 1 || !strings.Contains(got, "pattern:*.example") {
		t.Errorf("logged: %s", got)
	}
	allow(t, f, "https://c.example")
	if removed, err := f.Remove("https://b.example"); !removed || err != nil {
		t.Errorf("Remove = %v, %v", removed, err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := json.Compact(&got, b); err != nil {
		t.Fatal(err)
	}
	want := `{"Origins":null,"origins":[{"origin":"https://a.example","at":"2026-01-02T15:04:05+01:00","by":{"x":1}},{"origin":"pattern:*.example","at":"?"},` +
		`{"origin":"https://a.example"},{"origin":"https://c.example","at":"` + f.Origins()[1].At.Format(time.RFC3339) + `"}],"version":1,"x-later":{"a":[1,12345678901234567890,"<é>"]}}`
	if got.String() != want {
		t.Errorf("written:\n%s\nwant:\n%s", got.String(), want)
	}
	if removed, err := f.Remove("https://a.example"); !removed || err != nil || f.Allows("https://a.example") {
		t.Errorf("one that is there twice: Remove = %v, %v, left %v", removed, err, f.Origins())
	}
}

// manyOrigins is a file with n origins.
func manyOrigins(n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf(`{"origin":"https://a%d.example"}`, i))
	}
	return `{"version":1,"origins":[` + strings.Join(list, ",") + `]}`
}

func TestDamagedFileIsSetAside(t *testing.T) {
	for name, text := range map[string]string{
		"truncated":     `{"version":1,"origins":[{"origin":"https://a.exa`,
		"empty":         ``,
		"no JSON":       `origins: [a]`,
		"zeros":         strings.Repeat("\x00", 4096),
		"more behind":   `{"version":1,"origins":[]}{}`,
		"null":          `null`,
		"no object":     `[]`,
		"no version":    `{"origins":[]}`,
		"version 2":     `{"version":2,"origins":[]}`,
		"version text":  `{"version":"1","origins":[]}`,
		"origins text":  `{"version":1,"origins":"https://a.example"}`,
		"origin text":   `{"version":1,"origins":["https://a.example"]}`,
		"origin number": `{"version":1,"origins":[{"origin":1}]}`,
		"at number":     `{"version":1,"origins":[{"origin":"https://a.example","at":1}]}`,
		"huge":          `{"version":1,"x":"` + strings.Repeat("x", MaxFile) + `"}`,
		"deep":          `{"version":1,"x":` + strings.Repeat("[", MaxFile/2) + `}`,
		"too many":      manyOrigins(MaxOrigins + 1),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "state.json")
			put(t, path, text)
			f, log := open(t, path)
			aside := files(t, dir)
			if len(aside) != 1 || !strings.HasPrefix(aside[0], "state.json.damaged-") {
				t.Fatalf("the folder has %q", aside)
			}
			if b, err := os.ReadFile(filepath.Join(dir, aside[0])); string(b) != text {
				t.Errorf("what was set aside is another: %.100q, %v", b, err)
			}
			if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "level=WARN") || !strings.Contains(got, aside[0]) {
				t.Errorf("logged: %s", got)
			}
			if len(f.Origins()) != 0 {
				t.Errorf("it allows %v", f.Origins())
			}
			allow(t, f, "https://a.example")
			_, log = open(t, path)
			if got := files(t, dir); len(got) != 2 || log.Len() != 0 {
				t.Errorf("after a change, opened again: %q, logged %s", got, log)
			}
		})
	}
}

func TestDamagedWhileRunning(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "state.json")
	f, log := open(t, path)
	allow(t, f, "https://a.example")
	put(t, path, `{"version":1,"ori`) // as an editor does that does not rename
	for range 3 {
		if f.poll() || !f.Allows("https://a.example") {
			t.Fatalf("what was read before is gone: %v", f.Origins())
		}
	}
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "damaged") {
		t.Errorf("logged: %s", got)
	}
	if got := files(t, dir); len(got) != 1 {
		t.Errorf("renamed under the editor's hands: %q", got)
	}
	allow(t, f, "https://b.example")
	again, _ := open(t, path)
	if got := names(again); got != "https://a.example https://b.example" {
		t.Errorf("after the next change: %s", got)
	}
	if got := files(t, dir); len(got) != 2 {
		t.Errorf("after the next change: %q", got)
	}
}

func TestLimits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	put(t, path, manyOrigins(MaxOrigins))
	f, _ := open(t, path)
	if added, err := f.Allow("https://b.example"); added || err == nil || !strings.Contains(err.Error(), "--remove") {
		t.Errorf("one too many: %v, %v", added, err)
	}
	if f.Allows("https://b.example") || len(f.Origins()) != MaxOrigins {
		t.Errorf("%d origins after one too many", len(f.Origins()))
	}
	// Indented, this one would be too large; with another origin it is so anyway.
	full := `{"version":1,"x":[` + strings.Repeat("1,", (MaxFile-100)/2) + `1],"origins":[{"origin":"https://a.example"}]}`
	put(t, path, full)
	f, log := open(t, path)
	if added, err := f.Allow("https://" + strings.Repeat("b", 100) + ".example"); added || err == nil || !strings.Contains(err.Error(), "larger") {
		t.Errorf("a file too large: %v, %v", added, err)
	}
	if b, err := os.ReadFile(path); string(b) != full {
		t.Errorf("the file changed: %d bytes, %v", len(b), err)
	}
	if removed, err := f.Remove("https://a.example"); !removed || err != nil || log.Len() != 0 {
		t.Errorf("Remove = %v, %v, logged %s", removed, err, log)
	}
	again, log := open(t, path)
	if len(again.Origins()) != 0 || log.Len() != 0 {
		t.Errorf("read again: %v, logged %s", again.Origins(), log)
	}
}

func TestWritesThroughLinks(t *testing.T) {
	dir := t.TempDir()
	path, dotfiles := filepath.Join(dir, "config", "state.json"), filepath.Join(dir, "dotfiles")
	for _, d := range []string{filepath.Dir(path), dotfiles} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for from, to := range map[string]string{path: "../dotfiles/link", filepath.Join(dotfiles, "link"): "real.json"} {
		if err := os.Symlink(to, from); err != nil {
			t.Fatal(err)
		}
	}
	f, _ := open(t, path) // the links lead nowhere yet
	allow(t, f, "https://a.example")
	again, _ := open(t, filepath.Join(dotfiles, "real.json"))
	allow(t, again, "https://b.example")
	if !f.poll() || names(f) != "https://a.example https://b.example" {
		t.Errorf("behind the link: %s", names(f))
	}
	if link, err := os.Readlink(path); link != "../dotfiles/link" {
		t.Errorf("the link is %q, %v", link, err)
	}
	if got := files(t, filepath.Dir(path)); len(got) != 1 {
		t.Errorf("beside the link: %q", got)
	}
	circle := filepath.Join(dir, "circle")
	if err := os.Symlink(circle, circle); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(circle, nil); err == nil || !strings.Contains(err.Error(), circle) {
		t.Errorf("a circle: %v", err)
	}
}

func TestErrorsNameTheFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	put(t, file, "")
	if _, err := Open(dir, nil); err == nil || !strings.Contains(err.Error(), dir+" is no regular file") {
		t.Errorf("a folder: %v", err)
	}
	if _, err := Open(os.DevNull, nil); err == nil || !strings.Contains(err.Error(), "is no regular file") {
		t.Errorf("a device: %v", err)
	}
	inFile := filepath.Join(file, "state.json")
	if _, err := Open(inFile, nil); err == nil || !strings.Contains(err.Error(), inFile+": not a directory") {
		t.Errorf("below a file: %v", err)
	}
	// A folder in the way of the new file is what even root can't write over.
	path := filepath.Join(dir, "state.json")
	f, _ := open(t, path)
	allow(t, f, "https://a.example")
	if err := os.MkdirAll(filepath.Join(path+".tmp", "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if added, err := f.Allow("https://b.example"); added || err == nil || !strings.Contains(err.Error(), path) || f.Allows("https://b.example") {
		t.Errorf("no room for the new file: %v, %v, %v", added, err, f.Origins())
	}
	if removed, err := f.Remove("https://a.example"); removed || err == nil || !f.Allows("https://a.example") {
		t.Errorf("no room for the new file: %v, %v, %v", removed, err, f.Origins())
	}
}

func TestPermissions(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may read and write everything")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "state.json")
	f, _ := open(t, path)
	allow(t, f, "https://a.example")
	chmod := func(path string, mode os.FileMode) {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	chmod(path, 0)
	if _, err := Open(path, nil); err == nil || !strings.Contains(err.Error(), path+": permission denied") {
		t.Errorf("an unreadable file: %v", err)
	}
	if f.poll() || !f.Allows("https://a.example") {
		t.Errorf("an unreadable file took back %v", f.Origins())
	}
	chmod(path, 0o600)
	chmod(dir, 0o500)
	t.Cleanup(func() { chmod(dir, 0o700) }) // or it can't be removed
	if added, err := f.Allow("https://b.example"); added || err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("a read-only folder: %v, %v", added, err)
	}
	put(t, path, "damaged")
	for range 2 {
		damaged, log := open(t, path)
		told := damaged.poll()
		if told = damaged.poll() || told; told || strings.Count(log.String(), "\n") != 1 || !strings.Contains(log.String(), "can't be set aside") {
			t.Errorf("a damaged file in a read-only folder: logged %s", log)
		}
	}
}

func TestGivesUpOnALockThatIsHeld(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	held := flock.New(path + ".lock")
	if ok, err := held.TryLock(); !ok || err != nil {
		t.Fatal(ok, err)
	}
	f, _ := open(t, path)
	f.lockWait = time.Millisecond
	if added, err := f.Allow("https://a.example"); added || err == nil || !strings.Contains(err.Error(), "another process has held "+path+".lock") {
		t.Errorf("Allow = %v, %v", added, err)
	}
	if err := held.Unlock(); err != nil {
		t.Fatal(err)
	}
	f.lockWait = lockWait
	allow(t, f, "https://a.example")
}
