package bridge

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"time"
)

// contentTypes are the only kinds of file that are served.
var contentTypes = map[string]string{
	".js":   "text/javascript; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".html": "text/html; charset=utf-8",
	".svg":  "image/svg+xml",
	".png":  "image/png",
}

type asset struct {
	name, contentType, etag string
	data                    []byte
}

// loadAssets reads the bundle once: it is small, embedded and never changes.
func loadAssets(files fs.FS) (map[string]asset, error) {
	assets := make(map[string]asset)
	err := fs.WalkDir(files, ".", func(p string, d fs.DirEntry, err error) error {
		ct := contentTypes[path.Ext(p)]
		if err != nil || d.IsDir() || ct == "" {
			return err
		}
		data, err := fs.ReadFile(files, p)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(data)
		assets["/"+p] = asset{p, ct, `"` + hex.EncodeToString(sum[:12]) + `"`, data}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the embedded files: %w", err)
	}
	return assets, nil
}

// script serves a script that pages of any origin import.
func (a asset) script() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "*")
		w.Header().Set("Cross-Origin-Resource-Policy", "cross-origin")
		a.serve(w, r)
	})
}

// own serves a file of jsbridge's own pages.
func (a asset) own() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'")
		w.Header().Set("Cross-Origin-Resource-Policy", "same-origin")
		w.Header().Set("Cross-Origin-Opener-Policy", "same-origin")
		w.Header().Set("Referrer-Policy", "no-referrer")
		a.serve(w, r)
	})
}

func (a asset) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", a.contentType)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("ETag", a.etag)
	http.ServeContent(w, r, a.name, time.Time{}, bytes.NewReader(a.data))
}
