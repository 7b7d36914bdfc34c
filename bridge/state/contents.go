package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

const version = 1

// errDamaged is why a file can't be used, as opposed to not being readable.
var errDamaged = errors.New("the state file is damaged")

// contents are what the file holds at one time. They are never changed, only
// replaced.
type contents struct {
	entries []entry
	others  map[string]json.RawMessage // members that this version does not know
	origins []Origin                   // what entries mean: sorted, none twice
	spaces  []workspace                // none twice by key or tenant
	problem string                     // names entries that mean nothing; "" when there are none
}

// entry is an element of "origins". It is written as it was read: it may have
// members, or a kind of origin, that only a later version understands.
type entry struct {
	raw   json.RawMessage
	means Origin // its Origin is "" when it is none that this version knows
}

type originJSON struct {
	Origin string `json:"origin"`
	At     string `json:"at,omitempty"`
}

// decode reads a file. All errors are errDamaged.
func decode(b []byte) (contents, error) {
	damaged := func(format string, args ...any) (contents, error) {
		return contents{}, fmt.Errorf("%w: %w", errDamaged, fmt.Errorf(format, args...))
	}
	if len(b) > MaxFile {
		return damaged("it is larger than %d bytes", MaxFile)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(b, &members); err != nil {
		return damaged("%w", err)
	}
	var v int
	if err := json.Unmarshal(members["version"], &v); err != nil || v != version {
		return damaged("its version is %.20q, and this jsbridge knows %d only", members["version"], version)
	}
	var raws []json.RawMessage
	if raw, ok := members["origins"]; ok {
		if err := json.Unmarshal(raw, &raws); err != nil {
			return damaged("origins: %w", err)
		}
	}
	if len(raws) > MaxOrigins {
		return damaged("it has %d origins, more than %d", len(raws), MaxOrigins)
	}
	spaces, err := decodeWorkspaces(members["workspaces"])
	if err != nil {
		return damaged("workspaces: %w", err)
	}
	delete(members, "version")
	delete(members, "origins")
	delete(members, "workspaces")
	c := contents{others: members, spaces: spaces}
	for i, raw := range raws {
		var o originJSON
		if err := json.Unmarshal(raw, &o); err != nil {
			return damaged("origins[%d]: %w", i, err)
		}
		origin, err := ParseOrigin(o.Origin)
		if err != nil && c.problem == "" {
			c.problem = fmt.Sprintf("an origin in the state file is ignored: %v", err)
		}
		at, _ := time.Parse(time.RFC3339, o.At) // zero when it is none: the time is for people only
		c.entries = append(c.entries, entry{raw, Origin{origin, at.UTC()}})
	}
	c.origins = meaning(c.entries)
	return c, nil
}

func meaning(entries []entry) []Origin {
	var origins []Origin
	for _, e := range entries {
		if e.means.Origin != "" {
			origins = append(origins, e.means)
		}
	}
	slices.SortStableFunc(origins, func(a, b Origin) int { return strings.Compare(a.Origin, b.Origin) })
	return slices.CompactFunc(origins, func(a, b Origin) bool { return a.Origin == b.Origin })
}

// encode writes a file that decode reads. It is indented, for people who look
// into it, while the limit permits.
func (c contents) encode() ([]byte, error) {
	raws := make([]json.RawMessage, 0, len(c.entries))
	for _, e := range c.entries {
		raws = append(raws, e.raw)
	}
	members := map[string]any{"version": version, "origins": raws}
	if len(c.spaces) > 0 {
		members["workspaces"] = c.spaces
	}
	for name, raw := range c.others {
		members[name] = raw
	}
	for _, indent := range []string{"  ", ""} {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", indent)
		if err := enc.Encode(members); err != nil {
			return nil, err
		}
		if b.Len() <= MaxFile {
			return b.Bytes(), nil
		}
	}
	return nil, fmt.Errorf("it would be larger than %d bytes", MaxFile)
}

// with adds an origin, in canonical form, unless it is there.
func (c contents) with(origin string, now time.Time) (contents, bool, error) {
	if c.allows(origin) {
		return c, false, nil
	}
	if len(c.entries) >= MaxOrigins {
		return contents{}, false, fmt.Errorf("it has %d origins already, the most there may be; take one back with jsbridge allow --remove", len(c.entries))
	}
	o := Origin{origin, now.UTC().Truncate(time.Second)}
	raw, err := json.Marshal(originJSON{origin, o.At.Format(time.RFC3339)})
	if err != nil {
		return contents{}, false, err
	}
	c.entries = append(slices.Clone(c.entries), entry{raw, o})
	c.origins = meaning(c.entries)
	return c, true, nil
}

// without takes an origin out, however often it is there.
func (c contents) without(origin string) (contents, bool) {
	if !c.allows(origin) {
		return c, false
	}
	c.entries = slices.DeleteFunc(slices.Clone(c.entries), func(e entry) bool { return e.means.Origin == origin })
	c.origins = meaning(c.entries)
	return c, true
}

func (c contents) sameOrigins(d contents) bool {
	return slices.EqualFunc(c.origins, d.origins, func(a, b Origin) bool { return a.Origin == b.Origin })
}
