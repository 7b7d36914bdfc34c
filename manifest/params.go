package manifest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// paramTypes are the types of the shorthand, as messages list them.
const paramTypes = "string, number, integer, boolean, array, object"

// paramType returns the JSON Schema type that a page means by name, or "".
func paramType(name string) string {
	switch strings.ToLower(strings.TrimSpace(name)) {
	case "string", "str", "text":
		return "string"
	case "number", "float", "double":
		return "number"
	case "integer", "int", "long":
		return "integer"
	case "boolean", "bool":
		return "boolean"
	case "array", "list":
		return "array"
	case "object", "dict", "map":
		return "object"
	case "null":
		return "null"
	}
	return ""
}

// fromParams turns the shorthand into a JSON Schema. raw must be a valid JSON object of bounded depth. The outcome is the
// same, byte for byte, for the same raw.
func fromParams(raw json.RawMessage) (json.RawMessage, error) {
	fields, _, _ := objectFields(raw)
	if looksLikeSchema(fields) {
		return raw, nil
	}
	properties, required, err := convertParams(fields, "", false)
	if err != nil {
		return nil, err
	}
	out := []field{{"type", json.RawMessage(`"object"`)}, {"properties", properties}}
	if required != nil {
		out = append(out, field{"required", required})
	}
	return encodeObject(out), nil
}

// looksLikeSchema reports whether a page gave a whole JSON Schema as params. It can be told from two parameters named type
// and properties, since the spec of the latter would have a type.
func looksLikeSchema(fields []field) bool {
	var typ string
	var properties json.RawMessage
	for _, f := range fields {
		switch f.key {
		case "type":
			typ, _ = unquote(f.raw)
		case "properties":
			properties = f.raw
		}
	}
	specs := true
	ok := eachField(properties, func(_ string, raw json.RawMessage) bool {
		specs = kindOf(raw) == "an object"
		return specs
	})
	return ok && specs && typ == "object"
}

// convertParams returns the properties object and the required array (nil if empty) for parameters under path. Inside
// items, lax, a schema without a type is fine.
func convertParams(fields []field, path string, lax bool) (properties, required json.RawMessage, err error) {
	var names []json.RawMessage
	out := make([]field, 0, len(fields))
	for _, f := range fields {
		p := param{path: joinPath(path, f.key), lax: lax}
		schema, err := p.convert(f.raw)
		if err != nil {
			return nil, nil, err
		}
		out = append(out, field{f.key, schema})
		if !p.optional {
			names = append(names, appendString(nil, f.key))
		}
	}
	if names != nil {
		required = encodeArray(names)
	}
	return encodeObject(out), required, nil
}

// param is one parameter while it is converted.
type param struct {
	path     string
	lax      bool
	types    []string // without "null"
	nullable bool
	optional bool
	rest     []field // all but type and enum
	enum     []json.RawMessage
	keys     map[string]bool // what the spec has
	ownList  bool            // its required is an array, as in JSON Schema
}

func (p *param) errorf(format string, args ...any) error {
	return fmt.Errorf("parameter %q: %w", quotable(p.path), fmt.Errorf(format, args...))
}

// convert returns the schema of one parameter.
func (p *param) convert(raw json.RawMessage) (json.RawMessage, error) {
	if name, ok := unquote(raw); ok {
		raw = encodeObject([]field{{"type", appendString(nil, name)}})
	}
	if string(raw) == "true" && p.lax {
		return json.RawMessage("{}"), nil
	}
	fields, _, ok := objectFields(raw)
	if !ok {
		return nil, p.errorf("must be {type, description?, …} or the name of a type, not %s", kindOf(raw))
	}
	p.keys = map[string]bool{}
	for _, f := range fields {
		p.keys[f.key] = true
		p.ownList = p.ownList || f.key == "required" && kindOf(f.raw) == "an array"
	}
	for _, f := range fields {
		if err := p.keyword(f); err != nil {
			return nil, err
		}
	}
	if err := p.settleType(); err != nil {
		return nil, err
	}
	if p.enum != nil {
		if p.nullable && !slices.ContainsFunc(p.enum, func(v json.RawMessage) bool { return string(v) == "null" }) {
			p.enum = append(p.enum, json.RawMessage("null"))
		}
		p.rest = append(p.rest, field{"enum", encodeArray(p.enum)})
	}
	if slices.Contains(p.types, "array") && !p.keys["items"] {
		p.rest = append(p.rest, field{"items", json.RawMessage("{}")}) // some clients refuse an array without
	}
	return encodeObject(append(p.typeField(), p.rest...)), nil
}

