package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// words are how sentences speak of the value that is checked and of what is in it.
type words struct {
	whole string // the value itself
	part  string // something in it, by its path
}

var (
	argumentWords = words{"the arguments object", "parameter"}
	outputWords   = words{"the structured result", "field"}
)

// explain turns the validator's refusal of v into a sentence for an agent. The validator has judged already: what is looked
// for here is only the best way to say why.
func (w words) explain(failure error, v *value, s *shape) *ArgumentError {
	var typ *json.UnmarshalTypeError
	if errors.As(failure, &typ) {
		path, n := outOfRange(v, "")
		return argumentErrorf(path, "%s must be a number in range, got %s", w.subject(path), show(n))
	}
	if e := w.faultOf(v, s, "", 0); e != nil {
		return e
	}
	return w.translate(failure, v)
}

// faultOf finds the first value that does not fit its shape; nil if none is found.
func (w words) faultOf(v *value, s *shape, path string, depth int) *ArgumentError {
	if depth > 64 {
		return nil
	}
	if kinds := s.kinds(); kinds != nil && !accepts(kinds, v) {
		return argumentErrorf(path, "%s must be %s, got %s", w.subject(path), typesWanted(kinds), show(v.raw))
	}
	if s.enum != nil && !enumHas(s.enum, v) {
		return argumentErrorf(path, "%s must be %s, got %s", w.subject(path), enumWanted(s.enum), show(v.raw))
	}
	if want := boundBroken(v, s.bounds); want != "" {
		return argumentErrorf(path, "%s must %s, got %s", w.subject(path), want, show(v.raw))
	}
	inner := s.deep()
	switch v.kind {
	case '{':
		return w.faultOfObject(v, inner, path, depth)
	case '[':
		for i, item := range v.items {
			if of := inner.item(i); of != nil {
				if e := w.faultOf(item, of, fmt.Sprintf("%s[%d]", path, i), depth+1); e != nil {
					return e
				}
			}
		}
	}
	return nil
}

func (w words) faultOfObject(v *value, s *shape, path string, depth int) *ArgumentError {
	given := make(map[string]bool, len(v.fields))
	for _, m := range v.fields {
		given[m.key] = m.val != nil
	}
	for _, key := range s.required {
		if !given[key] {
			at := joinPath(path, key)
			return argumentErrorf(at, "missing required %s %q%s", w.part, cut(at, 120), paramHint(s.properties[key]))
		}
	}
	for _, m := range v.fields {
		if m.val == nil {
			continue
		}
		at := joinPath(path, m.key)
		switch of := s.property(m.key); {
		case of != nil:
			if e := w.faultOf(m.val, of, at, depth+1); e != nil {
				return e
			}
		case s.closed && !s.patterned:
			return argumentErrorf(at, "unknown %s %q, must be one of %s", w.part, cut(at, 120), quoteList(s.names))
		}
	}
	return nil
}

// paramHint says what a missing parameter is: " (string: The row to paint)".
func paramHint(s *shape) string {
	if s == nil {
		return ""
	}
	hint := "any"
	if kinds := s.kinds(); kinds != nil {
		hint = strings.Join(kinds, " or ")
	}
	if about := Clean(s.about(), 100, false); about != "" {
		hint += ": " + about
	}
	return " (" + Clean(hint, 160, false) + ")"
}

// subject names what a sentence is about.
func (w words) subject(path string) string {
	if path == "" {
		return w.whole
	}
	return fmt.Sprintf("%s %q", w.part, cut(path, 120))
}

func typesWanted(kinds []string) string {
	var out []string
	for _, k := range kinds {
		phrase := k
		switch k {
		case "string":
			phrase = "text"
		case "number":
			phrase = "a number"
		case "boolean":
			phrase = "true or false"
		case "integer", "array", "object":
			phrase = "an " + k
		case "null":
		default:
			phrase = fmt.Sprintf("%q", quotable(k))
		}
		if !slices.Contains(out, phrase) {
			out = append(out, phrase)
		}
	}
	if len(out) == 0 {
		return "of no type at all"
	}
	return Clean(strings.Join(out, " or "), 120, false)
}

