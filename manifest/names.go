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
	return publishedNames(prefix, toolNames(tools), max)
}

// PublishedPromptNames is [PublishedNames] for prompts.
func PublishedPromptNames(prefix string, prompts []*Prompt, max int) []string {
	return publishedNames(prefix, promptNames(prompts), max)
}

// BareToolNames returns the names under which clients see the tools of a page that is published without prefix, in the order of
// tools: the tool's own name where that is fit, else the one that [PublishedNames] gives.
//
// A name is fit if it matches ^[a-z][A-Za-z0-9_-]*$, is at most max bytes long (0 and small ones as in PublishedNames), has no
// "__" in it, is not taken, and no other tool has a fit one that differs in case only. A nil taken means that no name is.
func BareToolNames(prefix string, tools []*Tool, max int, taken func(string) bool) []string {
	return bareNames(prefix, toolNames(tools), max, taken)
}

// BarePromptNames is [BareToolNames] for prompts.
func BarePromptNames(prefix string, prompts []*Prompt, max int, taken func(string) bool) []string {
	return bareNames(prefix, promptNames(prompts), max, taken)
}

func toolNames(tools []*Tool) []string {
	out := make([]string, len(tools))
	for i, t := range tools {
		out[i] = t.Name
	}
	return out
}

func promptNames(prompts []*Prompt) []string {
	out := make([]string, len(prompts))
	for i, p := range prompts {
		out[i] = p.Name
	}
	return out
}

// bareNames needs no look at the prefixed names: those have a "__", bare ones never.
func bareNames(prefix string, own []string, max int, taken func(string) bool) []string {
	out := publishedNames(prefix, own, max)
	max = maxName(max)
	fit := make([]bool, len(own))
	count := map[string]int{}
	for i, name := range own {
		fit[i] = name != "" && 'a' <= name[0] && name[0] <= 'z' && sanitize(name) == name && len(name) <= max &&
			!strings.Contains(name, separator) && (taken == nil || !taken(name))
		if fit[i] {
			count[strings.ToLower(name)]++
		}
	}
	for i, name := range own {
		if fit[i] && count[strings.ToLower(name)] == 1 {
			out[i] = name
		}
	}
	return out
}

// maxName returns the length that max stands for.
func maxName(max int) int {
	if max <= 0 {
		return DefaultMaxName
	}
	if max < MinMaxName {
		return MinMaxName
	}
	return max
}

func publishedNames(prefix string, own []string, max int) []string {
	max = maxName(max)
	namer := namer{head: Slug(prefix) + separator}
	namer.room = max - len(namer.head)
	out := make([]string, len(own))
	digits := make([]int, len(own))
	for i, name := range own {
		out[i] = namer.name(name, 0)
		if len(out[i]) > max {
			digits[i] = hashDigits
			out[i] = namer.name(name, hashDigits)
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
			out[i] = namer.name(own[i], digits[i])
		}
	}
	namer.settle(out, own, most)
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
func (n namer) settle(out, own []string, digits int) {
	clash := clashes(out)
	slices.SortFunc(clash, func(i, j int) int { return cmp.Compare(own[i], own[j]) })
	taken := map[string]bool{}
	for _, name := range out {
		taken[strings.ToLower(name)] = true
	}
	for _, i := range clash {
		for salt := 1; taken[strings.ToLower(out[i])]; salt++ {
			out[i] = n.hashed(own[i], own[i]+"\x00"+strconv.Itoa(salt), digits)
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
