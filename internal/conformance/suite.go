package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A suite is the installed conformance suite.
type suite struct {
	node string // Node 22 or newer, which the suite needs
	dir  string
}

// findSuite looks where "npm ci" puts it, beside this program's source.
func findSuite(ctx context.Context) (suite, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", "jsbridge/internal/conformance").Output()
	if err != nil {
		return suite{}, fmt.Errorf("looking for the suite: %w", err)
	}
	modules := filepath.Join(string(bytes.TrimSpace(out)), "node_modules")
	s := suite{dir: filepath.Join(modules, "@modelcontextprotocol", "conformance")}
	if _, err := os.Stat(s.dir); err != nil {
		return suite{}, fmt.Errorf("the suite is not installed (%w); run: make conformance", err)
	}
	// Each platform's Node is a package of its own, and npm 10 links none of
	// them. Where there is none, the machine's may do.
	s.node = "node"
	if own, _ := filepath.Glob(filepath.Join(modules, "node-*", "bin", "node")); len(own) > 0 {
		s.node = own[0]
	}
	if out, err := exec.CommandContext(ctx, s.node, "-p", "Number(process.versions.node.split('.')[0]) >= 22").Output(); err != nil {
		return suite{}, fmt.Errorf("starting Node: %w", err)
	} else if string(bytes.TrimSpace(out)) != "true" {
		return suite{}, errors.New("the suite needs Node 22 or newer")
	}
	return s, nil
}

// A check is one of the suite's, as it reports it.
type check struct {
	ID           string
	Status       string // SUCCESS, FAILURE, WARNING, SKIPPED or INFO
	ErrorMessage string
}

// results are a run's checks by scenario.
type results map[string][]check

// run runs what a revision requires against url, and keeps its reports in dir.
func (s suite) run(ctx context.Context, revision, url, dir string) (results, error) {
	cmd := exec.CommandContext(ctx, s.node, filepath.Join(s.dir, "dist", "index.js"), "server",
		"--url", url, "--requirements", revision, "-o", dir)
	out, err := cmd.CombinedOutput()
	// It ends with 1 for a failed check as for its own failure.
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return nil, fmt.Errorf("starting the suite: %w", err)
	}
	if !bytes.Contains(out, []byte("=== SUMMARY ===")) {
		return nil, fmt.Errorf("the suite did not get to its end: %w\n%s", err, out[max(0, len(out)-4000):])
	}
	return readResults(dir)
}

var reportName = regexp.MustCompile(`^server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z$`)

// readResults reads the folders that the suite writes, one for each scenario.
func readResults(dir string) (results, error) {
	found := make(results)
	reports, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, r := range reports {
		m := reportName.FindStringSubmatch(r.Name())
		if m == nil {
			return nil, fmt.Errorf("a report named %q: what scenario is that?", r.Name())
		}
		raw, err := os.ReadFile(filepath.Join(dir, r.Name(), "checks.json"))
		if err != nil {
			return nil, err
		}
		var checks []check
		if err := json.Unmarshal(raw, &checks); err != nil {
			return nil, fmt.Errorf("%s: %w", r.Name(), err)
		}
		found[m[1]] = checks
	}
	return found, nil
}

// scored lists the scenarios that a revision requires of a server.
func (s suite) scored(revision string) ([]string, error) {
	raw, err := os.ReadFile(filepath.Join(s.dir, "requirements", revision+".yaml"))
	if err != nil {
		return nil, err
	}
	names := listOf(string(raw), "server")
	if len(names) == 0 {
		return nil, fmt.Errorf("the suite requires nothing for %s", revision)
	}
	return names, nil
}

// listOf gives the plain entries of a YAML file's top-level list of that name.
func listOf(yaml, key string) []string {
	lines := strings.Split(yaml, "\n")
	start := slices.Index(lines, key+":")
	if start < 0 {
		return nil
	}
	var entries []string
	for _, l := range lines[start+1:] {
		entry, ok := strings.CutPrefix(strings.TrimSpace(l), "- ")
		if !ok {
			break
		}
		entries = append(entries, entry)
	}
	return entries
}
