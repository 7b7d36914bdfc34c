// Package web holds what browsers load: the page scripts and the dashboard.
package web

import (
	"embed"
	"io/fs"
)

//go:generate go run ./bundle

//go:embed dist
var dist embed.FS

// Files returns the bundled files, main.js among them, at the root of a file system.
func Files() fs.FS {
	files, err := fs.Sub(dist, "dist")
	if err != nil {
		panic(err) // The name is valid: it is the one above.
	}
	return files
}
