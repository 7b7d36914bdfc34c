package main

import (
	"fmt"
	"io"
	"strings"
)

// The steps, which are the table's columns but for the last, that shows only when
// it fails. What a client has no way to do has no cell.
const (
	stepVersion  = "version"
	stepConnect  = "connect"
	stepTools    = "tools"
	stepBuiltins = "built-ins"
	stepPageTool = "page tool"
	stepIsError  = "isError"
	stepChanged  = "list_changed"
	stepPrompt   = "prompt"
	stepResource = "resource"
	stepClose    = "close"
)

var columns = []struct{ step, title string }{
	{stepVersion, "version"}, {stepConnect, "protocol"}, {stepTools, "tools listed"}, {stepBuiltins, "built-ins"}, {stepPageTool, "page tool"},
	{stepIsError, "`isError`"}, {stepChanged, "list change"}, {stepPrompt, "prompt"}, {stepResource, "resource"},
}

// A row is what became of one client.
type row struct {
	name   string
	cells  map[string]string // by step
	failed []string
}

func (r *row) done(step, detail string) { r.cells[step] = detail }

func (r *row) fail(step string, err error) {
	r.cells[step] = "**no**"
	r.failed = append(r.failed, fmt.Sprintf("%s, %s: %s", r.name, step, err))
}

// write writes the table, and tells whether everything worked.
func write(w io.Writer, rows []*row) bool {
	var failed []string
	fmt.Fprint(w, "| client |")
	for _, c := range columns {
		fmt.Fprintf(w, " %s |", c.title)
	}
	fmt.Fprintf(w, "\n| --- |%s\n", strings.Repeat(" --- |", len(columns)))
	for _, r := range rows {
		fmt.Fprintf(w, "| %s |", r.name)
		for _, c := range columns {
			cell := r.cells[c.step]
			if cell == "" {
				cell = "–"
			}
			fmt.Fprintf(w, " %s |", strings.NewReplacer("|", `\|`, "\n", " ").Replace(cell))
		}
		fmt.Fprintln(w)
		failed = append(failed, r.failed...)
	}
	for _, f := range failed {
		fmt.Fprintln(w, f)
	}
	return len(failed) == 0
}
