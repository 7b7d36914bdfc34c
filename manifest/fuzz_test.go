package manifest

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

func FuzzParse(f *testing.F) {
	for _, tools := range []string{
		`{"name":"a.b","description":"d","params":{"x":{"type":"string","optional":true},"y":"int"},"example":{"x":"1","y":"2"}}`,
		`{"name":"a","inputSchema":{"type":"object","properties":{"a":{"x-mcp-header":"H","enum":[1]}},"$defs":{"d":{"$ref":"#"}}},"icons":[{"src":"https://x/y"}]}`,
		`{"name":"a","inputSchema":"{\"type\":[\"object\"]}","annotations":{"readOnlyHint":true},"timeoutMs":5},{"name":"A"},null,7`,
		`{"name":"x","params":{"type":"object","properties":{"a":{"anyOf":[{"$ref":"#/properties/a"},{"pattern":"("}]}}},"example":[]}`,
		`{"name":"x","params":{"rows":{"items":{"properties":{"k":{"enum":[1,null,"a"],"nullable":true,"default":1}}}}},"example":{"rows":"[{\"k\":\"1\"}]"}}`,
		`{"name":"x","outputSchema":{"type":"object"},"source":"dynamic","origin":{"kind":"code","code":"return"},"title":"\u202e"}`,
	} {
		f.Add([]byte(`{"tools":[`+tools+`],"summary":"s","appLabel":"l","problems":[{"name":"n","index":1,"reason":"r"}]}`), "Shop 2", 0)
	}
	f.Fuzz(func(t *testing.T, frame []byte, label string, max int) {
		m, err := Parse(frame, Limits{})
		if err != nil {
			if m != nil || len(err.Error()) > 1000 {
				t.Errorf("%+v, %v", m, err)
			}
			return
		}
		limit := DefaultMaxName
		if max > 0 {
			max = max%200 + 1
			limit = maxOf(max, MinMaxName)
		}
		own := map[string]bool{}
		for _, tool := range m.Tools {
			if own[tool.Name] {
				t.Errorf("name %q twice", tool.Name)
			}
			own[tool.Name] = true
			checkTool(t, tool)
		}
		for _, prefix := range []string{"tab", Slug(label), SlugOrdinal(Slug(label), 2), label} {
			checkNames(t, PublishedNames(prefix, m.Tools, max), limit)
		}
		for _, p := range m.Problems {
			if !utf8.ValidString(p.Name+p.Reason) || strings.ContainsAny(p.Name+p.Reason, "\n\x1b") || p.Reason == "" {
				t.Errorf("problem %+v", p)
			}
		}
	})
}

func checkTool(t *testing.T, tool *Tool) {
	t.Helper()
	var schema map[string]any
	if err := json.Unmarshal(tool.InputSchema, &schema); err != nil || schema["type"] != "object" {
		t.Errorf("input schema %q: %v", tool.InputSchema, err)
	}
	if _, ok := schema["properties"].(map[string]any); !ok {
		t.Errorf("input schema %q has no properties", tool.InputSchema)
	}
	for _, raw := range []json.RawMessage{tool.OutputSchema, tool.Example, tool.Annotations, tool.Icons} {
		if raw != nil && (!json.Valid(raw) || !utf8.Valid(raw)) {
			t.Errorf("not valid: %q", raw)
		}
	}
	for _, raw := range []json.RawMessage{nil, json.RawMessage(`{}`), tool.Example} {
		checkArguments(t, tool, raw)
	}
	tool.SchemaProblem()
}

func checkArguments(t *testing.T, tool *Tool, raw json.RawMessage) {
	t.Helper()
	got, err := tool.CheckArguments(raw)
	var arg *ArgumentError
	switch {
	case err != nil && (!errors.As(err, &arg) || got != nil || arg.Reason == "" || strings.ContainsAny(arg.Reason, "\n\x1b")):
		t.Errorf("error %#v with result %q", err, got)
	case err == nil && (kindOf(got) != "an object" || !json.Valid(got) || !utf8.Valid(got)):
		t.Errorf("arguments %q became %q", raw, got)
	case err == nil:
		if again, err := tool.CheckArguments(got); err != nil || string(again) != string(got) {
			t.Errorf("%q became %q and, checked again, %q, %v", raw, got, again, err)
		}
	}
}

func FuzzCheckArguments(f *testing.F) {
	for _, seed := range [][2]string{
		{`{"properties":{"n":{"type":"number"},"b":{"type":"boolean"}},"required":["n"]}`, `{"n":"5","b":"True"}`},
		{`{"properties":{"o":{"$ref":"#"},"a":{"type":"array","items":{"type":"integer"}}}}`, `{"o":{"o":"{\"a\":\"[1,\\\"2\\\"]\"}"}}`},
		{`{"properties":{"e":{"enum":["a",1,null]},"z":{"anyOf":[{"type":"number"},{"type":"null"}]}},"additionalProperties":false}`, `{"e":null,"z":"null","q":1}`},
		{`{"properties":{"e":{"type":["integer","null"],"minimum":1,"multipleOf":0.5}},"patternProperties":{"^x":{"type":"string"}}}`, `{"e":"7.0","x":null}`},
		{`{"propertyNames":{"maxLength":2},"dependentRequired":{"a":["b"]},"minProperties":1,"not":{"required":["z"]}}`, `{"abc":1}`},
		{`{"properties":{"a":{"prefixItems":[{"const":1}],"contains":{"type":"string"},"uniqueItems":true,"unevaluatedItems":false}}}`, `"{\"a\":[1,1e999]}"`},
		{`{"$defs":{"a":{"allOf":[{"$ref":"#/$defs/b"},{"$ref":"#/$defs/b"}]},"b":{"properties":{"x":{"$ref":"#/$defs/a"}}}},"$ref":"#/$defs/a"}`, `{"x":{"x":{"x":{}}}}`},
	} {
		f.Add([]byte(seed[0]), []byte(seed[1]))
	}
	f.Fuzz(func(t *testing.T, schema, args []byte) {
		tool := &Tool{Name: "x", InputSchema: schema}
		if clean, err := objectSchema(schema, "schema", Limits{}.withDefaults()); err == nil {
			tool.InputSchema = clean
		}
		checkArguments(t, tool, args)
		if len(tool.SchemaProblem()) > maxReasonBytes {
			t.Errorf("problem of %d bytes", len(tool.SchemaProblem()))
		}
	})
}
