package web_test

import (
	"bytes"
	"compress/gzip"
	"io/fs"
	"os/exec"
	"testing"

	"jsbridge/web"
)

// What pages are asked to load, in bytes.
const (
	maxMinified = 12 << 10
	maxGzipped  = 5 << 10
)

func TestMainIsSmall(t *testing.T) {
	script, err := fs.ReadFile(web.Files(), "main.js")
	if err != nil {
		t.Fatal(err)
	}
	if len(script) > maxMinified {
		t.Errorf("main.js has %d bytes; want at most %d", len(script), maxMinified)
	}
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
	if packed.Len() > maxGzipped {
		t.Errorf("main.js has %d bytes gzipped; want at most %d", packed.Len(), maxGzipped)
	}
}

func TestFilesAreThere(t *testing.T) {
	for _, name := range []string{"main.js", "index.html", "index.js", "index.css"} {
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
