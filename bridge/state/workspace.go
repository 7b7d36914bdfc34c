package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// MaxWorkspaces is how many workspaces are kept, and of bearer tokens as many again. Beyond it the one that was
// opened longest ago is forgotten.
const MaxWorkspaces = 1000

// workspace is one named workspace, whose tenant stays the same.
type workspace struct {
	Key    string `json:"key"`
	Tenant string `json:"tenant"` // a UUID, the capability of its pages
	At     string `json:"at"`     // when it was last opened, RFC 3339, by the day
}

// keyForm is a name, or the hash of a bearer token, which no name looks like.
var keyForm = regexp.MustCompile(`^([A-Za-z0-9_-]{1,64}|bearer:[0-9a-f]{64})$`)

// ErrKey is returned for a key that names no workspace.
var ErrKey = errors.New("a workspace's name is 1 to 64 letters, digits, - and _")

// decodeWorkspaces reads the member "workspaces". What is no workspace is an
// error: forgetting one would leave its pages behind.
func decodeWorkspaces(raw json.RawMessage) ([]workspace, error) {
	if raw == nil {
		return nil, nil
	}
	var spaces []workspace
	if err := json.Unmarshal(raw, &spaces); err != nil {
		return nil, err
	}
	keys, tenants := make(map[string]bool), make(map[string]bool)
	for i, w := range spaces {
		id, err := uuid.Parse(w.Tenant)
		if err != nil || id.String() != w.Tenant || !keyForm.MatchString(w.Key) || keys[w.Key] || tenants[w.Tenant] {
			return nil, fmt.Errorf("%d is none, or is there twice", i)
		}
		keys[w.Key], tenants[w.Tenant] = true, true
	}
	return spaces, nil
}

// Workspace gives the tenant of a named workspace, and makes one the first time.
// The tenant is good also when the error says that it could not be written: it
// then lives as long as this process, or for good once writing works again. The error is [ErrKey] without a tenant.
func (f *File) Workspace(key string) (tenant string, err error) {
	if !keyForm.MatchString(key) {
		return "", ErrKey
	}
	today := time.Now().UTC().Format(time.DateOnly)
	edit := func(c contents) (contents, bool, error) {
		next, changed := c.opened(key, today)
		return next, changed, nil
	}
	if w, ok := f.workspace(key); ok && w.At == today {
		return w.Tenant, nil
	}
	if _, err = f.change(edit); err != nil {
		f.writing.Lock()
		next, _, _ := edit(f.current)
		f.remember(next)
		f.postponeLocked(next.spaces[len(next.spaces)-1])
		f.writing.Unlock()
	}
	w, _ := f.workspace(key)
	return w.Tenant, err
}

// postponeLocked notes a workspace that could not be written. f.writing must be
// held.
func (f *File) postponeLocked(w workspace) {
	if len(f.unwritten) == 0 {
		f.retry = time.Now().Add(retryWrite)
	}
	f.unwritten = slices.DeleteFunc(f.unwritten, func(u workspace) bool { return u.Key == w.Key })
	f.unwritten = append(f.unwritten, w)
	if over := len(f.unwritten) - 2*MaxWorkspaces; over > 0 { // no more are kept in all
		f.unwritten = slices.Delete(f.unwritten, 0, over)
	}
}

// withUnwritten adds workspaces that could not be written. What the file says of one
// that it has counts: another process may have it in use.
func (c contents) withUnwritten(all []workspace) contents {
	for _, w := range all {
		i := slices.IndexFunc(c.spaces, func(known workspace) bool { return known.Key == w.Key || known.Tenant == w.Tenant })
		switch {
		case i < 0:
			c.spaces = append(c.withRoomFor(w.Key), w)
		case c.spaces[i].Key == w.Key && c.spaces[i].Tenant == w.Tenant && c.spaces[i].At < w.At:
			c.spaces = append(slices.Delete(slices.Clone(c.spaces), i, i+1), w)
		}
	}
	return c
}

// IsWorkspace tells whether a tenant is that of a workspace.
func (f *File) IsWorkspace(tenant string) bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return slices.ContainsFunc(f.current.spaces, func(w workspace) bool { return w.Tenant == tenant })
}

func (f *File) workspace(key string) (workspace, bool) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	i := slices.IndexFunc(f.current.spaces, func(w workspace) bool { return w.Key == key })
	if i < 0 {
		return workspace{}, false
	}
	return f.current.spaces[i], true
}

// withRoomFor makes room for another workspace. Those of bearer tokens, which some
// clients change every hour, push out each other only. They are in order of opening.
func (c contents) withRoomFor(key string) []workspace {
	isToken := func(key string) bool { return strings.HasPrefix(key, "bearer:") }
	alike := func(w workspace) bool { return isToken(w.Key) == isToken(key) }
	n := 0
	for _, w := range c.spaces {
		if alike(w) {
			n++
		}
	}
	if n < MaxWorkspaces {
		return slices.Clone(c.spaces)
	}
	i := slices.IndexFunc(c.spaces, alike)
	return slices.Delete(slices.Clone(c.spaces), i, i+1)
}

// opened notes that a workspace was opened that day.
func (c contents) opened(key, day string) (contents, bool) {
	i := slices.IndexFunc(c.spaces, func(w workspace) bool { return w.Key == key })
	if i >= 0 && c.spaces[i].At == day {
		return c, false
	}
	w := workspace{Key: key, Tenant: uuid.NewString()}
	spaces := slices.Clone(c.spaces)
	if i >= 0 {
		w = spaces[i]
		spaces = slices.Delete(spaces, i, i+1)
	} else {
		spaces = c.withRoomFor(key)
	}
	w.At = day
	c.spaces = append(spaces, w)
	return c, true
}

// Workspaces gives the tenants of all workspaces by their keys.
func (f *File) Workspaces() map[string]string {
	f.mu.RLock()
	defer f.mu.RUnlock()
	all := make(map[string]string, len(f.current.spaces))
	for _, w := range f.current.spaces {
		all[w.Key] = w.Tenant
	}
	return all
}
