package manifest

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
)

// mend repairs clear slips of a model in the arguments, guided by the shape of the schema, and reports whether it changed
// anything: numbers, booleans, objects and arrays sent as text, and null (or the word, where no text is wanted) for an
// optional parameter. A value of a type that is allowed where it stands is left alone.
func mend(v *value, s *shape) (changed bool) {
	if kinds := s.kinds(); kinds != nil && !accepts(kinds, v) {
		changed = convert(v, kinds)
	}
	inner := s.deep()
	switch v.kind {
	case '{':
		for i := range v.fields {
			m := &v.fields[i]
			if of := inner.property(m.key); of != nil && mendMember(m, of, inner.requires[m.key]) {
				changed = true
			}
		}
	case '[':
		for i, item := range v.items {
			if of := inner.item(i); of != nil && mend(item, of) {
				changed = true
			}
		}
	}
	v.edited = v.edited || changed
	return changed
}

func mendMember(m *member, s *shape, required bool) (changed bool) {
	kinds := s.kinds()
	word, _ := m.val.text()
	spelled := strings.TrimSpace(word) == "null" && kinds != nil && !slices.Contains(kinds, "string")
	switch {
	case m.val.kind != 'n' && !spelled:
		return mend(m.val, s)
	case kinds == nil || slices.Contains(kinds, "null"):
		if spelled {
			m.val.set(json.RawMessage("null"))
		}
		return spelled
	case required:
		return false
	}
	m.val = nil
	return true
}

// accepts reports whether v has one of the types.
func accepts(kinds []string, v *value) bool {
	for _, k := range kinds {
		switch {
		case k == kindName(v):
			return true
		case k == "integer" && v.kind == '0':
			if f, ok := v.number(); ok && f == math.Trunc(f) {
				return true
			}
		}
	}
	return false
}

// kindName is the JSON Schema type of v; integers are numbers.
func kindName(v *value) string {
	switch v.kind {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't':
		return "boolean"
	case 'n':
		return "null"
	}
	return "number"
}

// convert turns text into the value of one of the types that it clearly stands for.
func convert(v *value, kinds []string) bool {
	text, ok := v.text()
	if text = strings.TrimSpace(text); !ok || text == "" {
		return false
	}
	switch c := text[0]; {
	case c == '{' || c == '[':
		return convertContainer(v, text, kinds)
	case c == '-' || isDigit(c):
		return convertNumber(v, text, kinds)
	case slices.Contains(kinds, "boolean"):
		switch text {
		case "true", "True":
			v.set(json.RawMessage("true"))
			return true
		case "false", "False":
			v.set(json.RawMessage("false"))
			return true
		}
	}
	return false
}

func convertContainer(v *value, text string, kinds []string) bool {
	kind := "object"
	if text[0] == '[' {
		kind = "array"
	}
	raw := json.RawMessage(text)
	if !slices.Contains(kinds, kind) || depthOf(raw) > maxArgumentDepth || !json.Valid(raw) {
		return false
	}
	inner := parseValue(raw)
	if inner == nil {
		return false
	}
	*v = *inner
	v.edited = true
	return true
}

// convertNumber takes JSON's own spelling of numbers only: no 0x10, no Infinity, no 5px, and nothing that would become
// infinite in JavaScript.
func convertNumber(v *value, text string, kinds []string) bool {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || !json.Valid([]byte(text)) {
		return false
	}
	switch {
	case slices.Contains(kinds, "number"):
	case !slices.Contains(kinds, "integer") || f != math.Trunc(f):
		return false
	case strings.ContainsAny(text, ".eE") && math.Abs(f) < 1<<53:
		text = strconv.FormatInt(int64(f), 10)
	}
	v.set(json.RawMessage(text))
	return true
}
