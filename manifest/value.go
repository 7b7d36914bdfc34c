package manifest

import (
	"encoding/json"
	"slices"
	"strconv"
)

// maxValues is the number of JSON values in the arguments of one call up to which they are looked into.
const maxValues = 250_000

// value is one JSON value of a call's arguments. It keeps the text it was read from, so that what is not mended is passed
// on as it came, numbers of any length included.
type value struct {
	raw    json.RawMessage
	kind   byte // '{', '[', '"', 't' for both booleans, 'n' for null, '0' for a number
	fields []member
	items  []*value
	edited bool // raw, or something below, was changed: encode anew
}

// member is one member of an object; val is nil once it was taken out.
type member struct {
	key string
	val *value
}

// parseValue reads valid JSON of bounded depth in one pass. It returns nil if there are more than maxValues values.
func parseValue(raw json.RawMessage) *value {
	p := valueParser{b: raw, left: maxValues}
	v := p.value()
	if p.left < 0 {
		return nil
	}
	return v
}

type valueParser struct {
	b    []byte
	i    int
	left int
}

func (p *valueParser) value() *value {
	p.i = skipSpace(p.b, p.i)
	start := p.i
	v := &value{}
	if p.left--; p.left < 0 {
		p.i = len(p.b)
		return v
	}
	switch c := p.b[p.i]; c {
	case '{':
		v.kind = c
		p.object(v)
	case '[':
		v.kind = c
		p.array(v)
	default:
		v.kind = scalarKind(c)
		p.i = valueEnd(p.b, p.i)
	}
	v.raw = p.b[start:p.i:p.i]
	return v
}

// next steps over white space and one comma, and reports whether the container goes on.
func (p *valueParser) next(closing byte) bool {
	if p.i = skipSpace(p.b, p.i); p.i < len(p.b) && p.b[p.i] == ',' {
		p.i = skipSpace(p.b, p.i+1)
	}
	if p.i >= len(p.b) {
		return false
	}
	if p.b[p.i] == closing {
		p.i++
		return false
	}
	return true
}

func (p *valueParser) object(v *value) {
	p.i++
	var at map[string]int // only for objects too large to search
	for p.next('}') {
		end := stringEnd(p.b, p.i)
		key, _ := unquote(p.b[p.i:end])
		p.i = skipSpace(p.b, end) + 1 // the colon
		val := p.value()
		place := -1
		if at != nil {
			if i, ok := at[key]; ok {
				place = i
			}
		} else {
			place = slices.IndexFunc(v.fields, func(m member) bool { return m.key == key })
		}
		if place >= 0 { // of a repeated key the last value counts, as for JSON.parse
			v.fields[place].val = val
			continue
		}
		v.fields = append(v.fields, member{key, val})
		if at != nil {
			at[key] = len(v.fields) - 1
		} else if len(v.fields) > 16 {
			at = make(map[string]int, 64)
			for i, m := range v.fields {
				at[m.key] = i
			}
		}
	}
}

func (p *valueParser) array(v *value) {
	p.i++
	for p.next(']') {
		v.items = append(v.items, p.value())
	}
}

func scalarKind(c byte) byte {
	switch c {
	case '"', 'n':
		return c
	case 't', 'f':
		return 't'
	}
	return '0'
}

// encode appends the JSON of v. What was not edited goes out as it came in.
func (v *value) encode(dst []byte) []byte {
	if !v.edited || v.kind != '{' && v.kind != '[' {
		return append(dst, v.raw...)
	}
	first := true
	comma := func() {
		if !first {
			dst = append(dst, ',')
		}
		first = false
	}
	if v.kind == '[' {
		dst = append(dst, '[')
		for _, item := range v.items {
			comma()
			dst = item.encode(dst)
		}
		return append(dst, ']')
	}
	dst = append(dst, '{')
	for _, m := range v.fields {
		if m.val == nil {
			continue
		}
		comma()
		dst = append(appendString(dst, m.key), ':')
		dst = m.val.encode(dst)
	}
	return append(dst, '}')
}

// set gives v new text.
func (v *value) set(raw json.RawMessage) {
	*v = value{raw: raw, kind: scalarKind(raw[0]), edited: true}
}

// field returns the member of that name, or nil.
func (v *value) field(key string) *value {
	for _, m := range v.fields {
		if m.key == key {
			return m.val
		}
	}
	return nil
}

// text returns the string that v is.
func (v *value) text() (string, bool) {
	if v.kind != '"' {
		return "", false
	}
	return unquote(v.raw)
}

// number returns the number that v is, as far as float64 can hold it.
func (v *value) number() (float64, bool) {
	if v.kind != '0' {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(v.raw), 64)
	return f, err == nil
}
