package manifest

import (
	"bytes"
	"encoding/json"
	"strings"
)

// The functions in this file split JSON text without decoding it. None of them recurses, so that nesting can be measured
// before anything recursive sees it. They find their way by quotes and brackets only: text that encoding/json would refuse
// may be split into something, but never makes them fail otherwise.

// field is one member of a JSON object.
type field struct {
	key string
	raw json.RawMessage
}

// skipSpace returns the first index from i on that is no JSON white space.
func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// stringEnd returns the index behind the string literal that starts at i, or -1.
func stringEnd(b []byte, i int) int {
	quote := i // the last quote that was found, or where to look for one
	for i++; ; {
		if quote < i {
			next := bytes.IndexByte(b[min(i, len(b)):], '"')
			if next < 0 {
				return -1
			}
			quote = i + next
		}
		escape := bytes.IndexByte(b[i:quote], '\\')
		if escape < 0 {
			return quote + 1
		}
		i += escape + 2 // which may be behind an escaped quote
	}
}

// valueEnd returns the index behind the value that starts at i, or -1.
func valueEnd(b []byte, i int) int {
	start, depth := i, 0
	for i < len(b) {
		switch c := b[i]; c {
		case '"':
			if i = stringEnd(b, i); i < 0 {
				return -1
			}
			if depth == 0 {
				return i
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return scalarEnd(start, i)
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ' ', '\n', '\t', '\r':
			if depth == 0 {
				return scalarEnd(start, i)
			}
		}
		i++
	}
	if depth > 0 {
		return -1
	}
	return scalarEnd(start, i)
}

func scalarEnd(start, end int) int {
	if start == end {
		return -1
	}
	return end
}

// depthOf reports how deep b nests: 0 for a scalar, 1 for {}.
func depthOf(b []byte) int {
	depth, deepest := 0, 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			end := stringEnd(b, i)
			if end < 0 {
				return deepest
			}
			i = end - 1
		case '{', '[':
			depth++
			deepest = max(deepest, depth)
		case '}', ']':
			depth--
		}
	}
	return deepest
}

// eachField calls visit for each member of the object b, in order, until visit returns false. It reports whether b is an
// object. Duplicate keys are visited each time.
func eachField(b []byte, visit func(key string, raw json.RawMessage) bool) bool {
	i := skipSpace(b, 0)
	if i >= len(b) || b[i] != '{' {
		return false
	}
	if i = skipSpace(b, i+1); i < len(b) && b[i] == '}' {
		return true
	}
	for i < len(b) && b[i] == '"' {
		end := stringEnd(b, i)
		if end < 0 {
			return false
		}
		key, ok := unquote(b[i:end])
		if i = skipSpace(b, end); !ok || i >= len(b) || b[i] != ':' {
			return false
		}
		i = skipSpace(b, i+1)
		if end = valueEnd(b, i); end < 0 {
			return false
		}
		if !visit(key, json.RawMessage(b[i:end:end])) {
			return true
		}
		if i = skipSpace(b, end); i >= len(b) {
			return false
		}
		if b[i] == '}' {
			return true
		}
		if b[i] != ',' {
			return false
		}
		i = skipSpace(b, i+1)
	}
	return false
}

// eachItem calls visit for each element of the array b, in order, until visit returns false. It reports whether b is an
// array.
func eachItem(b []byte, visit func(raw json.RawMessage) bool) bool {
	i := skipSpace(b, 0)
	if i >= len(b) || b[i] != '[' {
		return false
	}
	if i = skipSpace(b, i+1); i < len(b) && b[i] == ']' {
		return true
	}
	for i < len(b) {
		end := valueEnd(b, i)
		if end < 0 {
			return false
		}
		if !visit(json.RawMessage(b[i:end:end])) {
			return true
		}
		if i = skipSpace(b, end); i >= len(b) {
			return false
		}
		if b[i] == ']' {
			return true
		}
		if b[i] != ',' {
			return false
		}
		i = skipSpace(b, i+1)
	}
	return false
}

// pick returns the members of the object b that are named in keys, spelled exactly so. Of a repeated key the last value
// counts, as it does for JSON.parse. Memory does not grow with the number of other members.
func pick(b []byte, keys ...string) (map[string]json.RawMessage, bool) {
	out := make(map[string]json.RawMessage, len(keys))
	ok := eachField(b, func(key string, raw json.RawMessage) bool {
		for _, k := range keys {
			if k == key {
				out[k] = raw
			}
		}
		return true
	})
	return out, ok
}

// objectFields returns the members of the object b in order. A repeated key keeps its first place and its last value;
// repeated reports that there was one.
func objectFields(b []byte) (fields []field, repeated, ok bool) {
	at := map[string]int{}
	ok = eachField(b, func(key string, raw json.RawMessage) bool {
		if i, seen := at[key]; seen {
			fields[i].raw, repeated = raw, true
			return true
		}
		at[key] = len(fields)
		fields = append(fields, field{key, raw})
		return true
	})
	return fields, repeated, ok
}

// encodeObject is the inverse of objectFields.
func encodeObject(fields []field) json.RawMessage {
	out := []byte{'{'}
	for i, f := range fields {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(appendString(out, f.key), ':')
		out = append(out, f.raw...)
	}
	return append(out, '}')
}

// encodeArray joins values to an array.
func encodeArray(items []json.RawMessage) json.RawMessage {
	return append(append([]byte{'['}, bytes.Join(toBytes(items), []byte{','})...), ']')
}

func toBytes(items []json.RawMessage) [][]byte {
	out := make([][]byte, len(items))
	for i, it := range items {
		out[i] = it
	}
	return out
}

// unquote decodes a JSON string literal.
func unquote(b []byte) (string, bool) {
	if len(b) < 2 || b[0] != '"' || b[len(b)-1] != '"' {
		return "", false
	}
	if in := b[1 : len(b)-1]; bytes.IndexByte(in, '\\') < 0 {
		return string(in), true
	}
	var s string
	err := json.Unmarshal(b, &s)
	return s, err == nil
}

// appendString appends s as a JSON string literal, leaving <, > and & readable.
func appendString(dst []byte, s string) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil { // a string always encodes
		return append(dst, `""`...)
	}
	return append(dst, bytes.TrimSuffix(buf.Bytes(), []byte("\n"))...)
}

// kindOf names the kind of the JSON value b as a message would: "an object", "text" and so on.
func kindOf(b []byte) string {
	i := skipSpace(b, 0)
	if i >= len(b) {
		return "nothing"
	}
	switch b[i] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "text"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

// present reports whether an optional field was given: null counts as not given.
func present(raw json.RawMessage) bool {
	return len(raw) > 0 && strings.TrimSpace(string(raw[:min(len(raw), 8)])) != "null"
}

// compact returns a copy of raw without white space. The copy matters: a tool must not keep the whole frame alive.
func compact(raw json.RawMessage) (json.RawMessage, error) {
	var buf bytes.Buffer
	buf.Grow(len(raw))
	if err := json.Compact(&buf, raw); err != nil {
		return nil, err
	}
	return json.RawMessage(buf.Bytes()), nil
}
