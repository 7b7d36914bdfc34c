package manifest

import (
	"bytes"
	"reflect"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"
)

// simple is a schema that speaks of nothing but types, members and items, as nearly all do. Values that surely fit it need
// neither be decoded nor validated, which would take longer than all else that a call costs here; the validator judges the
// others.
type simple struct {
	types    []string // one of which the value has; nil: any
	members  map[string]*simple
	closed   bool // there are no other members
	required []string
	items    *simple // nil: any
}

// newSimple returns nil for a schema that says more.
func newSimple(s *jsonschema.Schema) *simple {
	rest := *s
	rest.Type, rest.Types, rest.Properties, rest.Required, rest.Items, rest.AdditionalProperties = "", nil, nil, nil, nil, nil
	// What the validator ignores.
	rest.Schema, rest.Comment, rest.Title, rest.Description, rest.Format, rest.Default, rest.Examples = "", "", "", "", "", nil, nil
	rest.Deprecated, rest.ReadOnly, rest.WriteOnly, rest.Extra, rest.PropertyOrder = false, false, false, nil, nil
	if !reflect.ValueOf(rest).IsZero() {
		return nil
	}
	out := &simple{types: s.Types, required: s.Required}
	if s.Type != "" {
		out.types = []string{s.Type}
	}
	if s.AdditionalProperties != nil {
		if !isFalse(s.AdditionalProperties) {
			return nil
		}
		out.closed = true
	}
	if s.Items != nil {
		if out.items = newSimple(s.Items); out.items == nil {
			return nil
		}
	}
	if len(s.Properties) > 0 {
		out.members = make(map[string]*simple, len(s.Properties))
	}
	for name, member := range s.Properties {
		if out.members[name] = newSimple(member); out.members[name] == nil {
			return nil
		}
	}
	return out
}

// isFalse tells whether it is how the library writes the schema false.
func isFalse(s *jsonschema.Schema) bool {
	not := s.Not
	rest := *s
	rest.Not = nil
	return not != nil && reflect.ValueOf(*not).IsZero() && reflect.ValueOf(rest).IsZero()
}

// surelyFits tells whether the value fits beyond doubt; nothing does if s is nil.
func (s *simple) surelyFits(v *value) bool { return s != nil && s.fits(v) && !v.holdsLongNumbers() }

func (s *simple) fits(v *value) bool {
	if s.types != nil && !slices.ContainsFunc(s.types, v.surelyIs) {
		return false
	}
	for _, name := range s.required {
		if v.kind == '{' && v.field(name) == nil {
			return false
		}
	}
	for _, m := range v.fields {
		known := s.members[m.key]
		if known == nil && s.closed || known != nil && !known.fits(m.val) {
			return false
		}
	}
	for _, item := range v.items {
		if s.items != nil && !s.items.fits(item) {
			return false
		}
	}
	return true
}

// surelyIs tells whether the value is of that type beyond doubt: 1.0 may be an integer.
func (v *value) surelyIs(typ string) bool {
	switch v.kind {
	case '{':
		return typ == "object"
	case '[':
		return typ == "array"
	case '"':
		return typ == "string"
	case 't':
		return typ == "boolean"
	case 'n':
		return typ == "null"
	}
	return typ == "number" || typ == "integer" && !bytes.ContainsAny(v.raw, ".eE")
}

// longNumber is how long a number may be, in bytes, that a float64 surely holds.
const longNumber = 30

// holdsLongNumbers tells whether there may be numbers in it that no float64 holds, also where the schema says nothing.
func (v *value) holdsLongNumbers() bool {
	if v.kind == '0' {
		return len(v.raw) > longNumber || bytes.ContainsAny(v.raw, "eE")
	}
	for _, m := range v.fields {
		if m.val.holdsLongNumbers() {
			return true
		}
	}
	return slices.ContainsFunc(v.items, (*value).holdsLongNumbers)
}
