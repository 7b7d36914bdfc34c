package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// A revision is one of the protocol's that the suite has a requirement set for.
type revision struct {
	name string
	// strict allows no failed check at all; else the unscored scenarios may
	// fail, if the baseline says why.
	strict bool
}

var revisions = []revision{{"2025-11-25", true}, {"2026-07-28", false}}

// acceptance is a line of the baseline: a scenario, or one check of it
// (scenario:check), that need not pass.
type acceptance struct {
	entry, reason string
	used          bool
}

// parseBaseline reads the suite's own format for expected failures, or rather
// the little of YAML that it takes: a list of the name "server". Each entry has
// a comment with its reason, on its line or above it; one above holds for all
// entries down to the next comment or empty line.
func parseBaseline(yaml string) ([]*acceptance, error) {
	var all []*acceptance
	reason, open := "", false // open: more comment lines may follow
	inList := false
	for n, line := range strings.Split(yaml, "\n") {
		text, comment, _ := strings.Cut(line, "#")
		text, comment = strings.TrimSpace(text), strings.TrimSpace(comment)
		entry, isEntry := strings.CutPrefix(text, "- ")
		switch {
		case text == "" && comment == "":
			reason, open = "", false
		case text == "":
			if !open {
				reason = ""
			}
			reason, open = strings.TrimSpace(reason+" "+comment), true
		case text == "server:" && !inList:
			inList, reason, open = true, "", false
		case isEntry && inList && entry != "" && !strings.ContainsAny(entry, " '\""):
			open = false
			a := &acceptance{entry: entry, reason: reason}
			if comment != "" {
				a.reason = comment
			}
			if a.reason == "" {
				return nil, fmt.Errorf("line %d: %s has no comment that says why", n+1, entry)
			}
			all = append(all, a)
		default:
			return nil, fmt.Errorf("line %d: %q is not understood", n+1, line)
		}
	}
	return all, nil
}

// A verdict is what the runs so far come to.
type verdict struct {
	accepted []*acceptance
	lines    []string
	problems []string // any of them means failure
}

func (v *verdict) problem(format string, args ...any) {
	v.problems = append(v.problems, fmt.Sprintf(format, args...))
}

// judge runs one revision's set and judges it. Some of the suite's checks give
// an answer half a second, so a set that fails is run once more before that
// counts, and what failed is told.
func (v *verdict) judge(ctx context.Context, su suite, r revision, url, dir string, progress io.Writer) error {
	scored, err := su.scored(r.name)
	if err != nil {
		return err
	}
	for attempt := 1; ; attempt++ {
		res, err := su.run(ctx, r.name, url, filepath.Join(dir, fmt.Sprintf("%s-%d", r.name, attempt)))
		if err != nil {
			return err
		}
		next := &verdict{accepted: v.accepted}
		next.add(r, scored, res)
		if len(next.problems) > 0 && attempt == 1 {
			for _, p := range next.problems {
				fmt.Fprintf(progress, "conformance: once more, because %s\n", p)
			}
			continue
		}
		v.lines = append(v.lines, next.lines...)
		v.problems = append(v.problems, next.problems...)
		return nil
	}
}

// add judges the results of one revision. A warning is the suite's word for a
// SHOULD: it is not counted as failed, but needs to be in the baseline as well.
func (v *verdict) add(r revision, scored []string, res results) {
	passed, failed := 0, 0
	var scoredFailures, reasons []string
	accepted := make(map[string][]string) // by reason
	for _, scenario := range slices.Sorted(maps.Keys(res)) {
		required := slices.Contains(scored, scenario)
		for _, c := range res[scenario] {
			switch c.Status {
			case "SUCCESS":
				passed++
				continue
			case "FAILURE":
				failed++
				if required && !slices.Contains(scoredFailures, scenario) {
					scoredFailures = append(scoredFailures, scenario)
				}
			case "WARNING":
			default:
				continue
			}
			if a := v.consider(r, required, scenario, c); a != nil {
				if accepted[a.reason] == nil {
					reasons = append(reasons, a.reason)
				}
				accepted[a.reason] = append(accepted[a.reason], fmt.Sprintf("%s %s:%s", strings.ToLower(c.Status), scenario, c.ID))
			}
		}
	}
	for _, scenario := range scored {
		if len(res[scenario]) == 0 {
			scoredFailures = append(scoredFailures, scenario)
			v.problem("%s: %s was not run", r.name, scenario)
		}
	}
	line := fmt.Sprintf("%s: %d passed, %d failed", r.name, passed, failed)
	if !r.strict && len(scoredFailures) == 0 {
		line += " (scored: all pass)"
	} else if len(scoredFailures) > 0 {
		line += " (scored, but failing: " + strings.Join(scoredFailures, ", ") + ")"
	}
	v.lines = append(v.lines, line)
	for _, reason := range reasons {
		v.lines = append(v.lines, "  accepted: "+reason)
		for _, c := range accepted[reason] {
			v.lines = append(v.lines, "    "+c)
		}
	}
}

// consider judges one check that did not pass: it finds what accepts it, or
// makes it a problem.
func (v *verdict) consider(r revision, required bool, scenario string, c check) *acceptance {
	if c.Status == "WARNING" || !r.strict && !required {
		for _, a := range v.accepted {
			if a.entry == scenario || a.entry == scenario+":"+c.ID {
				a.used = true
				return a
			}
		}
	}
	v.problem("%s: %s %s:%s: %s", r.name, strings.ToLower(c.Status), scenario, c.ID, strings.Join(strings.Fields(c.ErrorMessage), " "))
	return nil
}

// write prints the verdict and says whether it is a good one.
func (v *verdict) write(out io.Writer) bool {
	for _, a := range v.accepted {
		if !a.used {
			v.problem("baseline: %s does not fail any more; take it out", a.entry)
		}
	}
	for _, l := range v.lines {
		fmt.Fprintln(out, l)
	}
	for _, p := range v.problems {
		fmt.Fprintf(out, "NOT OK: %s\n", p)
	}
	return len(v.problems) == 0
}