func enumHas(enum []json.RawMessage, v *value) bool {
	n, isNumber := v.number()
	text, isText := v.text()
	for _, e := range enum {
		if f, ok := number(e); ok && isNumber && f == n {
			return true
		}
		if s, ok := unquote(e); ok && isText && s == text {
			return true
		}
		if string(e) == string(v.raw) {
			return true
		}
	}
	return v.kind == '{' || v.kind == '[' // not compared here
}

func enumWanted(enum []json.RawMessage) string {
	if len(enum) == 1 {
		return show(enum[0])
	}
	var out []string
	for _, e := range enum[:min(len(enum), 12)] {
		out = append(out, show(e))
	}
	if more := len(enum) - len(out); more > 0 {
		out = append(out, fmt.Sprintf("%d more", more))
	}
	return "one of " + strings.Join(out, ", ")
}

func quoteList(names []string) string {
	if len(names) == 0 {
		return "none at all"
	}
	var out []string
	for _, n := range names[:min(len(names), 20)] {
		out = append(out, fmt.Sprintf("%q", quotable(n)))
	}
	if more := len(names) - len(out); more > 0 {
		out = append(out, fmt.Sprintf("%d more", more))
	}
	return strings.Join(out, ", ")
}

// boundBroken returns what v must but does not: "be at least 3".
func boundBroken(v *value, bounds map[string]json.RawMessage) string {
	for _, b := range []struct {
		key, want string
		kind      byte
		broken    func(have, limit float64) bool
	}{
		{"minimum", "be at least %s", '0', func(have, limit float64) bool { return have < limit }},
		{"maximum", "be at most %s", '0', func(have, limit float64) bool { return have > limit }},
		{"exclusiveMinimum", "be more than %s", '0', func(have, limit float64) bool { return have <= limit }},
		{"exclusiveMaximum", "be less than %s", '0', func(have, limit float64) bool { return have >= limit }},
		{"minLength", "have at least %s characters", '"', func(have, limit float64) bool { return have < limit }},
		{"maxLength", "have at most %s characters", '"', func(have, limit float64) bool { return have > limit }},
		{"minItems", "have at least %s items", '[', func(have, limit float64) bool { return have < limit }},
		{"maxItems", "have at most %s items", '[', func(have, limit float64) bool { return have > limit }},
	} {
		limit, ok := number(bounds[b.key])
		if ok && b.kind == v.kind && b.broken(v.extent(), limit) {
			return fmt.Sprintf(b.want, quotable(string(bounds[b.key])))
		}
	}
	return ""
}

// extent is what bounds apply to: a number, the characters of a text, the length of an array.
func (v *value) extent() float64 {
	switch v.kind {
	case '"':
		s, _ := v.text()
		return float64(utf8.RuneCountInString(s))
	case '[':
		return float64(len(v.items))
	}
	f, _ := v.number()
	return f
}

// outOfRange finds a number that float64 cannot hold.
func outOfRange(v *value, path string) (string, json.RawMessage) {
	if v.kind == '0' {
		if _, ok := v.number(); !ok {
			return path, v.raw
		}
	}
	for _, m := range v.fields {
		if m.val == nil {
			continue
		}
		if at, n := outOfRange(m.val, joinPath(path, m.key)); n != nil {
			return at, n
		}
	}
	for i, item := range v.items {
		if at, n := outOfRange(item, fmt.Sprintf("%s[%d]", path, i)); n != nil {
			return at, n
		}
	}
	return "", nil
}

// show renders a value for a message: text and other scalars bounded, containers by their kind.
func show(raw json.RawMessage) string {
	if s, ok := unquote(raw); ok {
		return fmt.Sprintf("%q", quotable(s))
	}
	switch kind := kindOf(raw); kind {
	case "an object", "an array", "nothing":
		return kind
	}
	return quotable(string(raw))
}

// joinPath appends a name to a path: a.b, or a["b c"] where a dot would mislead.
func joinPath(path, key string) string {
	plain := key != "" && strings.IndexFunc(key, func(r rune) bool {
		return r != '_' && r != '-' && r != '$' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) < 0
	key = quotable(key)
	switch {
	case path == "" && key != "":
		return key
	case plain:
		return path + "." + key
	}
	return fmt.Sprintf("%s[%q]", path, key)
}
