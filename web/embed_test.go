package web_test

import (
	"bytes"
	"compress/gzip"
	"io/fs"
	"os/exec"
	"testing"

	"jsbridge/web"
)

// What pages are asked to load, in bytes. The first is what every page pays for; the
// others are as they were measured, rounded up, so that growth is a decision.
var budgets = []struct {
	name              string
	minified, gzipped int
}{
	{"main.js", 12 << 10, 5 << 10},
	{"inline.js", 14 << 10, 7 << 10},
	{"extras.js", 27 << 10, 11 << 10},
	{"tool-bus.js", 3 << 10, 2 << 10},
	{"connect.js", 39 << 10, 16 << 10},
	{"client.js", 39 << 10, 16 << 10},
	{"index.js", 108 << 10, 37 << 10},
	{"index.css", 20 << 10, 6 << 10},
	{"index.html", 1 << 10, 1 << 10},
}

// maxDashboard bounds what the page at / takes in all, in bytes gzipped.
const maxDashboard = 60 << 10

func TestDashboardIsSmall(t *testing.T) {
	total := 0
	for _, name := range []string{"index.html", "index.css", "index.js"} {
		file, err := fs.ReadFile(web.Files(), name)
		if err != nil {
			t.Fatal(err)
		}
		total += gzipped(t, file)
	}
	if total > maxDashboard {
		t.Errorf("the dashboard has %d bytes gzipped; want at most %d", total, maxDashboard)
	}
}

func TestScriptsAreSmall(t *testing.T) {
	for _, budget := range budgets {
		script, err := fs.ReadFile(web.Files(), budget.name)
		if err != nil {
			t.Error(err)
			continue
		}
		if len(script) > budget.minified {
			t.Errorf("%s has %d bytes; want at most %d", budget.name, len(script), budget.minified)
		}
		if size := gzipped(t, script); size > budget.gzipped {
			t.Errorf("%s has %d bytes gzipped; want at most %d", budget.name, size, budget.gzipped)
		}
	}
}

func gzipped(t *testing.T, script []byte) int {
	t.Helper()
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(script); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Len()
}

// Whoever pastes it calls it, in the same line.
func TestInlineIsOneFunction(t *testing.T) {
	script, err := fs.ReadFile(web.Files(), "inline.js")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(script, []byte("((SERVER,TENANT)=>{")) || !bytes.HasSuffix(script, []byte("})")) || bytes.ContainsAny(script, "\r\n") {
		t.Errorf("inline.js is no function on one line: %.40s...", script)
	}
}

func TestFilesAreThere(t *testing.T) {
	for _, name := range []string{"main.js", "extras.js", "tool-bus.js", "connect.js", "client.js", "inline.js", "index.html", "index.js", "index.css"} {
		if info, err := fs.Stat(web.Files(), name); err != nil || info.Size() == 0 {
			t.Errorf("%s is missing or empty: %v", name, err)
		}
	}
}

// TestBundleIsFresh fails when src was changed without go generate ./web.
func TestBundleIsFresh(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "run", "./bundle", "-check").CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
