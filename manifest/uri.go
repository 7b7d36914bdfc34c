package manifest

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"unicode"
)

// Own URIs and what clients see of them:
//
//	own form                 published              fallback
//	cart, /cart, //cart      page://shop/cart       the same
//	/                        page://shop/           the same
//	item/{id}                page://shop/item/{id}  the same
//	Käse?v=[1]#top           page://shop/K%C3%A4se?v=%5B1%5D#top
//	https://a.example/x      https://a.example/x    page://shop//https://a.example/x
//
// Relative ones lose their leading slashes, so nothing relative is ever below page://shop//. Queries and fragments are part
// of the URI: URIs are compared as text and never resolved, so segments "." and "..", which clients would, are refused.
// Characters that a URI cannot have are percent-encoded, brackets of an absolute one only where it is a fallback.

// scheme finds the scheme of an absolute URI.
var scheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:`)

// reservedScheme reports whether pages may not publish under a scheme: page is the server's own, the others stand for code
// or content rather than for a place.
func reservedScheme(s string) bool {
	switch strings.ToLower(s) {
	case "page", "javascript", "data", "blob":
		return true
	}
	return false
}

// Published returns the URI, or URI template, under which clients see the resource of the page with that prefix: an
// absolute one as it is, a relative one below page://<prefix>/. In both, characters that a URI cannot have are
// percent-encoded. A prefix that is no [Slug] is made one.
func (r *Resource) Published(prefix string) string {
	f := r.compiled()
	if f.absolute {
		return f.plain
	}
	return "page://" + Slug(prefix) + "/" + f.body
}

// Fallback returns what an absolute URI, or template, is published as when another page has taken it: the same below
// page://<prefix>//. A relative one is nobody else's, so for it Fallback is [Resource.Published].
func (r *Resource) Fallback(prefix string) string {
	f := r.compiled()
	if !f.absolute {
		return r.Published(prefix)
	}
	return "page://" + Slug(prefix) + "//" + f.body
}

// Match reports whether uri is the resource, or an instance of the template, that is published as that: published is what
// [Resource.Published] or [Resource.Fallback] gave. own is the page's form of uri: for a template, its own text with the
// values as they stand in uri. variables are the values of those variables that uri has, decoded; it is never nil if ok.
//
// A template matches what RFC 6570 makes of it, and what people write by hand: parameters of a query in any order, and
// characters that need no encoding where they stand. A value never spans a "/" unless the template allows for it ({+x},
// {#x}, {/x*}, {?x}), {x} and {+x} are never empty, and what starts with an operator's own character ({/x}, {?x}) may be
// absent. Of several ways to split uri, only one is tried: the first variable gets as much as it can, but nothing that could
// be the start of an operator's part right behind it (in {name}{.ext} a name has no dot). Where that makes a value longer
// than its {x:3} allows, or gives a variable two values, uri is not one. Values of lists are joined with commas. A uri of
// more than 8 KiB is never one.
func (r *Resource) Match(published, uri string) (own string, variables map[string]string, ok bool) {
	if len(uri) > maxURIBytes {
		return "", nil, false
	}
	f := r.compiled()
	base := ""
	if !f.absolute || published != f.plain {
		if base, ok = strings.CutSuffix(published, f.body); !ok {
			return "", nil, false
		}
	}
	rest, ok := strings.CutPrefix(escapeURI(uri, true), base)
	if !ok || len(rest) > maxURIBytes {
		return "", nil, false
	}
	return f.match(rest)
}

// uriForm is a page's own URI or template, taken apart.
type uriForm struct {
	absolute  bool
	body      string // what follows page://<prefix>/ or //
	plain     string // an absolute one as it is published
	parts     []part // of body
	variables []string
}

// newURIForm checks a page's own URI or template and takes it apart. The error continues a sentence: "the uri …".
func newURIForm(own string, template bool) (*uriForm, error) {
	switch {
	case own == "":
		return nil, errors.New("is empty")
	case len(own) > maxOwnURIBytes:
		return nil, fmt.Errorf("is %d bytes long, the limit is %d", len(own), maxOwnURIBytes)
	case strings.IndexFunc(own, func(r rune) bool { return unicode.IsSpace(r) || hidden(r) || r == unicode.ReplacementChar }) >= 0:
		return nil, errors.New("has white space or characters that cannot be seen")
	}
	f := literalForm(own)
	if template {
		if err := f.split(own); err != nil {
			return nil, err
		}
	} else if strings.ContainsAny(own, "{}") {
		return nil, errors.New("has braces: declare a template as uriTemplate")
	}
	if len(f.body) > maxOwnURIBytes {
		return nil, fmt.Errorf("is %d bytes long when percent-encoded, the limit is %d", len(f.body), maxOwnURIBytes)
	}
	if f.absolute {
		return f, f.checkAbsolute()
	}
	return f, f.checkRelative()
}

// literalForm is the form of a URI without variables.
func literalForm(own string) *uriForm {
	f := &uriForm{absolute: scheme.MatchString(own)}
	text := own
	if f.absolute {
		f.plain = escapeURI(own, false)
	} else {
		text = strings.TrimLeft(own, "/")
	}
	f.body = escapeURI(text, true)
	f.parts = []part{{literal: f.body, own: own}}
	return f
}

// sample is the body with something in place of each expression.
func (f *uriForm) sample() string {
	var b strings.Builder
	for _, p := range f.parts {
		if p.expr != nil {
			b.WriteString("1")
		} else if f.absolute { // brackets may be those of an address
			b.WriteString(escapeURI(p.own, false))
		} else {
			b.WriteString(p.literal)
		}
	}
	return b.String()
}

func (f *uriForm) checkAbsolute() error {
	u, err := url.Parse(f.sample())
	switch {
	case err != nil:
		return fmt.Errorf("is not a valid URI (%s)", Clean(err.Error(), 120, false))
	case reservedScheme(u.Scheme):
		return fmt.Errorf("has the scheme %s, which pages cannot publish: leave scheme and host away to have it below page://<prefix>/", u.Scheme)
	case u.Opaque == "" && u.Host == "" && u.Path == "":
		return errors.New("has nothing after its scheme")
	}
	return nil
}

func (f *uriForm) checkRelative() error {
	path := f.sample()
	if i := strings.IndexAny(path, "?#"); i >= 0 {
		path = path[:i]
	}
	for segment := range strings.SplitSeq(path, "/") {
		if s := unescapeURI(segment); s == "." || s == ".." {
			return fmt.Errorf("has a segment %q, which clients would resolve", s)
		}
	}
	return nil
}

// escapeURI percent-encodes what cannot stand in a URI: all but unreserved and reserved characters and percent-encodings.
// Brackets are reserved for addresses; with brackets set they are encoded too. escapeURI(escapeURI(s)) == escapeURI(s).
func escapeURI(s string, brackets bool) string {
	i := 0
	for i < len(s) && !needsEscape(s, i, brackets) {
		i++
	}
	if i == len(s) {
		return s
	}
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	b.WriteString(s[:i])
	for ; i < len(s); i++ {
		if needsEscape(s, i, brackets) {
			b.Write([]byte{'%', hex[s[i]>>4], hex[s[i]&15]})
		} else {
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

func needsEscape(s string, i int, brackets bool) bool {
	switch c := s[i]; {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', isDigit(c):
		return false
	case c == '%':
		return i+2 >= len(s) || !isHex(s[i+1]) || !isHex(s[i+2])
	case c == '[' || c == ']':
		return brackets
	default:
		return !strings.ContainsRune("-._~:/?#@!$&'()*+,;=", rune(c))
	}
}

func isHex(c byte) bool { return isDigit(c) || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F' }

// unescapeURI decodes s, which escapeURI has been over. What is not UTF-8 is replaced.
func unescapeURI(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	plain, err := url.PathUnescape(s)
	if err != nil { // cannot be
		return s
	}
	return strings.ToValidUTF8(plain, "\uFFFD")
}
