package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
)

// withSchema is a tool with that input schema, as Parse makes it.
func withSchema(t testing.TB, schema string) *Tool {
	t.Helper()
	m, err := Parse([]byte(`{"tools":[{"name":"x","inputSchema":`+schema+`}]}`), Limits{})
	if err != nil || len(m.Tools) != 1 {
		t.Fatalf("schema %.200s: %+v, %v", schema, m, err)
	}
	return m.Tools[0]
}

func withParams(t testing.TB, params string) *Tool {
	t.Helper()
	m, err := Parse([]byte(`{"tools":[{"name":"x","params":`+params+`}]}`), Limits{})
	if err != nil || len(m.Tools) != 1 {
		t.Fatalf("params %.200s: %+v, %v", params, m, err)
	}
	return m.Tools[0]
}

func TestArgumentsAreOneObject(t *testing.T) {
	tool := withParams(t, `{"a":{"type":"number","optional":true}}`)
	for _, tt := range []struct{ name, in, want, wantErr string }{
		{"absent", ``, `{}`, ""},
		{"white space", " \n", `{}`, ""},
		{"null", `null`, `{}`, ""},
		{"null in white space", ` null `, `{}`, ""},
		{"empty", `{}`, `{}`, ""},
		{"text of an object", `"{\"a\":1}"`, `{"a":1}`, ""},
		{"text of an empty object", `" {} "`, `{}`, ""},
		{"array", `[]`, "", "must be an object with the parameters as members, got an array"},
		{"number", `5`, "", "got 5"},
		{"text", `"a"`, "", `got "a"`},
		{"empty text", `""`, "", `got ""`},
		{"text of an array", `"[]"`, "", `got "[]"`},
		{"text of text", `"\"{}\""`, "", `must be an object`},
		{"broken text", `"{\"a\":"`, "", "not valid JSON"},
		{"broken", `{"a":}`, "", "not valid JSON"},
		{"1,001 deep", `{"b":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + `}`, "", "deeper than 1000"},
		{"1,000,000 deep", strings.Repeat(`{"a":`, 1_000_000), "", "deeper than 1000"},
		{"deep text", string(appendString(nil, strings.Repeat(`{"a":`, 100_000))), "", "deeper than 1000"},
		{"1,000 deep", `{"b":` + strings.Repeat("[", 999) + strings.Repeat("]", 999) + `}`, "=", ""},
		{"text in text beyond the depth", `{"b":` + strings.Repeat("[", 900) + string(appendString(nil, strings.Repeat("[", 900)+strings.Repeat("]", 900))) + strings.Repeat("]", 900) + `}`, "=", ""},
		{"invalid UTF-8", "{\"b\":\"\xff\"}", "{\"b\":\"\uFFFD\"}", ""},
		{"number out of range", `{"a":1e999}`, "", `parameter "a" must be a number in range, got 1e999`},
		{"nested number out of range", `{"b":[0,{"c":-1e999}]}`, "", `parameter "b[1].c" must be a number in range`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := tt.want
			if want == "=" {
				want = tt.in
			}
			got, err := tool.CheckArguments(json.RawMessage(tt.in))
			checkOutcome(t, got, err, want, tt.wantErr)
		})
	}
}

func checkOutcome(t *testing.T, got json.RawMessage, err error, want, wantErr string) {
	t.Helper()
	if wantErr == "" {
		if err != nil || string(got) != want {
			t.Errorf("got %.300s, %v; want %.300s", got, err, want)
		}
		return
	}
	var arg *ArgumentError
	if !errors.As(err, &arg) || !strings.Contains(arg.Error(), wantErr) || got != nil {
		t.Errorf("got %.300s, %v; want an ArgumentError with %q", got, err, wantErr)
	}
	if err != nil && len(err.Error()) > 1000 {
		t.Errorf("error of %d bytes", len(err.Error()))
	}
}

func TestSlipsAreMended(t *testing.T) {
	tool := withParams(t, `{"n":{"type":"number","optional":true},"i":{"type":"integer","optional":true},"b":{"type":"boolean","optional":true},
		"s":{"type":"string","optional":true},"o":{"type":"object","optional":true,"properties":{"k":"number","l":{"type":"number","optional":true}}},
		"a":{"type":"array","items":"number","optional":true},"z":{"type":"number","nullable":true,"optional":true},
		"ns":{"type":["number","string"],"optional":true},"e":{"enum":[1,2],"optional":true},"r":{"type":"array","optional":true,"items":{"properties":{"x":"boolean"}}}}`)
	for _, tt := range []struct{ name, in, want, wantErr string }{
		{"number", `{"n":"5"}`, `{"n":5}`, ""},
		{"negative number", `{"n":"-2.5"}`, `{"n":-2.5}`, ""},
		{"exponent", `{"n":"1e3"}`, `{"n":1e3}`, ""},
		{"number in white space", `{"n":" 5 "}`, `{"n":5}`, ""},
		{"long number", `{"n":"12345678901234567890.10"}`, `{"n":12345678901234567890.10}`, ""},
		{"units", `{"n":"12px"}`, "", `parameter "n" must be a number, got "12px"`},
		{"empty", `{"n":""}`, "", `parameter "n" must be a number, got ""`},
		{"NaN", `{"n":"NaN"}`, "", `got "NaN"`},
		{"Infinity", `{"n":"Infinity"}`, "", `got "Infinity"`},
		{"hexadecimal", `{"n":"0x10"}`, "", `got "0x10"`},
		{"leading zero", `{"n":"007"}`, "", `got "007"`},
		{"underscore", `{"n":"1_000"}`, "", `got "1_000"`},
		{"out of range", `{"n":"1e999"}`, "", `got "1e999"`},
		{"boolean for number", `{"n":true}`, "", `must be a number, got true`},
		{"integer", `{"i":"5"}`, `{"i":5}`, ""},
		{"integer with fraction zero", `{"i":"5.0"}`, `{"i":5}`, ""},
		{"integer with exponent", `{"i":"1e3"}`, `{"i":1000}`, ""},
		{"long integer", `{"i":"12345678901234567890"}`, `{"i":12345678901234567890}`, ""},
		{"huge integer", `{"i":"1e30"}`, `{"i":1e30}`, ""},
		{"fraction for integer", `{"i":"5.5"}`, "", `parameter "i" must be an integer, got "5.5"`},
		{"real fraction for integer", `{"i":5.5}`, "", `parameter "i" must be an integer, got 5.5`},
		{"true", `{"b":"true"}`, `{"b":true}`, ""},
		{"True", `{"b":"True"}`, `{"b":true}`, ""},
		{"False", `{"b":"False"}`, `{"b":false}`, ""},
		{"false", `{"b":" false"}`, `{"b":false}`, ""},
		{"yes", `{"b":"yes"}`, "", `parameter "b" must be true or false, got "yes"`},
		{"1 for boolean", `{"b":1}`, "", `must be true or false, got 1`},
		{"empty boolean", `{"b":""}`, "", `must be true or false, got ""`},
		{"object as text", `{"o":"{\"k\": 1.10}"}`, `{"o":{"k":1.10}}`, ""},
		{"object as text, mended inside", `{"o":"{\"k\":\"1\",\"m\":1.10}"}`, `{"o":{"k":1,"m":1.10}}`, ""},
		{"array as text", `{"a":"[1,2]"}`, `{"a":[1,2]}`, ""},
		{"array for object", `{"o":"[1]"}`, "", `parameter "o" must be an object, got "[1]"`},
		{"broken text for array", `{"a":"[1"}`, "", `parameter "a" must be an array, got "[1"`},
		{"array of texts", `{"a":["1",2,"3"]}`, `{"a":[1,2,3]}`, ""},
		{"nested", `{"o":{"k":"5"}}`, `{"o":{"k":5}}`, ""},
		{"nested path in the error", `{"r":[{"x":true},{"x":"no"}]}`, "", `parameter "r[1].x" must be true or false, got "no"`},
		{"nested missing", `{"o":{}}`, "", `missing required parameter "o.k" (number)`},
		{"null of optionals", `{"n":null,"b":null,"s":null,"o":null,"a":null}`, `{}`, ""},
		{"null of nested optional", `{"o":{"k":1,"l":null}}`, `{"o":{"k":1}}`, ""},
		{"null of nested required", `{"o":{"k":null}}`, "", `parameter "o.k" must be a number, got null`},
		{"word null of optionals", `{"n":"null","b":"null","o":"null","a":"null"}`, `{}`, ""},
		{"word null is text", `{"s":"null"}`, `{"s":"null"}`, ""},
		{"null of nullable stays", `{"z":null}`, `{"z":null}`, ""},
		{"word null of nullable", `{"z":"null"}`, `{"z":null}`, ""},
		{"empty text stays", `{"s":""}`, `{"s":""}`, ""},
		{"number for text", `{"s":5}`, "", `parameter "s" must be text, got 5`},
		{"text where both fit", `{"ns":"5"}`, `{"ns":"5"}`, ""},
		{"enum", `{"e":"2"}`, `{"e":2}`, ""},
		{"not in the enum", `{"e":"3"}`, "", `parameter "e" must be one of 1, 2, got 3`},
		{"only what is wrong", `{"s":"5", "n":"5","i":7 ,"q":1.10,"b":true}`, `{"s":"5","n":5,"i":7,"q":1.10,"b":true}`, ""},
		{"unknown parameters pass", `{"q":12345678901234567890,"w":"1"}`, `{"q":12345678901234567890,"w":"1"}`, ""},
		{"unchanged bytes", ` { "n" : 1.10, "n2" : 12345678901234567890 } `, ` { "n" : 1.10, "n2" : 12345678901234567890 } `, ""},
		{"repeated key, last counts", `{"n":"x","n":5}`, `{"n":"x","n":5}`, ""},
		{"repeated key, mended", `{"n":1,"n":"5"}`, `{"n":5}`, ""},
		{"escaped key", `{"\u006e":"5","<&>":1}`, `{"n":5,"<&>":1}`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tool.CheckArguments(json.RawMessage(tt.in))
			checkOutcome(t, got, err, tt.want, tt.wantErr)
			if err == nil {
				again, err := tool.CheckArguments(got)
				checkOutcome(t, again, err, string(got), "")
			}
		})
	}
}

func TestMissingRequiredNamesTheParameter(t *testing.T) {
	tool := withParams(t, `{"rowId":{"type":"string","description":"The row\nto paint`+strings.Repeat(" x", 200)+`"},"n":"int","any":{"const":1}}`)
	for _, tt := range []struct{ in, param, want string }{
		{``, "rowId", `missing required parameter "rowId" (string: The row to paint x`},
		{`{"rowId":"r"}`, "n", `missing required parameter "n" (integer)`},
		{`{"rowId":"r","n":1}`, "any", `missing required parameter "any" (integer)`},
		{`{"rowId":null,"n":1,"any":1}`, "rowId", `parameter "rowId" must be text, got null`},
	} {
		_, err := tool.CheckArguments(json.RawMessage(tt.in))
		var arg *ArgumentError
		if !errors.As(err, &arg) || arg.Param != tt.param || !strings.Contains(arg.Reason, tt.want) || len(arg.Reason) > 300 || strings.Contains(arg.Reason, "\n") {
			t.Errorf("%s: %+v; want %s: %q", tt.in, err, tt.param, tt.want)
		}
	}
	if got, err := withParams(t, `{"rowId":"string","color":{"type":"string","optional":true}}`).CheckArguments([]byte(`{"rowId":"r1","color":null}`)); err != nil || string(got) != `{"rowId":"r1"}` {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestRefusalsNameParameterValueAndExpectation(t *testing.T) {
	for _, tt := range []struct{ name, schema, in, wantErr string }{
		{"minimum", `{"properties":{"n":{"minimum":3}}}`, `{"n":2}`, `parameter "n" must be at least 3, got 2`},
		{"maximum", `{"properties":{"n":{"maximum":3}}}`, `{"n":4}`, `must be at most 3, got 4`},
		{"exclusive", `{"properties":{"n":{"exclusiveMinimum":3}}}`, `{"n":3}`, `must be more than 3, got 3`},
		{"exclusive, above", `{"properties":{"n":{"exclusiveMaximum":3}}}`, `{"n":3}`, `must be less than 3, got 3`},
		{"short", `{"properties":{"s":{"minLength":3}}}`, `{"s":"é"}`, `must have at least 3 characters, got "é"`},
		{"long", `{"properties":{"s":{"maxLength":1}}}`, `{"s":"éé"}`, `must have at most 1 characters`},
		{"few", `{"properties":{"s":{"minItems":1}}}`, `{"s":[]}`, `must have at least 1 items, got an array`},
		{"many", `{"properties":{"s":{"maxItems":1}}}`, `{"s":[1,2]}`, `must have at most 1 items`},
		{"pattern", `{"properties":{"s":{"pattern":"^a+$"}}}`, `{"s":"b"}`, `parameter "s" does not fit the schema: pattern: "b" does not match`},
		{"unknown", `{"properties":{"a":{},"b":{}},"additionalProperties":false}`, `{"c":1}`, `unknown parameter "c", must be one of "a", "b"`},
		{"unknown, nothing known", `{"additionalProperties":false}`, `{"c":1}`, `unknown parameter "c", must be one of none at all`},
		{"unknown beside patterns", `{"patternProperties":{"^x":{}},"additionalProperties":false}`, `{"x1":1,"c":1}`, `the arguments object has parameters that the schema does not allow`},
		{"anyOf", `{"properties":{"v":{"anyOf":[{"type":"string"},{"type":"number"}]}}}`, `{"v":true}`, `parameter "v" must be text or a number, got true`},
		{"anyOf, unclear", `{"properties":{"v":{"anyOf":[{"minimum":5},{"minimum":9}]}}}`, `{"v":1}`, `parameter "v" fits none of the forms`},
		{"oneOf, both", `{"properties":{"v":{"oneOf":[{"minimum":5},{"minimum":9}]}}}`, `{"v":10}`, `fits more than one of the forms`},
		{"oneOf, none", `{"properties":{"v":{"oneOf":[{"minimum":5},{"minimum":9}]}}}`, `{"v":1}`, `fits none of the forms`},
		{"not", `{"properties":{"v":{"not":{"type":"number"}}}}`, `{"v":1}`, `parameter "v" has a form that the schema rules out (not), got 1`},
		{"contains", `{"properties":{"v":{"contains":{"type":"number"}}}}`, `{"v":["a"]}`, `parameter "v" has no item of the kind`},
		{"const", `{"properties":{"v":{"const":"on"}}}`, `{"v":"off"}`, `parameter "v" must be "on", got "off"`},
		{"false schema", `{"properties":{"v":false}}`, `{"v":1}`, `parameter "v" `},
		{"items: none", `{"properties":{"v":{"prefixItems":[{"type":"number"}],"items":{"type":"boolean"}}}}`, `{"v":["1","true",5]}`, `parameter "v[2]" must be true or false, got 5`},
		{"odd key", `{"properties":{"a b":{"properties":{"c.d":{"type":"number"},"":{"type":"number"}}}}}`, `{"a b":{"c.d":"x"}}`, `parameter "a b[\"c.d\"]" must be a number`},
		{"empty key", `{"properties":{"":{"type":"number"}}}`, `{"":"x"}`, `must be a number, got "x"`},
		{"long value", `{"properties":{"n":{"type":"number"}}}`, `{"n":"` + strings.Repeat("9x", 5000) + `"}`, `…"`},
		{"long enum", `{"properties":{"n":{"enum":["` + strings.Join(strings.Split(strings.Repeat("ab", 60), ""), `1","`) + `"]}}}`, `{"n":"zz"}`, `108 more`},
		{"reference", `{"properties":{"p":{"$ref":"#/$defs/p"}},"$defs":{"p":{"type":"object","properties":{"x":{"type":"number"}},"required":["x"]}}}`, `{"p":{}}`, `missing required parameter "p.x" (number)`},
		{"dependency", `{"dependentRequired":{"a":["b"]}}`, `{"a":1}`, `does not fit the schema: dependentRequired`},
		{"unknown type", `{"properties":{"a":{"type":"date"}}}`, `{"a":"x"}`, `parameter "a" must be "date", got "x"`},
		{"invisible characters", `{"properties":{"a\u202e":{"type":"number"}}}`, `{"a\u202e":"x\u200b\n"}`, `parameter "a" must be a number, got "x"`},
		{"additional", `{"additionalProperties":{"type":"number"}}`, `{"a":"1","b":"x"}`, `parameter "b" must be a number`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tool := withSchema(t, tt.schema)
			if p := tool.SchemaProblem(); p != "" {
				t.Fatalf("not checked: %s", p)
			}
			got, err := tool.CheckArguments(json.RawMessage(tt.in))
			checkOutcome(t, got, err, "", tt.wantErr)
		})
	}
}

func TestSchemaGuidesMending(t *testing.T) {
	for _, tt := range []struct{ name, schema, in, want string }{
		{"reference", `{"properties":{"p":{"$ref":"#/$defs/a~1b%20c"}},"$defs":{"a/b c":{"type":"number"}}}`, `{"p":"5"}`, `{"p":5}`},
		{"reference to reference", `{"properties":{"p":{"$ref":"#/$defs/a"}},"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"type":"object","properties":{"n":{"type":"number"}}}}}`, `{"p":"{\"n\":\"5\"}"}`, `{"p":{"n":5}}`},
		{"recursion", `{"properties":{"n":{"type":"number"},"child":{"$ref":"#"}}}`, `{"child":{"child":{"n":"5"}}}`, `{"child":{"child":{"n":5}}}`},
		{"optional by anyOf", `{"properties":{"p":{"anyOf":[{"type":"object","properties":{"n":{"type":"number"}}},{"type":"null"}]}}}`, `{"p":{"n":"1"}}`, `{"p":{"n":1}}`},
		{"null by anyOf stays", `{"properties":{"p":{"anyOf":[{"type":"number"},{"type":"null"}]}}}`, `{"p":null}`, `{"p":null}`},
		{"number by anyOf", `{"properties":{"p":{"anyOf":[{"type":"number"},{"type":"null"}]}}}`, `{"p":"5"}`, `{"p":5}`},
		{"allOf of one", `{"properties":{"p":{"allOf":[{"$ref":"#/definitions/n"}]}},"definitions":{"n":{"type":"integer"}}}`, `{"p":"5"}`, `{"p":5}`},
		{"reference into an array", `{"properties":{"p":{"$ref":"#/anyOf/1"}},"anyOf":[true,{"type":"number"}]}`, `{"p":"5"}`, `{"p":5}`},
		{"const", `{"properties":{"p":{"const":5}}}`, `{"p":"5"}`, `{"p":5}`},
		{"additional", `{"additionalProperties":{"type":"number"}}`, `{"p":"5"}`, `{"p":5}`},
		{"draft-07", `{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"p":{"type":"number"},"q":{"items":[{"type":"number"}]}}}`, `{"p":"5"}`, `{"p":5}`},
		{"draft-04", `{"$schema":"http://json-schema.org/draft-04/schema#","id":"x","properties":{"p":{"type":"number"}}}`, `{"p":"5"}`, `{"p":5}`},
		{"2019-09", `{"$schema":"https://json-schema.org/draft/2019-09/schema","$id":"https://a.example/x","properties":{"p":{"type":"number"}}}`, `{"p":"5"}`, `{"p":5}`},
		{"untyped null stays", `{"properties":{"p":{}}}`, `{"p":null}`, `{"p":null}`},
		{"what fits is left alone", `{"properties":{"p":{"type":"number"},"q":{"enum":["5",5]}}}`, `{"p":"1","q":"5"}`, `{"p":1,"q":"5"}`},
		{"cents", `{"properties":{"p":{"type":"number","multipleOf":0.01}}}`, `{"p":0.07}`, `{"p":0.07}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tool := withSchema(t, tt.schema)
			if p := tool.SchemaProblem(); p != "" {
				t.Fatalf("not checked: %s", p)
			}
			got, err := tool.CheckArguments(json.RawMessage(tt.in))
			checkOutcome(t, got, err, tt.want, "")
		})
	}
}

func TestUncheckableSchemaIsNeverARefusal(t *testing.T) {
	for _, tt := range []struct{ name, schema, want string }{
		{"JavaScript regular expression", `{"properties":{"n":{"type":"number"},"s":{"pattern":"(?=x)"}}}`, "regular expression"},
		{"pattern property", `{"properties":{"n":{"type":"number"}},"patternProperties":{"(?<!x)":{}}}`, "regular expression"},
		{"broken reference", `{"properties":{"n":{"type":"number"},"s":{"$ref":"#/$defs/no"}}}`, "does not have"},
		{"remote reference", `{"properties":{"n":{"type":"number"},"s":{"$ref":"https://a.example/x"}}}`, "refers to"},
		{"anchor", `{"properties":{"n":{"type":"number"},"s":{"$ref":"#a"},"t":{"$anchor":"a"}}}`, "refers to"},
		{"dynamic reference", `{"properties":{"n":{"type":"number"},"s":{"$dynamicRef":"#a"}}}`, "$dynamicRef"},
		{"inner id", `{"properties":{"n":{"type":"number"},"s":{"$id":"x"}}}`, "$id"},
		{"keyword of the wrong type", `{"properties":{"n":{"type":"number"},"s":{"minimum":"x"}}}`, `it cannot be read: "minimum" has a string`},
		{"number for a schema", `{"properties":{"n":{"type":"number"},"s":{"not":{"items":{"anyOf":[0]}}}}}`, `it cannot be read: "anyOf" has a number`},
		{"both kinds of definitions", `{"properties":{"n":{"type":"number"}},"$defs":{},"definitions":{}}`, "cannot be compiled"},
		{"null for a schema", `{"properties":{"n":{"type":"number"},"s":null}}`, "null instead of a schema"},
		{"vocabulary", `{"properties":{"n":{"type":"number"}},"$vocabulary":{"x":true}}`, "cannot be compiled"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tool := withSchema(t, tt.schema)
			if got := tool.SchemaProblem(); !strings.Contains(got, tt.want) || len(got) > maxReasonBytes || strings.Contains(got, " Go ") {
				t.Errorf("SchemaProblem() = %q; want %q", got, tt.want)
			}
			got, err := tool.CheckArguments([]byte(`{"n":"5","s":null,"x":[1.10]}`))
			if err != nil || !strings.Contains(string(got), `"n":5,`) {
				t.Errorf("got %s, %v; want it mended and passed", got, err)
			}
			if got, err := tool.CheckArguments([]byte(`{"n":"x"}`)); err != nil || string(got) != `{"n":"x"}` {
				t.Errorf("got %s, %v; want it passed", got, err)
			}
			if _, err := tool.CheckArguments([]byte(`[]`)); err == nil {
				t.Error("an array passed")
			}
		})
	}
}

func TestToolNotMadeByParse(t *testing.T) {
	tool := &Tool{Name: "x", InputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"number"}}}`)}
	if got, err := tool.CheckArguments([]byte(`{"n":"5"}`)); err != nil || string(got) != `{"n":5}` {
		t.Errorf("got %s, %v", got, err)
	}
	for _, schema := range []string{``, `{`, strings.Repeat(`{"not":`, 5000)} {
		tool := &Tool{InputSchema: json.RawMessage(schema)}
		if got, err := tool.CheckArguments([]byte(`{"n":"5"}`)); err != nil || string(got) != `{"n":"5"}` || tool.SchemaProblem() == "" {
			t.Errorf("schema %.20q: got %s, %v, problem %q", schema, got, err, tool.SchemaProblem())
		}
	}
}

func TestToolIsSafeForConcurrentCalls(t *testing.T) {
	tool := withParams(t, `{"n":"number","s":{"type":"string","pattern":"^a*$"}}`)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 20 {
				if got, err := tool.CheckArguments([]byte(`{"n":"5","s":"aa"}`)); err != nil || string(got) != `{"n":5,"s":"aa"}` {
					t.Errorf("got %s, %v", got, err)
				}
				if _, err := tool.CheckArguments([]byte(`{"n":5,"s":"b"}`)); err == nil {
					t.Error("no error")
				}
			}
		})
	}
	wg.Wait()
}

func TestLargeObjectsKeepTheLastOfRepeatedKeys(t *testing.T) {
	var b strings.Builder
	for i := range 40 {
		fmt.Fprintf(&b, `"k%d":%d,`, i, i)
	}
	tool := withParams(t, `{"k39":"integer"}`)
	got, err := tool.CheckArguments([]byte(`{` + b.String() + `"k2":"two","k39":"7"}`))
	if err != nil || !strings.Contains(string(got), `"k1":1,"k2":"two","k3":3,`) || !strings.HasSuffix(string(got), `"k39":7}`) {
		t.Errorf("got %s, %v", got, err)
	}
}
