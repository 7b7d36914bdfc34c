package manifest

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
)

const (
	// DefaultMaxName is the length of a published name, in bytes, unless configured otherwise. It leaves room for what
	// clients put in front ("mcp__jsbridge__") below the 64 that many of them allow.
	DefaultMaxName = 48
	// MinMaxName is the smallest such length: the longest prefix, "__", and enough for a telling start and a hash.
	MinMaxName = 40
	// hashDigits is the length of the hash of a name in its shortest form.
	hashDigits = 8
)

// separator stands between prefix and tool. A prefix never contains it.
const separator = "__"

// PublishedNames returns the names under which clients see the tools of the page with that prefix, in the order of tools.
//
// A name is prefix + "__" + the tool's own name, where each character outside [A-Za-z0-9_-] is replaced by "_". If that is
// longer than max (0 means [DefaultMaxName], less than [MinMaxName] means that) it is cut and ends in "_" and eight hex
// digits of the SHA-256 of the tool's own name. All names that would be equal, case ignored, end so too, with more
// digits as long as there are still equal ones.
//
// The result matches ^[a-z][A-Za-z0-9_-]*$ and has no two names that differ only in case. It depends on the set of names
// alone, not on the order of tools. A prefix that is no [Slug] is made one.
func PublishedNames(prefix string, tools []*Tool, max int) []string {
	if max <= 0 {
		max = DefaultMaxName
	}
	if max < MinMaxName {
		max = MinMaxName
	}
	namer := namer{head: Slug(prefix) + separator}
	namer.room = max - len(namer.head)
	out := make([]string, len(tools))
	digits := make([]int, len(tools))
	for i, t := range tools {
		out[i] = namer.name(t.Name, 0)
		if len(out[i]) > max {
			digits[i] = hashDigits
			out[i] = namer.name(t.Name, hashDigits)
		}
	}
	most := min(namer.room-1, sha256.Size*2)
	for range most { // each round gives at least one name a longer hash, all at once if they collide together
		clash := clashes(out)
		if len(clash) == 0 {
			return out
		}
		for _, i := range clash {
			digits[i] = min(cmp.Or(digits[i]*2, hashDigits), most)
			out[i] = namer.name(tools[i].Name, digits[i])
		}
	}
	namer.settle(out, tools, most)
	return out
}

// namer builds published names of one page.
type namer struct {
	head string // prefix and separator
	room int    // bytes left for the rest
}

// name returns the published form of own with that many digits of hash; 0 means none and no cut.
func (n namer) name(own string, digits int) string {
	if digits == 0 {
		return n.head + sanitize(own)
	}
	return n.hashed(own, own, digits)
}

func (n namer) hashed(own, hashee string, digits int) string {
	sum := sha256.Sum256([]byte(hashee))
	base := sanitize(own)
	base = base[:min(len(base), n.room-1-digits)]
	return n.head + base + "_" + hex.EncodeToString(sum[:])[:digits]
}

// settle gives names that are equal in every digit of hash (which takes a page that searched for such) other ones, by
// rank in sorted order, so that the outcome still depends on the set of names only.
func (n namer) settle(out []string, tools []*Tool, digits int) {
	clash := clashes(out)
	slices.SortFunc(clash, func(i, j int) int { return cmp.Compare(tools[i].Name, tools[j].Name) })
	taken := map[string]bool{}
	for _, name := range out {
		taken[strings.ToLower(name)] = true
	}
	for _, i := range clash {
		for salt := 1; taken[strings.ToLower(out[i])]; salt++ {
			out[i] = n.hashed(tools[i].Name, tools[i].Name+"\x00"+strconv.Itoa(salt), digits)
		}
		taken[strings.ToLower(out[i])] = true
	}
}

// clashes returns the indexes of the names that another name equals, case ignored.
func clashes(names []string) []int {
	count := map[string]int{}
	for _, n := range names {
		count[strings.ToLower(n)]++
	}
	var out []int
	for i, n := range names {
		if count[strings.ToLower(n)] > 1 {
			out = append(out, i)
		}
	}
	return out
}

// sanitize replaces each character that a client might refuse by an underscore.
func sanitize(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, name)
}
