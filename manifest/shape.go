package manifest

import (
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

const (
	maxShapes  = 5000 // schemas looked at for one tool
	maxRefs    = 500  // different references followed
	maxRefHops = 16   // references in a row
)

// shape is what mending and explaining need to know of a schema. It is no validator: it says what type is wanted where,
// in the simple cases, and stays silent in the others. Shapes may form cycles, as references do.
type shape struct {
	types       []string // nil: anything
	enum        []json.RawMessage
	description string
	names       []string // of properties, in order
	properties  map[string]*shape
	required    []string
	requires    map[string]bool // the same
	rest        *shape          // of properties not named
	closed      bool            // no others than those named
	patterned   bool            // members may be described by patterns, which are not looked at
	items       *shape
	prefix      []*shape
	bounds      map[string]json.RawMessage // minimum, maxLength and the like
	ref         *shape
	alternatives
}

// alternatives are the branches of anyOf or oneOf.
type alternatives []*shape

// shaper builds shapes.
type shaper struct {
	root json.RawMessage
	refs map[string]*shape
	left int
}

// newShape returns the shape of a whole schema, which must be valid JSON of bounded depth.
func newShape(root json.RawMessage) *shape {
	s := &shape{}
	b := shaper{root: root, refs: map[string]*shape{"#": s}, left: maxShapes}
	b.fill(s, root)
	return s
}

func (b *shaper) build(raw json.RawMessage) *shape {
	s := &shape{}
	b.fill(s, raw)
	return s
}

func (b *shaper) fill(s *shape, raw json.RawMessage) {
	if b.left--; b.left < 0 {
		return
	}
	fields, _, _ := objectFields(raw)
	for _, f := range fields {
		b.keyword(s, f)
	}
	if s.types == nil && s.enum != nil {
		var p param
		for _, v := range s.enum {
			p.inferType(v)
		}
		s.types = p.types
		if p.nullable {
			s.types = append(s.types, "null")
		}
	}
}

func (b *shaper) keyword(s *shape, f field) {
	switch f.key {
	case "type":
		s.types = typeList(f.raw)
	case "enum":
		eachItem(f.raw, func(v json.RawMessage) bool {
			s.enum = append(s.enum, v)
			return true
		})
	case "const":
		s.enum = []json.RawMessage{f.raw}
	case "description":
		s.description, _ = unquote(f.raw)
	case "properties":
		b.properties(s, f.raw)
	case "required":
		if json.Unmarshal(f.raw, &s.required) != nil {
			s.required = nil
		}
		s.requires = make(map[string]bool, len(s.required))
		for _, key := range s.required {
			s.requires[key] = true
		}
	case "additionalProperties":
		if string(f.raw) == "false" {
			s.closed = true
		} else {
			s.rest = b.build(f.raw)
		}
	case "patternProperties":
		s.patterned = true
	case "items":
		if kindOf(f.raw) == "an object" {
			s.items = b.build(f.raw)
		}
	case "prefixItems":
		s.prefix = b.list(f.raw)
	case "anyOf", "oneOf":
		s.alternatives = b.list(f.raw)
	case "allOf":
		if all := b.list(f.raw); len(all) == 1 {
			s.ref = all[0]
		}
	case "$ref":
		s.ref = b.reference(f.raw)
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "minItems", "maxItems",
		"pattern":
		if s.bounds == nil {
			s.bounds = map[string]json.RawMessage{}
		}
		s.bounds[f.key] = f.raw
	}
}

func (b *shaper) properties(s *shape, raw json.RawMessage) {
	fields, _, _ := objectFields(raw)
	s.properties = make(map[string]*shape, len(fields))
	for _, f := range fields {
		s.names = append(s.names, f.key)
		s.properties[f.key] = b.build(f.raw)
	}
}

func (b *shaper) list(raw json.RawMessage) (out []*shape) {
	eachItem(raw, func(raw json.RawMessage) bool {
		out = append(out, b.build(raw))
		return b.left > 0
	})
	return out
}

// reference returns the shape of a local reference, or nil. It is entered before it is filled, so cycles close.
func (b *shaper) reference(raw json.RawMessage) *shape {
	ref, _ := unquote(raw)
	if s := b.refs[ref]; s != nil || len(b.refs) >= maxRefs {
		return s
	}
	target := resolvePointer(b.root, ref)
	if target == nil {
		return nil
	}
	s := &shape{}
	b.refs[ref] = s
	b.fill(s, target)
	return s
}

// resolvePointer returns what a reference such as #/$defs/x points to within root, or nil.
func resolvePointer(root json.RawMessage, ref string) json.RawMessage {
	segments, ok := pointerSegments(ref)
	if !ok {
		return nil
	}
	for _, seg := range segments {
		if kindOf(root) == "an array" {
			n, err := strconv.Atoi(seg)
			var found json.RawMessage
			eachItem(root, func(raw json.RawMessage) bool {
				if n--; n == -1 {
					found = raw
				}
				return n >= 0
			})
			if root = found; err != nil {
				return nil
			}
		} else {
			f, _ := pick(root, seg)
			root = f[seg]
		}
		if root == nil {
			return nil
		}
	}
	return root
}

// pointerSegments splits a reference of the form #/a/b, undoing both kinds of escape.
func pointerSegments(ref string) ([]string, bool) {
	if ref == "#" {
		return nil, true
	}
	rest, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return nil, false
	}
	rest, err := url.PathUnescape(rest)
	if err != nil {
		return nil, false
	}
	segments := strings.Split(rest, "/")
	unescape := strings.NewReplacer("~0", "~", "~1", "/")
	for i := range segments {
		segments[i] = unescape.Replace(segments[i])
	}
	return segments, true
}

// kinds returns the JSON types that a value may have; nil means any or not known.
func (s *shape) kinds() []string { return s.kindsWithin(maxRefHops) }

func (s *shape) kindsWithin(hops int) []string {
	switch {
	case s.types != nil || hops == 0:
		return s.types
	case s.ref != nil:
		return s.ref.kindsWithin(hops - 1)
	case len(s.alternatives) > 8: // no simple case any more
		return nil
	}
	var out []string
	for _, alt := range s.alternatives {
		kinds := alt.kindsWithin(min(hops, 3) - 1)
		if kinds == nil {
			return nil
		}
		out = append(out, kinds...)
	}
	return out
}

// deep returns the shape that describes the inside of a value: s, or what it refers to, or its only alternative but null.
func (s *shape) deep() *shape {
	for range maxRefHops {
		switch {
		case s.properties != nil || s.items != nil || s.prefix != nil || s.rest != nil || s.closed:
			return s
		case s.ref != nil:
			s = s.ref
		default:
			only := s.onlyAlternative()
			if only == nil {
				return s
			}
			s = only
		}
	}
	return s
}

func (s *shape) onlyAlternative() (only *shape) {
	for _, alt := range s.alternatives {
		if slices.Equal(alt.types, []string{"null"}) {
			continue
		}
		if only != nil {
			return nil
		}
		only = alt
	}
	return only
}

// property returns the shape of a property, or nil.
func (s *shape) property(key string) *shape {
	if p := s.properties[key]; p != nil || s.patterned {
		return p
	}
	return s.rest
}

// item returns the shape of an element, or nil.
func (s *shape) item(i int) *shape {
	if i < len(s.prefix) {
		return s.prefix[i]
	}
	return s.items
}

// about returns the description, from the reference if s itself has none.
func (s *shape) about() string {
	for range maxRefHops {
		if s.description != "" || s.ref == nil {
			break
		}
		s = s.ref
	}
	return s.description
}
