package manifest

import (
	"maps"
	"slices"
	"strconv"

	"github.com/google/jsonschema-go/jsonschema"
)

// relation says which values an inner schema applies to.
type relation int

const (
	elsewhere     relation = iota // none by itself: a definition
	sameValue                     // the value itself
	anyBranch                     // the value itself; the error texts of all such branches are joined
	oneItem                       // the element at index
	everyItem                     // all elements
	oneProperty                   // the member called key
	otherProperty                 // members not in properties
	everyProperty                 // all members
	propertyName                  // the names of members
)

// edge leads from a schema to one that the validator visits from there.
type edge struct {
	relation relation
	key      string
	index    int
	to       *plan
}

// subschema is a schema right inside another one.
type subschema struct {
	edge
	at     string // JSON pointer, relative and without the first slash
	schema *jsonschema.Schema
}

// subschemas lists the schemas right inside s, in a fixed order. It must know every field of Schema that holds schemas;
// a test compares it with the type.
func subschemas(s *jsonschema.Schema) []subschema {
	var out []subschema
	one := func(at string, r relation, sub *jsonschema.Schema) {
		if sub != nil {
			out = append(out, subschema{edge{relation: r}, at, sub})
		}
	}
	list := func(at string, r relation, subs []*jsonschema.Schema) {
		for i, sub := range subs {
			out = append(out, subschema{edge{relation: r, index: i}, at + "/" + strconv.Itoa(i), sub})
		}
	}
	named := func(at string, r relation, subs map[string]*jsonschema.Schema) {
		for _, key := range slices.Sorted(maps.Keys(subs)) {
			out = append(out, subschema{edge{relation: r, key: key}, at + "/" + escapePointer(key), subs[key]})
		}
	}
	named("$defs", elsewhere, s.Defs)
	named("definitions", elsewhere, s.Definitions)
	one("contentSchema", elsewhere, s.ContentSchema)

	list("allOf", sameValue, s.AllOf)
	list("anyOf", anyBranch, s.AnyOf)
	list("oneOf", sameValue, s.OneOf)
	one("not", sameValue, s.Not)
	one("if", sameValue, s.If)
	one("then", sameValue, s.Then)
	one("else", sameValue, s.Else)
	named("dependencies", sameValue, s.DependencySchemas)
	named("dependentSchemas", sameValue, s.DependentSchemas)

	list("prefixItems", oneItem, s.PrefixItems)
	list("items", oneItem, s.ItemsArray)
	one("items", everyItem, s.Items)
	one("additionalItems", everyItem, s.AdditionalItems)
	one("unevaluatedItems", everyItem, s.UnevaluatedItems)
	one("contains", everyItem, s.Contains)

	named("properties", oneProperty, s.Properties)
	named("patternProperties", everyProperty, s.PatternProperties)
	one("additionalProperties", otherProperty, s.AdditionalProperties)
	one("unevaluatedProperties", everyProperty, s.UnevaluatedProperties)
	one("propertyNames", propertyName, s.PropertyNames)
	return out
}
