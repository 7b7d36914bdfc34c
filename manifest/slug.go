package manifest

import (
	"strconv"
	"strings"
)

// maxSlug is the length of a prefix, in bytes.
const maxSlug = 24

// emptySlug names a page whose label has no usable character.
const emptySlug = "tab"

// Slug turns a page's label into its prefix: lower case, each run of characters outside a-z and 0-9 becomes one
// underscore, outer underscores are dropped. The result matches [a-z][a-z0-9_]*, is at most 24 bytes long, never contains
// "__" and never ends in "_". A label that starts with a digit gets "tab_" in front; one with nothing left gives "tab".
// Slug(Slug(s)) == Slug(s).
func Slug(label string) string {
	var b strings.Builder
	gap := false
	for i := 0; i < len(label) && b.Len() < maxSlug; i++ {
		c := label[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if !isSlugByte(c) {
			gap = true
			continue
		}
		if b.Len() == 0 && isDigit(c) {
			b.WriteString(emptySlug)
			gap = true
		}
		if gap && b.Len() > 0 {
			b.WriteByte('_')
		}
		gap = false
		b.WriteByte(c)
	}
	s := strings.TrimRight(b.String()[:min(b.Len(), maxSlug)], "_")
	if s == "" {
		return emptySlug
	}
	return s
}

// SlugOrdinal returns the prefix of the n-th page that goes by slug: slug followed by n, with the slug cut so that the
// whole is at most 24 bytes long. Where the slug ends in a digit an underscore comes between, so that "shop1" and 2 do not
// read as "shop" and 12. Different n give different results for one slug. For n < 2 it is slug itself. The result may
// still be another page's own slug: the caller tries the next n.
func SlugOrdinal(slug string, n int) string {
	slug = Slug(slug)
	if n < 2 {
		return slug
	}
	ordinal := strconv.Itoa(n)
	base := slug
	for {
		if len(base)+len(ordinal) <= maxSlug && !isDigit(base[len(base)-1]) {
			return base + ordinal
		}
		if len(base)+1+len(ordinal) <= maxSlug && isDigit(base[len(base)-1]) {
			return base + "_" + ordinal
		}
		// The first byte is a letter and an ordinal has at most 19 digits, so this ends before base is empty.
		base = strings.TrimRight(base[:len(base)-1], "_")
	}
}

func isSlugByte(c byte) bool { return 'a' <= c && c <= 'z' || isDigit(c) }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
