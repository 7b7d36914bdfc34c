package bridge

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"
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

// policy is what the dashboard's page may do: what a web page says is shown there,
// and must neither run nor call home, whatever slips through.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src data: blob:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// own serves a file of jsbridge's own pages.
func (a asset) own() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ownHeaders(w.Header())
		a.serve(w, r)
	})
}

func ownHeaders(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Frame-Options", "DENY") // for browsers that do not know frame-ancestors
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Embedder-Policy", "require-corp")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=(), display-capture=(), usb=(), serial=(), hid=(), payment=(), clipboard-read=()")
}

// tokenPlace is where the page's own source has room for the token.
const tokenPlace = `<meta name="jsbridge-token" content="">`

// withToken serves the dashboard's page with the token that its requests need. It
// is another one after each start, so nobody may keep the page.
func (a asset) withToken(token string) http.Handler {
	meta := []byte(strings.Replace(tokenPlace, `""`, `"`+token+`"`, 1)) // base32
	page := bytes.Replace(a.data, []byte(tokenPlace), meta, 1)
	if bytes.Equal(page, a.data) {
		page = bytes.Replace(a.data, []byte("</head>"), append(meta, "</head>"...), 1)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ownHeaders(w.Header())
		w.Header().Set("Content-Type", a.contentType)
		w.Header().Set("Cache-Control", "no-store")
		http.ServeContent(w, r, a.name, time.Time{}, bytes.NewReader(page))
	})
}

func (a asset) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", a.contentType)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("ETag", a.etag)
	http.ServeContent(w, r, a.name, time.Time{}, bytes.NewReader(a.data))
}
