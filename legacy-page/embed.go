// Package legacypage holds the example page, as "jsbridge demo" serves it. Like
// the pages it stands for, it knows nothing of jsbridge but window.__mcpTools.
package legacypage

import "embed"

// Files are the page's files.
//
//go:embed *.html
var Files embed.FS
