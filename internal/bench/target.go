package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Names of the targets, in the order in which they take turns.
const (
	jsbridge = "jsbridge"
	floor    = "floor"
	bare     = "bare"
)

// A target is one server with its page.
type target struct {
	name   string
	server *process
	page   *process
	endpoint
	tool string // the name to call the page's tool by
}

// assemble starts the servers and their pages. The first is jsbridge.
func assemble(c *crew, binary string) ([]*target, error) {
	var targets []*target
	for _, name := range []string{jsbridge, floor, bare} {
		t := &target{name: name, tool: toolName}
		var err error
		if name == jsbridge {
			t.server, err = c.start(name, binary, "", "--port", "0", "--state", "")
		} else {
			t.server, err = c.start(name, "", name)
		}
		if err != nil {
			return nil, err
		}
		base, err := t.server.address(c.ctx)
		if err != nil {
			return nil, err
		}
		t.host = strings.TrimPrefix(base, "http://")
		if err := t.connect(c); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		targets = append(targets, t)
	}
	return targets, nil
}

// connect opens the session, where there are any, and brings the page in.
func (t *target) connect(c *crew) error {
	query := ""
	if t.name != floor {
		if err := t.initialize(c.ctx); err != nil {
			return err
		}
	}
	if t.name == jsbridge {
		tenant, err := t.connectString(c.ctx)
		if err != nil {
			return err
		}
		instance := make([]byte, 16)
		_, _ = rand.Read(instance) // never fails
		query = "?tenant=" + tenant + "&v=1&instance=" + hex.EncodeToString(instance)
	}
	var err error
	t.page, err = c.start("the page of "+t.name, "", rolePage, "ws://"+t.host+"/ws"+query)
	if err != nil || t.name != jsbridge {
		return err // a yardstick's calls wait for its page
	}
	return t.awaitTool(c.ctx)
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

// pageTool finds the page's tool in the list; nil means it is not there.
func (t *target) pageTool(ctx context.Context) (*listedTool, error) {
	var list struct{ Tools []listedTool }
	if err := t.ask(ctx, "tools/list", `{}`, &list); err != nil {
		return nil, err
	}
	for _, tool := range list.Tools {
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
