package manifest

import (
	"encoding/json"
	"testing"
)

// What surely fits a simple schema is what the validator takes too.
func FuzzSimple(f *testing.F) {
	for _, seed := range [][2]string{
		{`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":["integer","null"]}},"required":["a"]}`, `{"a":"x","b":1.0,"c":[]}`},
		{`{"type":"object","properties":{"a":{"type":"array","items":{"type":"number"}}},"additionalProperties":false}`, `{"a":[1,2.5,-3e2],"a":[4]}`},
		{`{"properties":{"a":{"required":["b"]},"c":{"minimum":3}}}`, `{"a":5,"c":2}`},
		{`{"items":{"type":"boolean"},"default":[],"format":"date","x":1}`, `[true,false]`},
		{`{"type":"object","properties":{"a":{},"b":{"type":"null"}}}`, `{"a":1e999,"b":null}`},
		{`{"type":"object","properties":{"\u0061":{"type":"string"}}}`, `{"a":"\ud800","\u0061":1}`},
		{`{"additionalProperties":{"type":"string"},"not":{}}`, `{}`},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"type":"string"}],"dependencies":{"a":["b"]}}`, `[1]`},
	} {
		f.Add([]byte(seed[0]), []byte(seed[1]))
	}
	f.Fuzz(func(t *testing.T, schema, raw []byte) {
		if !json.Valid(raw) || depthOf(raw) > maxArgumentDepth {
			return
		}
		var c checker
		c.compile(schema)
		tree := parseValue(raw)
		if c.resolved == nil || tree == nil || !c.simple.surelyFits(tree) {
			return
		}
		var v any
		if err := json.Unmarshal(raw, &v); err != nil {
			t.Fatalf("%s surely fits %s, but: %v", raw, schema, err)
		}
		if err := c.resolved.Validate(v); err != nil {
			t.Errorf("%s surely fits %s, but: %v", raw, schema, err)
		}
	})
}

// Arguments that fit are taken without the validator, where the schema is as most are.
func TestSimpleSchemas(t *testing.T) {
	for _, tt := range []struct {
		schema, args string
		want         bool
	}{
		{`{"type":"object","properties":{"a":{"type":"string","description":"d"}},"required":["a"]}`, `{"a":"x","b":{"c":[1]}}`, true},
		{`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`, `{"b":1}`, false},
		{`{"type":"object","properties":{"a":{"type":"string"}}}`, `{"a":1}`, false},
		{`{"type":"object","properties":{"a":{"type":"integer"}}}`, `{"a":10}`, true},
		{`{"type":"object","properties":{"a":{"type":"integer"}}}`, `{"a":1.0}`, false}, // the validator's to say
		{`{"type":"object","additionalProperties":false,"properties":{"a":{"type":"array","items":{"type":"boolean"}}}}`, `{"a":[true]}`, true},
		{`{"type":"object","additionalProperties":false}`, `{"a":1}`, false},
		{`{"type":"object","properties":{"a":{"type":"array","items":{"type":"boolean"}}}}`, `{"a":[true,1]}`, false},
		{`{"type":"object","properties":{"a":{"enum":[1]}}}`, `{"a":1}`, false},
		{`{"type":"object"}`, `{"a":[1e999]}`, false},
	} {
		var c checker
		c.compile([]byte(tt.schema))
		if got := c.simple.surelyFits(parseValue([]byte(tt.args))); got != tt.want {
			t.Errorf("%s, %s: %t", tt.schema, tt.args, got)
		}
	}
}
