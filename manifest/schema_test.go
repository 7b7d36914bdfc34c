package manifest

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestParamsBecomeASchema(t *testing.T) {
	for _, tt := range []struct{ name, params, want string }{
		{"none", `{}`, `{"type":"object","properties":{}}`},
		{"in page order", `{"z":{"type":"string"},"a":{"type":"number","description":"An a"}}`,
			`{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"number","description":"An a"}},"required":["z","a"]}`},
		{"optional", `{"a":{"type":"string","optional":true},"b":{"type":"string","optional":false}}`,
			`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"required":["b"]}`},
		{"default makes optional", `{"a":{"type":"integer","default":5}}`,
			`{"type":"object","properties":{"a":{"type":"integer","default":5}}}`},
		{"required as a boolean", `{"a":{"type":"string","required":false},"b":{"type":"string","required":true}}`,
			`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"required":["b"]}`},
		{"nullable", `{"a":{"type":"string","nullable":true}}`,
			`{"type":"object","properties":{"a":{"type":["string","null"]}},"required":["a"]}`},
		{"nullable with enum", `{"a":{"enum":["x"],"nullable":true}}`,
			`{"type":"object","properties":{"a":{"type":["string","null"],"enum":["x",null]}},"required":["a"]}`},
		{"enum infers text", `{"a":{"enum":["x","y"]}}`,
			`{"type":"object","properties":{"a":{"type":"string","enum":["x","y"]}},"required":["a"]}`},
		{"enum infers more", `{"a":{"enum":[1,2.5,true,null,[],{}]}}`,
			`{"type":"object","properties":{"a":{"type":["integer","number","boolean","array","object","null"],"enum":[1,2.5,true,null,[],{}],"items":{}}},"required":["a"]}`},
		{"array without items", `{"rows":{"type":"array"}}`,
			`{"type":"object","properties":{"rows":{"type":"array","items":{}}},"required":["rows"]}`},
		{"array with items", `{"rows":{"type":"array","items":{"type":"int"}}}`,
			`{"type":"object","properties":{"rows":{"type":"array","items":{"type":"integer"}}},"required":["rows"]}`},
		{"items by name", `{"rows":{"items":"str"}}`,
			`{"type":"object","properties":{"rows":{"type":"array","items":{"type":"string"}}},"required":["rows"]}`},
		{"items of any type", `{"rows":{"type":"array","items":{"description":"d"}},"cells":{"items":true}}`,
			`{"type":"object","properties":{"rows":{"type":"array","items":{"description":"d"}},"cells":{"type":"array","items":{}}},"required":["rows","cells"]}`},
		{"array in array", `{"m":{"type":"array","items":{"type":"list"}}}`,
			`{"type":"object","properties":{"m":{"type":"array","items":{"type":"array","items":{}}}},"required":["m"]}`},
		{"nested properties", `{"o":{"properties":{"a":"string","b":{"type":"bool","optional":true}}}}`,
			`{"type":"object","properties":{"o":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"boolean"}},"required":["a"]}},"required":["o"]}`},
		{"nested JSON Schema", `{"o":{"type":"object","required":["b"],"properties":{"a":{"type":"string"},"b":{"type":"string"}},"additionalProperties":false}}`,
			`{"type":"object","properties":{"o":{"type":"object","required":["b"],"properties":{"a":{"type":"string"},"b":{"type":"string"}},"additionalProperties":false}},"required":["o"]}`},
		{"bare types", `{"title":"string","n":"Int"}`,
			`{"type":"object","properties":{"title":{"type":"string"},"n":{"type":"integer"}},"required":["title","n"]}`},
		{"type list", `{"a":{"type":["string","null"]},"b":{"type":["String","number"]}}`,
			`{"type":"object","properties":{"a":{"type":["string","null"]},"b":{"type":["string","number"]}},"required":["a","b"]}`},
		{"other keywords pass", `{"a":{"type":"number","minimum":1,"x-mcp-header":"H"}}`,
			`{"type":"object","properties":{"a":{"type":"number","minimum":1}},"required":["a"]}`},
		{"no type but alternatives", `{"a":{"anyOf":[{"type":"string"}]},"b":{"const":1}}`,
			`{"type":"object","properties":{"a":{"anyOf":[{"type":"string"}]},"b":{"const":1}},"required":["a","b"]}`},
		{"repeated parameter", `{"a":"string","b":"string","a":"number"}`,
			`{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"string"}},"required":["a","b"]}`},
		{"a whole schema", `{"type":"object","properties":{"a":{"type":"string"}},"required":[]}`,
			`{"type":"object","properties":{"a":{"type":"string"}},"required":[]}`},
		{"parameters called type and properties", `{"type":"object","properties":{"type":"object"}}`,
			`{"type":"object","properties":{"type":{"type":"object"},"properties":{"type":"object"}},"required":["type","properties"]}`},
		{"name with markup", `{"<a&b>":{"type":"string","description":"<b>\u200b"}}`,
			`{"type":"object","properties":{"<a&b>":{"type":"string","description":"<b>"}},"required":["<a&b>"]}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := string(one(t, `{"name":"x","params":`+tt.params+`}`).InputSchema); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestNearMissesOfTypesAreMended(t *testing.T) {
	for want, spellings := range map[string]string{
		"string":  "string String str text",
		"number":  "number Number float double",
		"integer": "integer int Int long",
		"boolean": "boolean bool Boolean",
		"array":   "array list Array",
		"object":  "object dict map Object",
	} {
		for _, s := range strings.Fields(spellings) {
			schema := string(one(t, `{"name":"x","params":{"a":{"type":"`+s+`"}}}`).InputSchema)
			if !strings.Contains(schema, `"a":{"type":"`+want+`"`) {
				t.Errorf("%s: %s", s, schema)
			}
		}
	}
}

func TestBadParamsAreRefusedByName(t *testing.T) {
	for _, tt := range []struct{ name, params, want string }{
		{"no type", `{"a":{"description":"d"}}`, `parameter "a": the type is missing`},
		{"no type, nested", `{"o":{"properties":{"b":{}}}}`, `parameter "o.b": the type is missing`},
		{"unknown type", `{"a":{"type":"any"}}`, `parameter "a": unknown type "any", must be one of string, number`},
		{"unknown type in items", `{"a":{"items":"function"}}`, `parameter "a[]": unknown type "function"`},
		{"null only", `{"a":{"type":"null"}}`, `type null alone`},
		{"type a number", `{"a":{"type":5}}`, `type must be one of`},
		{"type an empty list", `{"a":{"type":[]}}`, `type must be one of`},
		{"spec a number", `{"a":5}`, `parameter "a": must be {type`},
		{"spec null", `{"a":null}`, `parameter "a": must be {type`},
		{"optional text", `{"a":{"type":"string","optional":"yes"}}`, `optional must be true or false`},
		{"nullable number", `{"a":{"type":"string","nullable":1}}`, `nullable must be true or false`},
		{"description an object", `{"a":{"type":"string","description":{}}}`, `description must be text`},
		{"enum empty", `{"a":{"enum":[]}}`, `enum must be an array with at least one value`},
		{"enum an object", `{"a":{"type":"string","enum":{}}}`, `enum must be an array`},
		{"items an array", `{"a":{"type":"array","items":["string"]}}`, `parameter "a[]"`},
		{"properties an array", `{"a":{"properties":[]}}`, `properties must be an object`},
		{"required a number", `{"a":{"type":"string","required":3}}`, `required must be`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := parse(t, `{"name":"x","params":`+tt.params+`}`)
			if len(m.Tools) != 0 || len(m.Problems) != 1 || !strings.Contains(m.Problems[0].Reason, tt.want) {
				t.Errorf("%d tools, problems %+v; want a refusal with %q", len(m.Tools), m.Problems, tt.want)
			}
		})
	}
}

func TestInputSchemaPassesVerbatim(t *testing.T) {
	for _, tt := range []struct{ name, schema, want string }{
		{"as it is", `{"$schema":"x","type":"object","properties":{"b":{"type":"array"},"a":{"default":1.10}},"zz":[1e2,"<&>"]}`, ""},
		{"white space goes", `{ "type" : "object", "properties" : { } }`, `{"type":"object","properties":{}}`},
		{"empty", `{}`, `{"type":"object","properties":{}}`},
		{"type missing", `{"properties":{"a":{}}}`, `{"type":"object","properties":{"a":{}}}`},
		{"properties missing", `{"type":"object","additionalProperties":true}`, `{"type":"object","additionalProperties":true,"properties":{}}`},
		{"type a list with object", `{"type":["object","null"],"properties":{}}`, `{"type":"object","properties":{}}`},
		{"as text", `"{\"type\":\"object\",\"properties\":{\"a\":{}}}"`, `{"type":"object","properties":{"a":{}}}`},
		{"repeated type", `{"type":"string","type":"object","properties":{}}`, `{"type":"object","properties":{}}`},
		{"wins over params", `{"type":"object","properties":{}}`, ""},
		{"header keyword", `{"type":"object","x-mcp-header":"A","properties":{"a":{"type":"object","X-Mcp-Header":"B","properties":{"x-mcp-header":{"type":"string","x-mcp-header":"C"}}}}}`,
			`{"type":"object","properties":{"a":{"type":"object","properties":{"x-mcp-header":{"type":"string"}}}}}`},
		{"header keyword everywhere", `{"type":"object","properties":{"a":{"items":{"x-mcp-header":1},"allOf":[true,{"x-mcp-header":1}],"not":{"x-mcp-header":1}}},"$defs":{"x":{"prefixItems":[{"x-mcp-header":1}]}}}`,
			`{"type":"object","properties":{"a":{"items":{},"allOf":[true,{}],"not":{}}},"$defs":{"x":{"prefixItems":[{}]}}}`},
		{"header keyword in conditions", `{"type":"object","properties":{"a":{}},"if":{"x-mcp-header":1,"properties":{"a":{"x-mcp-header":1}}},"then":{"x-mcp-header":1},"else":{"x-mcp-header":1},"dependentSchemas":{"x-mcp-header":{"x-mcp-header":1}},"unevaluatedProperties":{"x-mcp-header":1}}`,
			`{"type":"object","properties":{"a":{}},"if":{"properties":{"a":{}}},"then":{},"else":{},"dependentSchemas":{"x-mcp-header":{}},"unevaluatedProperties":{}}`},
		{"2020-12", `{"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"https://a.example/s","type":"object","$defs":{"z":{"$anchor":"z","type":"object","properties":{"b":{},"a":{}}},"a":true},"properties":{"x":{"$ref":"#z"},"w":{"$dynamicRef":"#z"}},"anyOf":[{"required":["x"]},false],"if":{"properties":{"x":{"const":null}}},"then":{"minProperties":1},"else":{"not":{}},"x-unknown":{"b":1.0,"a":"\u00e9"},"unevaluatedProperties":false,"$comment":"c"}`, ""},
		{"not in data", `{"type":"object","properties":{"a":{"enum":[{"x-mcp-header":1}],"const":{"x-mcp-header":1},"default":{"x-mcp-header":1},"examples":[{"x-mcp-header":1}]}}}`, ""},
		{"in both of repeated properties", `{"type":"object","properties":{"a":{"type":"object","x-mcp-header":"H"}},"properties":{"b":{}}}`,
			`{"type":"object","properties":{"b":{}}}`},
		{"invisible text", `{"type":"object","description":"a\u202e\u200bb","properties":{"p":{"title":"\udb40\udc41x","description":" fine\n<é> "}}}`,
			`{"type":"object","description":"ab","properties":{"p":{"title":"x","description":" fine\n<é> "}}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := tt.want
			if want == "" {
				want = tt.schema
			}
			tool := one(t, `{"name":"x","params":7,"inputSchema":`+tt.schema+`}`)
			if got := string(tool.InputSchema); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

func TestNullOptionalsCountAsAbsent(t *testing.T) {
	tool := one(t, `{"name":"x","description":null,"params":{"a":"string"},"inputSchema":null,"example":null,"title":null,"timeoutMs":null,"icons":null,"annotations":null,"outputSchema":null}`)
	if !strings.Contains(string(tool.InputSchema), `"a"`) || tool.Example != nil || tool.OutputSchema != nil {
		t.Errorf("got %+v", tool)
	}
}

func TestParamsAreByteStable(t *testing.T) {
	const tool = `{"name":"x","params":{"d":"string","c":"string","b":{"enum":[3,1]},"a":{"properties":{"z":"int","y":"int"}}}}`
	first := one(t, tool)
	for range 20 {
		if again := one(t, tool); string(again.InputSchema) != string(first.InputSchema) || again.Digest != first.Digest {
			t.Fatalf("%s\n%s", first.InputSchema, again.InputSchema)
		}
	}
}

func TestLimitsAreTheCallers(t *testing.T) {
	l := Limits{NameBytes: 3, DescriptionBytes: 10, SchemaBytes: 60, Depth: 3}
	m, err := Parse([]byte(`{"tools":[{"name":"abcd"},{"name":"abc","description":"0123456789abc"},
		{"name":"b","inputSchema":{"a":{"b":{"c":{}}}}},{"name":"c","inputSchema":{"a":{"b":{}}}},
		{"name":"d","params":{"a":"string","b":"string","c":"string"}}]}`), l)
	if err != nil || names(m) != "abc c" || m.Tools[0].Description != "0123456…" {
		t.Errorf("tools %q, problems %+v, %v", names(m), m.Problems, err)
	}
	if l := (Limits{Depth: 1e6}).withDefaults(); l.Depth != maxDepthLimit || l.Tools != 512 {
		t.Errorf("defaults %+v", l)
	}
}

func TestSchemasOfTheDeepestAllowedParams(t *testing.T) {
	raw := `"string"`
	for range maxDepthLimit/2 - 2 {
		raw = `{"properties":{"a":` + raw + `}}`
	}
	m, err := Parse([]byte(`{"tools":[{"name":"x","params":{"p":`+raw+`}}]}`), Limits{Depth: 1e9})
	if err != nil || len(m.Tools) != 1 {
		t.Fatalf("%+v, %v", m, err)
	}
	var v map[string]any
	if err := json.Unmarshal(m.Tools[0].InputSchema, &v); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Tools[0].CheckArguments(nil); err == nil {
		t.Error("a missing parameter passed")
	}
	if d := depthOf(m.Tools[0].InputSchema); d > 950 {
		t.Errorf("depth %d: beyond what the MCP library decodes", d)
	}
}
