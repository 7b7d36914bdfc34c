package tenant

import (
	"regexp"
	"strings"
)

// maxPart bounds each part of a connect string, in bytes.
const maxPart = 64

// Connect is a parsed connect string: where a page wants to join. Exactly one
// of Session, Channel and, for a root connection, Name alone is set; Name may
// also accompany Channel. The zero Connect names nothing.
type Connect struct {
	// Session is a session tenant's id, a UUID in lower case.
	Session string
	// Channel is the channel to join.
	Channel string
	// Name is the connection's name; "" in a channel: the page's own label.
	Name string
}

var uuidForm = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// ParseConnect reads a connect string: a UUID names a session tenant, "name" a
// root connection, "channel:name" or "channel:" a channel. Each part is
// [A-Za-z0-9_-]{1,64}; each run of other characters becomes one "-", or nothing
// at a part's ends, and longer parts are cut. What has nothing left gives the
// zero Connect. The page scripts have the same rule; testdata/connect.json holds
// both to it.
func ParseConnect(s string) Connect {
	channel, name, ok := strings.Cut(s, ":")
	if !ok {
		name = connectPart(s)
		// Quotes or capitals must not turn a capability into a name that
		// everybody sees.
		if uuidForm.MatchString(name) {
			return Connect{Session: strings.ToLower(name)}
		}
		return Connect{Name: name}
	}
	if channel = connectPart(channel); channel == "" {
		return Connect{}
	}
	return Connect{Channel: channel, Name: connectPart(name)}
}

func connectPart(s string) string {
	var b strings.Builder
	gap := false
	for i := 0; i < len(s) && b.Len() < maxPart; i++ {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-') {
			gap = true
			continue
		}
		if gap && b.Len() > 0 {
			b.WriteByte('-')
		}
		gap = false
		b.WriteByte(c)
	}
	return b.String()[:min(b.Len(), maxPart)]
}

// String is the connect string in its mended form, "" for the zero Connect.
func (c Connect) String() string {
	switch {
	case c.Session != "":
		return c.Session
	case c.Channel != "":
		return c.Channel + ":" + c.Name
	}
	return c.Name
}
