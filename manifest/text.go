package manifest

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	ellipsis     = "…"
	emojiStyle   = '\uFE0F' // variation selector 16, part of many common emoji
	escape       = '\x1b'
	csi8         = '\u009b' // the one-character form of ESC [
	stringEnder8 = '\u009c' // the one-character form of ESC \
)

// Clean makes text from a page fit to be shown to people, agents and logs. It removes control characters, terminal escape
// sequences, direction marks, zero-width and other invisible characters (Unicode tags and all variation selectors but the
// emoji one among them) and invalid UTF-8, and trims white space at both ends. With multiline, line breaks (all kinds
// become \n) and tabs stay; without, each becomes a space. The result is at most maxBytes long, cut between characters
// and then ending in "…"; maxBytes <= 0 means no limit. Clean(Clean(s)) == Clean(s).
func Clean(s string, maxBytes int, multiline bool) string {
	room := len(s)
	if maxBytes > 0 {
		room = min(room, maxBytes+2*utf8.UTFMax) // it is left once it is too long
	}
	if room == len(s) && plain(s) {
		return cut(s, maxBytes)
	}
	var b strings.Builder
	b.Grow(room) // a text that grows step by step ends with up to as much again that it does not need
	var last rune
	ansi := ansiSkipper{s: s}
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == escape || r == csi8 {
			i = ansi.skip(i, r, size)
			continue
		}
		if r == '\r' && strings.HasPrefix(s[i+1:], "\n") {
			i++
			continue
		}
		i += size
		r, keep := cleanRune(r, size, last, multiline)
		if !keep || b.Len() == 0 && unicode.IsSpace(r) {
			continue
		}
		last = r
		b.WriteRune(r)
		if maxBytes > 0 && b.Len() > maxBytes && !unicode.IsSpace(r) {
			break // what follows would be cut off anyway
		}
	}
	return cut(strings.TrimRightFunc(b.String(), unicode.IsSpace), maxBytes)
}

// plain tells the text that is clean as it is, as nearly all is.
func plain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return s == "" || s[0] != ' ' && s[len(s)-1] != ' '
}

// cleanRune decides on one character; last is the one kept before it.
func cleanRune(r rune, size int, last rune, multiline bool) (rune, bool) {
	switch r {
	case '\n', '\r', '\u0085', '\u2028', '\u2029':
		r = '\n'
	case '\t':
	case emojiStyle:
		// A row of selectors could carry hidden data; an emoji needs one.
		return r, last > unicode.MaxASCII && last != emojiStyle || last == '#' || last == '*' || '0' <= last && last <= '9'
	case utf8.RuneError:
		return r, size > 1
	default:
		return r, !hidden(r)
	}
	if !multiline {
		r = ' '
	}
	return r, true
}

// hidden reports whether r is a character that shows nothing of itself. Line breaks and tabs count as hidden.
func hidden(r rune) bool {
	if r < utf8.RuneSelf {
		return r < ' ' || r == 0x7f
	}
	switch {
	case unicode.Is(unicode.Prepended_Concatenation_Mark, r): // visible signs that happen to be in Cf
		return false
	case r == emojiStyle:
		return false
	case r == '\u2028' || r == '\u2029':
		return true
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Cs, unicode.Variation_Selector,
		unicode.Other_Default_Ignorable_Code_Point, unicode.Noncharacter_Code_Point)
}

// ansiSkipper steps over terminal escape sequences.
type ansiSkipper struct {
	s string
	// unterminated is set once no string terminator follows, so that many openers cost no second search.
	unterminated bool
}

// skip returns the index behind the sequence that starts at i with r.
func (a *ansiSkipper) skip(i int, r rune, size int) int {
	i += size
	if r == csi8 {
		return a.skipCSI(i)
	}
	if i >= len(a.s) {
		return i
	}
	switch a.s[i] {
	case '[':
		return a.skipCSI(i + 1)
	case ']', 'P', 'X', '^', '_': // strings: title, device control and the like
		return a.skipString(i + 1)
	}
	for i < len(a.s) && a.s[i] >= 0x20 && a.s[i] <= 0x2f {
		i++
	}
	if i < len(a.s) && a.s[i] >= 0x30 && a.s[i] <= 0x7e {
		i++
	}
	return i
}

func (a *ansiSkipper) skipCSI(i int) int {
	for i < len(a.s) && a.s[i] >= 0x20 && a.s[i] <= 0x3f {
		i++
	}
	if i < len(a.s) && a.s[i] >= 0x40 && a.s[i] <= 0x7e {
		i++
	}
	return i
}

func (a *ansiSkipper) skipString(i int) int {
	if a.unterminated {
		return i
	}
	for j, r := range a.s[i:] {
		switch r {
		case '\a', stringEnder8:
			return i + j + utf8.RuneLen(r)
		case escape:
			if strings.HasPrefix(a.s[i+j+1:], `\`) {
				return i + j + 2
			}
			return i + j // another sequence begins; the terminal would drop this one too
		}
	}
	a.unterminated = true
	return i
}

// cut bounds s to maxBytes, between characters.
func cut(s string, maxBytes int) string {
	if maxBytes <= 0 || len(s) <= maxBytes {
		return s
	}
	mark := ellipsis
	if maxBytes < len(mark) {
		mark = ""
	}
	n := maxBytes - len(mark)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return strings.TrimRightFunc(s[:n], unicode.IsSpace) + mark
}

// quotable bounds a foreign string for use with %q in a message.
func quotable(s string) string { return Clean(s, 60, false) }

// MaxDepth is how deep JSON from a page may nest, apart from what its declarations may: some libraries of MCP clients
// give up near 1,000, and encoding/json refuses 10,000 without a word to whoever waits for the answer.
const MaxDepth = 256

// TooDeep reports whether JSON nests deeper than [MaxDepth].
func TooDeep(raw []byte) bool { return DeeperThan(raw, MaxDepth) }

// DeeperThan reports whether JSON nests deeper than so many levels.
func DeeperThan(raw []byte, levels int) bool { return len(raw) > levels && depthOf(raw) > levels }
