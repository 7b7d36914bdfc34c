package manifest

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

func withOutput(t *testing.T, schema string) *Tool {
	t.Helper()
	return one(t, `{"name":"x","outputSchema":`+schema+`}`)
}

func TestOutputIsChecked(t *testing.T) {
	const schema = `{"type":"object","properties":{"n":{"type":"integer","minimum":1},"s":{"enum":["a","b"]},
		"rows":{"type":"array","items":{"type":"object","properties":{"id":{"type":"string","description":"The row"}},"required":["id"],"additionalProperties":false}},
		"either":{"anyOf":[{"type":"string"},{"type":"object","required":["x"]}]}},"required":["n"]}`
	for _, tt := range []struct{ output, param, want string }{
		{`{"n":1}`, "", ""},
		{` {"n":2,"s":"a","rows":[{"id":"1"}],"other":[1e2],"either":{"x":1}} `, "", ""},
		{``, "", "the structured result is missing: the tool has an output schema, so it must return an object that fits it"},
		{`{"n":`, "", `the structured result is not valid JSON, got "{\"n\":"`},
		{`null`, "", "the structured result must be an object, got null"},
		{`[]`, "", "the structured result must be an object, got an array"},
		{`{}`, "n", `missing required field "n" (integer)`},
		{`{"n":"1"}`, "n", `field "n" must be an integer, got "1"`},
		{`{"n":1.5}`, "n", `field "n" must be an integer, got 1.5`},
		{`{"n":0}`, "n", `field "n" must be at least 1, got 0`},
		{`{"n":1e999}`, "n", `field "n" must be a number in range, got 1e999`},
		{`{"n":1,"s":null}`, "s", `field "s" must be text, got null`},
		{`{"n":1,"s":"c"}`, "s", `field "s" must be one of "a", "b", got "c"`},
		{`{"n":1,"rows":[{"id":"1"},{}]}`, "rows[1].id", `missing required field "rows[1].id" (string: The row)`},
		{`{"n":1,"rows":[{"id":"1","x":1}]}`, "rows[0].x", `unknown field "rows[0].x", must be one of "id"`},
		{`{"n":1,"either":{}}`, "either", `field "either" fits none of the forms that the schema allows (anyOf), got an object`},
	} {
		tool := withOutput(t, schema)
		err := tool.CheckOutput(json.RawMessage(tt.output))
		var arg *ArgumentError
		if errors.As(err, &arg) != (tt.want != "") || arg != nil && (arg.Param != tt.param || arg.Reason != tt.want) {
			t.Errorf("%s: %v; want %q", tt.output, err, tt.want)
		}
	}
}

func TestOutputThatCannotBeChecked(t *testing.T) {
	if err := withSchema(t, `{"type":"object"}`).CheckOutput(nil); err != nil {
		t.Errorf("no output schema: %v", err)
	}
	tool := withOutput(t, `{"type":"object","properties":{"a":{"pattern":"(?=x)"}},"required":["b"]}`)
	if err := tool.CheckOutput(json.RawMessage(`{}`)); err != nil {
		t.Errorf("a schema that cannot be compiled: %v", err)
	}
	const want = "results are not checked against the output schema: it has a regular expression that cannot be checked"
	if got := tool.SchemaProblem(); !strings.HasPrefix(got, want) {
		t.Errorf("SchemaProblem() = %q; want %q", got, want)
	}
	both := one(t, `{"name":"x","inputSchema":{"$dynamicRef":"#a"},"outputSchema":{"$ref":"#"}}`)
	const two = `arguments are not checked against the input schema: it uses $dynamicRef, which is not checked; ` +
		`results are not checked against the output schema: it refers to itself without end at "#"`
	if got := both.SchemaProblem(); got != two {
		t.Errorf("SchemaProblem() = %q; want %q", got, two)
	}
	deep := strings.Repeat(`{"a":`, 5000) + `1` + strings.Repeat(`}`, 5000)
	large := `{"a":[1` + numbers(maxValues) + `],"a2":1}`
	for _, output := range []string{deep, large} {
		if err := withOutput(t, `{"type":"object","required":["b"]}`).CheckOutput(json.RawMessage(output)); err != nil {
			t.Errorf("%.20s…: %v", output, err)
		}
	}
}

func TestOutputErrorsAreSmallAndClean(t *testing.T) {
	tool := withOutput(t, `{"type":"object","properties":{"a":{"type":"number"}},"additionalProperties":{"type":"number"}}`)
	for _, output := range []string{`{"a":"` + strings.Repeat("x", 1<<20) + `"}`, `{"` + strings.Repeat("k", 1<<20) + `":""}`, `{"\u001b[31m\n":"\u001b\n"}`, "{\"a\":\"\xff\"}"} {
		err := tool.CheckOutput(json.RawMessage(output))
		if err == nil || len(err.Error()) > 500 || strings.ContainsAny(err.Error(), "\n\x1b") || !utf8.ValidString(err.Error()) {
			t.Errorf("%.20s: %.300v", output, err)
		}
	}
}
