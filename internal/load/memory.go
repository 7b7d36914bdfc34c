package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// memory is what the server holds, in bytes.
type memory struct {
	heap     int64 // in use by what is reachable, after garbage collection
	stacks   int64 // of goroutines
	resident int64 // RSS: the program, the garbage between two collections, what Go keeps for later; 0 where there is no /proc
}

func (m memory) live() int64 { return m.heap + m.stacks }

func (m memory) minus(o memory) memory {
	return memory{m.heap - o.heap, m.stacks - o.stacks, m.resident - o.resident}
}

// per divides by a number of pages or sessions.
func (m memory) per(n int) memory {
	return memory{m.heap / int64(n), m.stacks / int64(n), m.resident / int64(n)}
}

// settleTime lets connections that were closed go, and goroutines that have ended.
const settleTime = time.Second

// collections is how often garbage is collected before the memory is read: pools survive
// the first time, and a stack that has grown for one call is halved each time.
const collections = 4

// readMemory has the server collect its garbage and reads what is left.
func readMemory(ctx context.Context, base string, pid int) (memory, error) {
	if err := pause(ctx, settleTime); err != nil {
		return memory{}, err
	}
	var m memory
	for range collections {
		var err error
		if m, err = readProfile(ctx, base); err != nil {
			return memory{}, err
		}
	}
	m.resident = residentMemory(pid)
	return m, nil
}

// readProfile reads the figures at the end of a heap profile.
func readProfile(ctx context.Context, base string) (m memory, err error) {
	err = fetch(ctx, base+"/debug/pprof/heap?gc=1&debug=1", func(text io.Reader) error {
		m, err = parseProfile(text)
		return err
	})
	return m, err
}

// saveProfiles saves what the heap is made of, and what the goroutines do, for go tool
// pprof.
func saveProfiles(ctx context.Context, base, dir, name string) error {
	for kind, query := range map[string]string{"heap": "?gc=1", "goroutine": ""} {
		err := fetch(ctx, base+"/debug/pprof/"+kind+query, func(profile io.Reader) error {
			b, err := io.ReadAll(profile)
			if err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(dir, name+"-"+kind+".pb.gz"), b, 0o644)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// fetch gets something of the server's. It keeps no connection, which would be part of
// the next figure.
func fetch(ctx context.Context, url string, read func(io.Reader) error) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", url, res.Status)
	}
	return read(res.Body)
}

// parseProfile finds "# HeapAlloc = n" and "# Stack = n / n".
func parseProfile(text io.Reader) (m memory, err error) {
	found := 0
	lines := bufio.NewScanner(text)
	lines.Buffer(nil, 1<<20) // "# PauseNs = [...]" and stacks are long
	for lines.Scan() {
		for name, into := range map[string]*int64{"# HeapAlloc = ": &m.heap, "# Stack = ": &m.stacks} {
			if rest, ok := strings.CutPrefix(lines.Text(), name); ok {
				number, _, _ := strings.Cut(rest, " ")
				if *into, err = strconv.ParseInt(number, 10, 64); err != nil {
					return m, fmt.Errorf("the heap profile has %q: %w", lines.Text(), err)
				}
				found++
			}
		}
	}
	if err := lines.Err(); err != nil {
		return m, err
	}
	if found != 2 {
		return m, fmt.Errorf("the heap profile lacks what was looked for")
	}
	return m, nil
}

// residentMemory is a process's RSS; 0 where there is no /proc.
func residentMemory(pid int) int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if size, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kilobytes, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(size), "kB")), 10, 64)
			if err != nil {
				return 0
			}
			return kilobytes << 10
		}
	}
	return 0
}
