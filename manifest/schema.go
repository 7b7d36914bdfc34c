package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// shapeKind says what the value of a JSON Schema keyword is made of.
type shapeKind int

const (
	holdsData       shapeKind = iota // anything; not looked into
	holdsSchema                      // a schema, or for items also an array of them
	holdsSchemas                     // an array of schemas
	holdsNamed                       // an object of schemas; its keys are no keywords
	holdsText                        // text for people and agents
	holdsHeaderName                  // x-mcp-header, never published
)

// keywordKind classifies the keywords of draft-07 and 2020-12.
func keywordKind(key string) shapeKind {
	switch key {
	case "additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not",
		"propertyNames", "then", "unevaluatedItems", "unevaluatedProperties":
		return holdsSchema
	case "allOf", "anyOf", "oneOf", "prefixItems":
		return holdsSchemas
	case "$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties":
		return holdsNamed
	case "title", "description", "$comment":
		return holdsText
	}
	if strings.EqualFold(key, "x-mcp-header") {
		return holdsHeaderName
	}
	return holdsData
}

// objectSchema returns the page's schema as every client accepts it: a JSON object with "type":"object" and "properties".
// Bytes are kept apart from white space, but for what is added, for x-mcp-header (which would make clients copy an
// argument into an HTTP header), repeated keys, and invisible characters in titles and descriptions. The schema may also
// be given as JSON text.
func objectSchema(raw json.RawMessage, what string, l Limits) (json.RawMessage, error) {
	if s, ok := unquote(raw); ok {
		raw = json.RawMessage(s)
	}
	raw, err := boundedJSON(raw, what, l)
	if err != nil {
		return nil, err
	}
	if raw[0] != '{' {
		return nil, fmt.Errorf("%s must be a JSON Schema object, not %s", what, kindOf(raw))
	}
	fields, repeated, _ := objectFields(raw)
	changed := repeated
	i := slices.IndexFunc(fields, func(f field) bool { return f.key == "type" })
	switch {
	case i < 0:
		fields = append([]field{{"type", json.RawMessage(`"object"`)}}, fields...)
		changed = true
	case string(fields[i].raw) == `"object"`:
	case bytes.HasPrefix(fields[i].raw, []byte("[")) && slices.Contains(typeList(fields[i].raw), "object"):
		fields[i].raw = json.RawMessage(`"object"`) // arguments always are one
		changed = true
	default:
		return nil, fmt.Errorf(`%s must have "type":"object" at the top, not %q`, what, quotable(string(fields[i].raw)))
	}
	hasProperties := false
	for _, f := range fields {
		switch f.key {
		case "properties":
			hasProperties = true
			if f.raw[0] != '{' {
				return nil, fmt.Errorf("properties in %s must be an object, not %s", what, kindOf(f.raw))
			}
		case "required":
			if json.Unmarshal(f.raw, new([]string)) != nil {
				return nil, fmt.Errorf("required in %s must be an array of names, not %q", what, quotable(string(f.raw)))
			}
		}
	}
	if !hasProperties {
		fields = append(fields, field{"properties", json.RawMessage(`{}`)})
		changed = true
	}
	if changed {
		raw = encodeObject(fields)
	}
	return cleanSchema(raw), nil
}

// cleanSchema returns raw without x-mcp-header keywords and with cleaned texts, wherever a schema stands in it; never
// inside data such as enum, const, default or examples. It returns raw itself if there is nothing to do.
func cleanSchema(raw json.RawMessage) json.RawMessage {
	fields, changed, ok := objectFields(raw)
	if !ok { // true, false, or no schema at all
		return raw
	}
	kept := make([]field, 0, len(fields))
	for _, f := range fields {
		v := f.raw
		switch keywordKind(f.key) {
		case holdsHeaderName:
			changed = true
			continue
		case holdsSchema, holdsSchemas:
			v = cleanEach(v)
		case holdsNamed:
			v = cleanNamed(v)
		case holdsText:
			v = cleanText(v)
		}
		changed = changed || !bytes.Equal(v, f.raw)
		kept = append(kept, field{f.key, v})
	}
	if !changed {
		return raw
	}
	return encodeObject(kept)
}

func cleanEach(raw json.RawMessage) json.RawMessage {
	if raw[0] != '[' {
		return cleanSchema(raw)
	}
	var out []json.RawMessage
	changed := false
	eachItem(raw, func(item json.RawMessage) bool {
		v := cleanSchema(item)
		changed = changed || !bytes.Equal(v, item)
		out = append(out, v)
		return true
	})
	if !changed {
		return raw
	}
	return encodeArray(out)
}

func cleanNamed(raw json.RawMessage) json.RawMessage {
	fields, changed, ok := objectFields(raw)
	if !ok {
		return raw
	}
	for i, f := range fields {
		fields[i].raw = cleanSchema(f.raw)
		changed = changed || !bytes.Equal(fields[i].raw, f.raw)
	}
	if !changed {
		return raw
	}
	return encodeObject(fields)
}

func cleanText(raw json.RawMessage) json.RawMessage {
	s, ok := unquote(raw)
	if !ok || strings.IndexFunc(s, func(r rune) bool { return r != '\n' && r != '\t' && hidden(r) }) < 0 {
		return raw
	}
	return appendString(nil, Clean(s, 0, true))
}

// typeList decodes the value of the type keyword; nil if it is neither text nor an array of texts.
func typeList(raw json.RawMessage) []string {
	if s, ok := unquote(raw); ok {
		return []string{s}
	}
	var list []string
	if json.Unmarshal(raw, &list) != nil {
		return nil
	}
	return list
}
