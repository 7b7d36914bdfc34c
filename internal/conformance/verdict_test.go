package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestParseBaseline(t *testing.T) {
	for _, tt := range []struct{ name, yaml, want, err string }{
		{"none", "# nothing is accepted\nserver:\n", "", ""},
		{"a comment above", "server:\n  # no tasks\n  - a\n  - b:c\n", "a=no tasks b:c=no tasks", ""},
		{"two lines of it", "server:\n  # no\n  # tasks\n  - a\n", "a=no tasks", ""},
		{"one for each", "server:\n  # one\n  - a\n  # two\n  - b\n", "a=one b=two", ""},
		{"beside", "server:\n  # one\n  - a # its own\n  - b\n", "a=its own b=one", ""},
		{"no reason", "server:\n  - a\n", "", "line 2: a has no comment"},
		{"a head is no reason", "# what may fail\nserver:\n  - a\n", "", "line 3: a has no comment"},
		{"an empty line ends a reason", "server:\n  # one\n  - a\n\n  - b\n", "", "line 5: b has no comment"},
		{"a space after the colon", "server:\n  - a: b # why\n", "", "line 2"},
		{"another list", "client:\n  - a # why\n", "", "line 1"},
		{"no list", "- a # why\n", "", "line 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			all, err := parseBaseline(tt.yaml)
			if err != nil {
				if tt.err == "" || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("error %v, want %q", err, tt.err)
				}
				return
			}
			var got []string
			for _, a := range all {
				got = append(got, a.entry+"="+a.reason)
			}
			if tt.err != "" || strings.Join(got, " ") != tt.want {
				t.Errorf("got %q, want %q and error %q", got, tt.want, tt.err)
			}
		})
	}
}

// TestBaselineFile asserts that each entry of the real one has its reason.
func TestBaselineFile(t *testing.T) {
	all, err := baseline(true)
	if err != nil || len(all) == 0 {
		t.Errorf("%d entries, error %v", len(all), err)
	}
}

func TestVerdict(t *testing.T) {
	pass, fail := check{ID: "p", Status: "SUCCESS"}, check{ID: "f", Status: "FAILURE", ErrorMessage: "it\nfailed"}
	warn, skip, info := check{ID: "w", Status: "WARNING"}, check{ID: "s", Status: "SKIPPED"}, check{ID: "i", Status: "INFO"}
	strict, lenient := revision{"old", true}, revision{"new", false}
	for _, tt := range []struct {
		name     string
		r        revision
		res      results
		baseline string
		first    string   // line
		problems []string // parts of each
	}{
		{"all pass", strict, results{"need": {pass, pass, info}, "other": {pass, skip}}, "", "old: 3 passed, 0 failed", nil},
		{"all pass, scored", lenient, results{"need": {pass}}, "", "new: 1 passed, 0 failed (scored: all pass)", nil},
		{"accepted", lenient, results{"need": {pass}, "other": {fail, fail}}, "other", "new: 1 passed, 2 failed (scored: all pass)", nil},
		{"one check accepted", lenient, results{"need": {pass}, "other": {fail}}, "other:f", "new: 1 passed, 1 failed (scored: all pass)", nil},
		{"not accepted", lenient, results{"need": {pass}, "other": {fail}}, "", "new: 1 passed, 1 failed (scored: all pass)", []string{"failure other:f: it failed"}},
		{"another check accepted", lenient, results{"need": {pass}, "other": {fail}}, "other:g", "new: 1 passed, 1 failed (scored: all pass)",
			[]string{"failure other:f", "other:g does not fail any more"}},
		{"scored ones must not", lenient, results{"need": {pass, fail, fail}}, "need", "new: 1 passed, 2 failed (scored, but failing: need)",
			[]string{"failure need:f", "failure need:f", "need does not fail any more"}},
		{"nor any of the strict", strict, results{"need": {pass}, "other": {fail}}, "other", "old: 1 passed, 1 failed",
			[]string{"failure other:f", "other does not fail any more"}},
		{"not run", lenient, results{"other": {pass}}, "", "new: 1 passed, 0 failed (scored, but failing: need)", []string{"need was not run"}},
		{"stale", strict, results{"need": {pass}, "other": {pass}}, "other", "old: 2 passed, 0 failed", []string{"other does not fail any more"}},
		{"a warning", strict, results{"need": {pass, warn}}, "", "old: 1 passed, 0 failed", []string{"warning need:w"}},
		{"a warning accepted", strict, results{"need": {pass, warn}}, "need:w", "old: 1 passed, 0 failed", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := &verdict{}
			if tt.baseline != "" {
				v.accepted = []*acceptance{{entry: tt.baseline, reason: "why"}}
			}
			v.add(tt.r, []string{"need"}, tt.res)
			var out bytes.Buffer
			if ok := v.write(&out); ok != (len(tt.problems) == 0) {
				t.Errorf("verdict %t:\n%s", ok, &out)
			}
			if first, _, _ := strings.Cut(out.String(), "\n"); first != tt.first {
				t.Errorf("got %q, want %q", first, tt.first)
			}
			if !slices.EqualFunc(v.problems, tt.problems, strings.Contains) {
				t.Errorf("problems %q, want %q", v.problems, tt.problems)
			}
			if tt.problems == nil && tt.baseline != "" && !strings.Contains(out.String(), "accepted") {
				t.Errorf("no word of what was accepted:\n%s", &out)
			}
		})
	}
}

func TestReadResults(t *testing.T) {
	dir := t.TempDir()
	for name, checks := range map[string]string{
		"server-ping-2026-01-02T03-04-05-678Z":                `[{"id":"ping","status":"SUCCESS","details":{}}]`,
		"server-json-schema-2020-12-2026-01-02T03-04-05-678Z": `[{"id":"x","status":"FAILURE","errorMessage":"no"}]`,
	} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, "checks.json"), []byte(checks), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := readResults(dir)
	if err != nil || len(got) != 2 || got["ping"][0].Status != "SUCCESS" || got["json-schema-2020-12"][0].ErrorMessage != "no" {
		t.Errorf("got %v, error %v", got, err)
	}
	if err := os.Mkdir(filepath.Join(dir, "something"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got, err := readResults(dir); err == nil {
		t.Errorf("a strange report is no error: %v", got)
	}
}

func TestListOf(t *testing.T) {
	const yaml = "# head\nserver:\n  - one\n  - two\n\nclient:\n  - three\nnot_scored:\n  - scenario: four\n"
	if got := listOf(yaml, "server"); !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("server: %q", got)
	}
	if got := listOf(yaml, "none"); got != nil {
		t.Errorf("none: %q", got)
	}
}
