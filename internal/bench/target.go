package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Names of the targets.
const (
	jsbridge = "jsbridge"
	floor    = "floor"
	bare     = "bare"
	peer     = "peer"
)

// A field is what is compared, and how it is started.
type field struct {
	binary string // jsbridge's
	peer   string // see peerVariable; "" without one
}

// names are the targets in the order in which they take turns: jsbridge first, the
// given ones, and the peer, if there is one.
func (f field) names(yardsticks ...string) []string {
	names := append([]string{jsbridge}, yardsticks...)
	if f.peer != "" {
		names = append(names, peer)
	}
	return names
}

// inTurn has another one first in each round, so that none is always measured after
// the same other.
func inTurn[T any](all []T, round int) []T {
	first := round % len(all)
	return slices.Concat(all[first:], all[:first])
}

// start starts a server on a port of localhost; 0 takes a free one. It does not
// wait until it serves.
func (f field) start(c *crew, name string, port int) (*process, error) {
	switch name {
	case jsbridge:
		return c.start(name, f.binary, "", "--port", strconv.Itoa(port), "--state", "")
	case peer:
		return c.startPeer(f.peer, port)
	}
	return c.start(name, "", name, strconv.Itoa(port))
}

// A target is one server with its pages.
type target struct {
	name   string
	server *process
	pages  []*process
	endpoint
	tool string // the name to call the page's tool by
}

// launch starts a server and opens a session, where there are any.
func (f field) launch(c *crew, name string) (*target, error) {
	t := &target{name: name, tool: toolName}
	var err error
	if name == peer {
		t.server, t.host, err = f.servingPeer(c)
	} else if t.server, err = f.start(c, name, 0); err == nil {
		var base string
		base, err = t.server.address(c.ctx)
		t.host = strings.TrimPrefix(base, "http://")
	}
	if err == nil && name != floor {
		err = t.initialize(c.ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return t, nil
}

// open is launch with the page that has the one tool.
func (f field) open(c *crew, name string) (*target, error) {
	t, err := f.launch(c, name)
	if err == nil {
		err = t.join(c, "bench", 0)
	}
	if err == nil && (name == jsbridge || name == peer) { // a yardstick's calls wait for its page
		err = t.awaitTool(c.ctx)
	}
	return t, err
}

// openAll opens the targets in turn.
func (f field) openAll(c *crew, names []string) ([]*target, error) {
	var all []*target
	for _, name := range names {
		t, err := f.open(c, name)
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}

// join brings a page in under a name: the page that has the one tool or, when a
// number is given, one with so many. Jsbridge's joins the session's own tenant; a
// peer's is a root connection that speaks what older pages do.
func (t *target) join(c *crew, name string, tools int) error {
	query, form := "", pageV1
	switch t.name {
	case jsbridge:
		tenant, err := t.connectString(c.ctx)
		if err != nil {
			return err
		}
		instance := make([]byte, 16)
		_, _ = rand.Read(instance) // never fails
		query = "?tenant=" + tenant + "&v=1&instance=" + hex.EncodeToString(instance)
	case peer:
		query, form = "?tenant="+name, pageOld
	}
	p, err := c.start("the page "+name+" of "+t.name, "", rolePage, "ws://"+t.host+"/ws"+query, form, name, strconv.Itoa(tools))
	t.pages = append(t.pages, p)
	return err
}

// stop ends the pages, then the server.
func (t *target) stop() {
	for _, p := range t.pages {
		p.stop()
	}
	t.server.stop()
}

var tenantInSnippet = regexp.MustCompile(`tenant=([0-9A-Za-z-]+)`)

// connectString is what a page joins this session by.
func (t *target) connectString(ctx context.Context) (string, error) {
	var r callResult
	if err := t.ask(ctx, "tools/call", `{"name":"get_embed_snippet","arguments":{}}`, &r); err != nil {
		return "", err
	}
	text, err := r.text()
	if err != nil {
		return "", err
	}
	m := tenantInSnippet.FindStringSubmatch(text)
	if m == nil {
		return "", fmt.Errorf("the embed snippet names no tenant: %s", text)
	}
	return m[1], nil
}

type listedTool struct{ Name, Description string }

// list reads the whole list.
func (e endpoint) list(ctx context.Context) ([]json.RawMessage, error) {
	var all []json.RawMessage
	for params := "{}"; ; {
		var page struct {
			Tools      []json.RawMessage
			NextCursor string
		}
		if err := e.ask(ctx, "tools/list", params, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Tools...)
		if page.NextCursor == "" {
			return all, nil
		}
		cursor, err := json.Marshal(page.NextCursor)
		if err != nil {
			return nil, err
		}
		params = fmt.Sprintf(`{"cursor":%s}`, cursor)
	}
}

// pageTool finds the page's tool in the list; nil means it is not there.
func (t *target) pageTool(ctx context.Context) (*listedTool, error) {
	list, err := t.list(ctx)
	if err != nil {
		return nil, err
	}
	for _, raw := range list {
		var tool listedTool
		if err := json.Unmarshal(raw, &tool); err != nil {
			return nil, err
		}
		if strings.HasSuffix(tool.Name, "__"+toolName) {
			return &tool, nil
		}
	}
	return nil, nil
}

// awaitTool waits for the page's tool and keeps its published name.
func (t *target) awaitTool(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("tools/list did not show the page's tool within %s", patience))
	defer cancel()
	for {
		tool, err := t.pageTool(ctx)
		if err != nil {
			return err
		}
		if tool != nil {
			t.tool = tool.Name
			return nil
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}

// pause waits, unless ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
