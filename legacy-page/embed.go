// Package legacypage holds the example pages, as "jsbridge demo" serves them.
// hello-world.html knows nothing of jsbridge but window.__mcpTools, like the pages
// it stands for; auto-connect.html connects by itself.
package legacypage

import "embed"

// Files are the pages' files.
//
//go:embed *.html
var Files embed.FS
