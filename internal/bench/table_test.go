package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestReplaceFigures asserts that a run replaces the last one's figures, and nothing
// else, and that a file without a place for them is left alone.
func TestReplaceFigures(t *testing.T) {
	file := filepath.Join(t.TempDir(), "performance.md")
	read := func() string {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := report{facts: []string{"date: today"}, verdicts: []verdict{{true, "fast", "1"}, {false, "small", "2"}},
		tables: []table{{title: "Calls", heads: []string{"a", "b"}, rows: [][]string{{"1", "2"}}, notes: []string{"One.", "Two."}}}}
	write("before\n" + figuresBegin + "\nold\n" + figuresEnd + "\nafter\n")
	want := "before\n" + figuresBegin + "\n\n* date: today\n\n### Targets\n\n| target | measured |  |\n|---|---|---|\n| fast | 1 | met |\n| small | 2 | missed |\n" +
		"\n### Calls\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nOne. Two.\n\n" + figuresEnd + "\nafter\n"
	for range 2 {
		if err := r.replaceFigures(file); err != nil {
			t.Fatal(err)
		}
		if got := read(); got != want {
			t.Errorf("got %s", got)
		}
	}
	write("no place\n")
	if err := r.replaceFigures(file); err == nil || read() != "no place\n" {
		t.Errorf("error %v, file %s", err, read())
	}
}

// TestCheckEcho asserts that only the call's own text counts as its answer.
func TestCheckEcho(t *testing.T) {
	text := []byte(`"caller 1, call 17 all work"`)
	answer := func(id, text string) []byte {
		return []byte(`{"jsonrpc":"2.0","id":` + id + `,"result":{"content":[{"type":"text","text":` + text + `}]}}`)
	}
	for name, tt := range map[string]struct {
		answer []byte
		ok     bool
	}{
		"right":          {answer("17", string(text)), true},
		"another's":      {answer("17", `"caller 1, call 18 all work"`), false},
		"empty":          {answer("17", `""`), false},
		"more than it":   {answer("17", `"caller 1, call 17 all work"," and no play"`), false},
		"another's id":   {answer("18", string(text)), false},
		"text elsewhere": {bytes.Replace(answer("17", `""`), []byte(`"2.0"`), text, 1), false},
	} {
		if err := checkEcho(tt.answer, 17, text); (err == nil) != tt.ok {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// TestNextPage asserts that a list is read to its end, and no answer but a list taken
// for one.
func TestNextPage(t *testing.T) {
	for answer, want := range map[string]string{
		`{"result":{"tools":[]}}`:                     "",
		`{"result":{"tools":[],"nextCursor":""}}`:     "",
		`{"result":{"nextCursor":"a\"b","tools":[]}}`: `{"cursor":"a\"b"}`,
	} {
		if got, err := nextPage([]byte(answer)); err != nil || got != want {
			t.Errorf("%s: %s, error %v", answer, got, err)
		}
	}
	for _, answer := range []string{`{"error":{}}`, `{"result":{"tools":[],"nextCursor":7}}`} {
		if _, err := nextPage([]byte(answer)); err == nil {
			t.Errorf("%s passed", answer)
		}
	}
}

// TestBackToIdle asserts that memory which stays away is not taken for back.
func TestBackToIdle(t *testing.T) {
	own := residentMemory(os.Getpid())
	if own == 0 {
		t.Skip("memory is not known here")
	}
	home := footprint{idle: own}
	if err := home.watch(t.Context(), os.Getpid(), time.Minute); err != nil || !home.back || home.settled == 0 {
		t.Errorf("error %v: %+v", err, home)
	}
	away := footprint{idle: own / 4}
	if err := away.watch(t.Context(), os.Getpid(), 0); err != nil || away.back || len(back([]footprint{home, away})) != 1 {
		t.Errorf("error %v: %+v", err, away)
	}
}
