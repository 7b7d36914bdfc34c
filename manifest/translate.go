package manifest

import (
	"strings"
)

// translate turns the validator's own text into a sentence. The text is a row of "validating <JSON pointer>: ", outermost
// first, and what went wrong.
func (w words) translate(failure error, v *value) *ArgumentError {
	text := failure.Error()
	pointer := ""
	for {
		rest, ok := strings.CutPrefix(text, "validating ")
		if !ok {
			break
		}
		at, tail, ok := strings.Cut(rest, ": ")
		if !ok {
			break
		}
		if strings.HasPrefix(at, "/") {
			pointer = at
		}
		text = tail
	}
	path, at := follow(pointer, v)
	what := firstLine(text)
	for _, known := range []struct{ prefix, sentence string }{
		{"anyOf: ", "fits none of the forms that the schema allows (anyOf)"},
		{"oneOf: validated against both", "fits more than one of the forms of which the schema allows exactly one (oneOf)"},
		{"oneOf: ", "fits none of the forms that the schema allows (oneOf)"},
		{"not: ", "has a form that the schema rules out (not)"},
		{"contains: ", "has no item of the kind that the schema asks for (contains)"},
		{"unexpected additional properties", "has " + w.part + "s that the schema does not allow"},
	} {
		if strings.HasPrefix(text, known.prefix) {
			return argumentErrorf(path, "%s %s, got %s", w.subject(path), known.sentence, show(at.raw))
		}
	}
	return argumentErrorf(path, "%s does not fit the schema: %s", w.subject(path), what)
}

// follow goes down the arguments along the properties in a pointer into the schema, as far as they lead.
func follow(pointer string, v *value) (string, *value) {
	path := ""
	segments := strings.Split(pointer, "/")
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for i := 1; i+1 < len(segments); i++ {
		if segments[i] != "properties" {
			continue
		}
		i++
		key := unescape.Replace(segments[i])
		next := v.field(key)
		if next == nil {
			break
		}
		path, v = joinPath(path, key), next
	}
	return path, v
}

// firstLine bounds the validator's text to its beginning.
func firstLine(s string) string {
	s, _, _ = strings.Cut(s[:min(len(s), 4096)], "\n")
	return Clean(s, 300, false)
}
