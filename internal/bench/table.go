package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
)

// A report is what a run found, to be written as text or as Markdown.
type report struct {
	facts    []string // name: value
	tables   []table
	verdicts []verdict
}

// A table has a title, a line of heads, rows and sentences below.
type table struct {
	title string
	heads []string
	rows  [][]string
	notes []string
}

// A verdict is one target with what was measured.
type verdict struct {
	met            bool
	target, figure string
}

func (v verdict) word() string {
	if v.met {
		return "met"
	}
	return "missed"
}

func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }
func (t *table) note(format string, args ...any) {
	t.notes = append(t.notes, fmt.Sprintf(format, args...))
}

// write writes text in columns.
func (r *report) write(w *bytes.Buffer) {
	for _, f := range r.facts {
		fmt.Fprintln(w, f)
	}
	for _, t := range r.tables {
		fmt.Fprintf(w, "\n%s\n", t.title)
		columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
		for _, row := range append([][]string{t.heads}, t.rows...) {
			fmt.Fprintln(columns, strings.Join(row, "\t")+"\t")
		}
		_ = columns.Flush() // w is a buffer
		for _, n := range t.notes {
			fmt.Fprintln(w, n)
		}
	}
	if len(r.verdicts) > 0 {
		fmt.Fprintln(w)
	}
	for _, v := range r.verdicts {
		fmt.Fprintf(w, "%s: %s: %s\n", v.word(), v.target, v.figure)
	}
}

// writeMarkdown writes the same, the targets first.
func (r *report) writeMarkdown(w io.Writer) {
	for _, f := range r.facts {
		fmt.Fprintf(w, "* %s\n", f)
	}
	tables := r.tables
	if len(r.verdicts) > 0 {
		targets := table{title: "Targets", heads: []string{"target", "measured", ""}}
		for _, v := range r.verdicts {
			targets.row(v.target, v.figure, v.word())
		}
		tables = append([]table{targets}, tables...)
	}
	for _, t := range tables {
		fmt.Fprintf(w, "\n### %s\n\n", t.title)
		fmt.Fprintf(w, "| %s |\n|%s\n", strings.Join(t.heads, " | "), strings.Repeat("---|", len(t.heads)))
		for _, row := range t.rows {
			fmt.Fprintf(w, "| %s |\n", strings.Join(row, " | "))
		}
		if len(t.notes) > 0 {
			fmt.Fprintf(w, "\n%s\n", strings.Join(t.notes, " "))
		}
	}
}

// The lines between which a Markdown file has the figures.
const (
	figuresBegin = "<!-- figures of make bench: begin -->"
	figuresEnd   = "<!-- figures of make bench: end -->"
)

// aroundFigures gives what a file has before the figures and after them.
func aroundFigures(file string) (before, after []byte, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, err
	}
	before, rest, begins := bytes.Cut(text, []byte(figuresBegin+"\n"))
	_, after, ends := bytes.Cut(rest, []byte(figuresEnd+"\n"))
	if !begins || !ends {
		return nil, nil, fmt.Errorf("%s lacks the lines %q and %q", file, figuresBegin, figuresEnd)
	}
	return before, after, nil
}

// replaceFigures writes the report between the lines of a Markdown file.
func (r *report) replaceFigures(file string) error {
	before, after, err := aroundFigures(file)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	b.Write(before)
	fmt.Fprintf(&b, "%s\n\n", figuresBegin)
	r.writeMarkdown(&b)
	fmt.Fprintf(&b, "\n%s\n", figuresEnd)
	b.Write(after)
	return os.WriteFile(file, b.Bytes(), 0o644)
}