// keyword takes in one member of the spec.
func (p *param) keyword(f field) (err error) {
	switch f.key {
	case "type":
		return p.readType(f.raw)
	case "optional", "nullable":
		v, ok := boolean(f.raw)
		if !ok {
			return p.errorf("%s must be true or false, not %s", f.key, kindOf(f.raw))
		}
		if f.key == "optional" {
			p.optional = p.optional || v
		} else {
			p.nullable = v || p.nullable
		}
		return nil
	case "required":
		return p.readRequired(f)
	case "default":
		p.optional = true
	case "description", "title":
		if kindOf(f.raw) != "text" {
			return p.errorf("%s must be text, not %s", f.key, kindOf(f.raw))
		}
	case "enum":
		return p.readEnum(f.raw)
	case "items":
		items := param{path: p.path + "[]", lax: true}
		if f.raw, err = items.convert(f.raw); err != nil {
			return err
		}
	case "properties":
		return p.readProperties(f.raw)
	}
	p.rest = append(p.rest, f)
	return nil
}

func (p *param) readType(raw json.RawMessage) error {
	names := typeList(raw)
	if len(names) == 0 {
		return p.errorf("type must be one of %s, not %s", paramTypes, kindOf(raw))
	}
	for _, name := range names {
		t := paramType(name)
		switch {
		case t == "null":
			p.nullable = true
		case t == "":
			return p.errorf("unknown type %q, must be one of %s", quotable(name), paramTypes)
		case !slices.Contains(p.types, t):
			p.types = append(p.types, t)
		}
	}
	if p.types == nil {
		return p.errorf("type null alone makes no parameter, must be one of %s", paramTypes)
	}
	return nil
}

// readRequired takes required both for the parameter itself (a boolean, the opposite of optional) and as JSON Schema has
// it, for the properties.
func (p *param) readRequired(f field) error {
	if v, ok := boolean(f.raw); ok {
		p.optional = p.optional || !v
		return nil
	}
	if json.Unmarshal(f.raw, new([]string)) != nil {
		return p.errorf("required must be true, false or an array of names, not %s", kindOf(f.raw))
	}
	p.rest = append(p.rest, f)
	return nil
}

func (p *param) readEnum(raw json.RawMessage) error {
	ok := eachItem(raw, func(v json.RawMessage) bool {
		p.enum = append(p.enum, v)
		return true
	})
	if !ok || len(p.enum) == 0 {
		return p.errorf("enum must be an array with at least one value")
	}
	return nil
}

func (p *param) readProperties(raw json.RawMessage) error {
	fields, _, ok := objectFields(raw)
	if !ok {
		return p.errorf("properties must be an object, not %s", kindOf(raw))
	}
	properties, required, err := convertParams(fields, p.path, p.lax)
	if err != nil {
		return err
	}
	p.rest = append(p.rest, field{"properties", properties})
	if required != nil && !p.ownList {
		p.rest = append(p.rest, field{"required", required})
	}
	return nil
}

// settleType infers a missing type.
func (p *param) settleType() error {
	if p.types != nil {
		return nil
	}
	switch {
	case p.keys["properties"]:
		p.types = []string{"object"}
	case p.keys["items"]:
		p.types = []string{"array"}
	case p.enum != nil:
		for _, v := range p.enum {
			p.inferType(v)
		}
	case p.keys["anyOf"], p.keys["oneOf"], p.keys["allOf"], p.keys["$ref"], p.keys["const"], p.lax:
	default:
		return p.errorf("the type is missing, must be one of %s", paramTypes)
	}
	return nil
}

// inferType adds the type of one value of enum.
func (p *param) inferType(v json.RawMessage) {
	t := ""
	switch v[0] {
	case '"':
		t = "string"
	case '{':
		t = "object"
	case '[':
		t = "array"
	case 't', 'f':
		t = "boolean"
	case 'n':
		p.nullable = true
		return
	default:
		t = "integer"
		if strings.ContainsAny(string(v), ".eE") {
			t = "number"
		}
	}
	if !slices.Contains(p.types, t) {
		p.types = append(p.types, t)
	}
}

// typeField returns the type keyword, if there is one.
func (p *param) typeField() []field {
	types := slices.Clone(p.types)
	if len(types) == 0 {
		return nil
	}
	if p.nullable {
		types = append(types, "null")
	}
	if len(types) == 1 {
		return []field{{"type", appendString(nil, types[0])}}
	}
	var list []json.RawMessage
	for _, t := range types {
		list = append(list, appendString(nil, t))
	}
	return []field{{"type", encodeArray(list)}}
}
