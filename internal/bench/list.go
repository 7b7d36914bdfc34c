package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// roleList serves the tools of a file with the SDK.
const roleList = "list"

// listPages is how many pages have the tools: one may have 512 at most.
const listPages = 2

// lists is what was measured of a long tool list.
type lists struct {
	tools   int // of the list
	samples map[string][]sample
}

// measureLists has one caller read a list of so many tools in whole, again and again:
// jsbridge's, which is its own tools and those of pages; the same list served by the
// SDK alone; and a peer's, which is of as many.
func measureLists(c *crew, f field, o options, progress io.Writer) (*lists, error) {
	l := &lists{tools: o.listed, samples: make(map[string][]sample)}
	var targets []*target
	for _, name := range f.names() {
		t, err := f.launch(c, name)
		if err == nil {
			err = t.fill(c, o.listed)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		targets = append(targets, t)
	}
	same, err := listAgain(c, targets[0])
	if err != nil {
		return nil, fmt.Errorf("the same list by the SDK: %w", err)
	}
	targets = append(targets, same)
	for round := range o.rounds {
		fmt.Fprintf(progress, "bench: a list of %d tools, round %d of %d\n", o.listed, round+1, o.rounds)
		for _, t := range inTurn(targets, round) {
			s, err := measure(c.ctx, t, 1, o.duration, listing(o.listed))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", t.name, err)
			}
			l.samples[t.name] = append(l.samples[t.name], s)
		}
	}
	for _, t := range targets {
		t.stop()
	}
	return l, nil
}

// fill brings pages in with as many tools as are missing in the list, and waits for
// them.
func (t *target) fill(c *crew, want int) error {
	list, err := t.list(c.ctx)
	if err != nil {
		return err
	}
	missing := want - len(list)
	if missing < listPages {
		return fmt.Errorf("the list has %d tools before any page", len(list))
	}
	for i := range listPages {
		tools := missing / listPages
		if i == 0 {
			tools += missing % listPages
		}
		if err := t.join(c, fmt.Sprintf("list-%c", 'a'+i), tools); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeoutCause(c.ctx, peerPatience, fmt.Errorf("tools/list did not show %d tools within %s", want, peerPatience))
	defer cancel()
	for {
		if list, err = t.list(ctx); err != nil {
			return err
		}
		if len(list) >= want {
			return nil
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return fmt.Errorf("%w: there are %d", err, len(list))
		}
	}
}

// listAgain serves the list that a target shows, as it is, by the SDK alone.
func listAgain(c *crew, of *target) (*target, error) {
	tools, err := of.list(c.ctx)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(tools)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(c.dir, "list.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return nil, err
	}
	t := &target{name: bare}
	if t.server, err = c.start("the same list", "", roleList, file); err != nil {
		return nil, err
	}
	base, err := t.server.address(c.ctx)
	if err != nil {
		return nil, err
	}
	t.host = strings.TrimPrefix(base, "http://")
	if err := t.initialize(c.ctx); err != nil {
		return nil, err
	}
	again, err := t.list(c.ctx)
	if err == nil && len(again) != len(tools) {
		err = fmt.Errorf("it shows %d tools of %d", len(again), len(tools))
	}
	return t, err
}

// listing reads the whole list, page by page, and wants so many tools.
func listing(want int) exchange {
	return func(c *caller, id int) (begun, ended time.Time, err error) {
		begun = time.Now()
		tools := 0
		for params := "{}"; params != ""; {
			c.msg = fmt.Appendf(c.msg[:0], `{"jsonrpc":"2.0","id":%d,"method":"tools/list","params":%s}`, id, params)
			answer, _, err := c.post(c.msg)
			ended = time.Now()
			if err != nil {
				return begun, ended, err
			}
			tools += bytes.Count(answer, []byte(`"inputSchema":`)) // each tool's own
			if params, err = nextPage(answer); err != nil {
				return begun, ended, err
			}
		}
		if tools != want {
			err = fmt.Errorf("wrong answer: a list of %d tools, want %d", tools, want)
		}
		return begun, ended, err
	}
}

// nextPage are the params that ask for what comes after this answer; "" after the
// last. The list itself is not decoded, or that would be what is measured.
func nextPage(answer []byte) (string, error) {
	if !bytes.Contains(answer, []byte(`"tools":[`)) {
		return "", fmt.Errorf("wrong answer: %.200q", answer)
	}
	_, rest, found := bytes.Cut(answer, []byte(`"nextCursor":`))
	if !found {
		return "", nil
	}
	var cursor string
	if err := json.NewDecoder(bytes.NewReader(rest)).Decode(&cursor); err != nil {
		return "", err
	}
	if cursor == "" {
		return "", nil
	}
	quoted, err := json.Marshal(cursor)
	return fmt.Sprintf(`{"cursor":%s}`, quoted), err
}

// serveList serves the tools with the SDK and nothing else.
func serveList(out io.Writer, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var tools []*mcp.Tool
	if err := json.Unmarshal(text, &tools); err != nil {
		return err
	}
	server := mcp.NewServer(&mcp.Implementation{Name: bare, Version: "1"}, nil)
	for _, t := range tools {
		server.AddTool(t, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return nil, errors.New("this tool is only listed")
		})
	}
	return serve(out, "0", newHop(), mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
}
