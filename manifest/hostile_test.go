package manifest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

// within fails the test if f takes too long. The bound is wide, for slow machines; what it guards against takes for ever.
func within(t *testing.T, f func()) {
	t.Helper()
	start := time.Now()
	f()
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("took %v", took)
	}
}

// chain is $defs of n schemas d0, d1, … where link gives the one that refers to the next.
func chain(n int, link func(next string) string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"d%d":%s,`, i, link(fmt.Sprintf(`{"$ref":"#/$defs/d%d"}`, i+1)))
	}
	return fmt.Sprintf(`"$defs":{%s"d%d":{"type":"string"}}`, b.String(), n)
}

func TestSchemasThatNeverEndAreNotChecked(t *testing.T) {
	for _, tt := range []struct{ name, schema, want string }{
		{"refers to itself", `{"$ref":"#"}`, "without end"},
		{"two refer to each other", `{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`, "without end"},
		{"through allOf", `{"allOf":[{"anyOf":[{"$ref":"#"}]}]}`, "without end"},
		{"through not, if and dependentSchemas", `{"not":{"if":{"dependentSchemas":{"a":{"$ref":"#"}}}}}`, "without end"},
		{"in a property", `{"properties":{"a":{"$ref":"#/properties/a"}}}`, "without end"},
		{"in names of properties", `{"propertyNames":{"oneOf":[{"$ref":"#/propertyNames"}]}}`, "without end"},
		{"draft-07 dependencies", `{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"a":{"$ref":"#"}}}`, "without end"},
		{"exponential allOf", `{"allOf":[{"$ref":"#/$defs/d0"}],` + chain(40, func(n string) string { return `{"allOf":[` + n + `,` + n + `]}` }) + `}`, "too many alternatives"},
		{"exponential anyOf", `{"properties":{"a":{"$ref":"#/$defs/d0"}},` + chain(40, func(n string) string { return `{"anyOf":[` + n + `,` + n + `,{}]}` }) + `}`, "too many alternatives"},
		{"many subschemas", `{"allOf":[` + strings.TrimSuffix(strings.Repeat(`{},`, 20_000), ",") + `]}`, "too many parts"},
		{"long paths", `{"properties":{"` + strings.Repeat("k", 30_000) + `":{"allOf":[` + strings.TrimSuffix(strings.Repeat(`{},`, 1500), ",") + `]}}}`, "too many parts"},
		{"large expressions", `{"properties":{"a":{"pattern":"` + strings.Repeat("x{1000}", 8000) + `"}}}`, "regular expression"},
		{"repetition", `{"properties":{"a":{"pattern":"` + strings.Repeat("x{1000}", 30) + `"}}}`, "too large regular expressions"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			within(t, func() {
				tool := withSchema(t, tt.schema)
				if got := tool.SchemaProblem(); !strings.Contains(got, tt.want) {
					t.Errorf("SchemaProblem() = %q; want %q", got, tt.want)
				}
				if got, err := tool.CheckArguments([]byte(`{"a":{"a":["1"]}}`)); err != nil || string(got) != `{"a":{"a":["1"]}}` {
					t.Errorf("got %.100s, %v", got, err)
				}
			})
		})
	}
}

// These are good for some arguments, and exponential or too deep for others.
func TestCostIsCountedForTheArguments(t *testing.T) {
	nest := func(n int, inner string) string {
		return strings.Repeat(`{"a":`, n) + inner + strings.Repeat(`}`, n)
	}
	twice := `{"properties":{"a":{"anyOf":[{"$ref":"#"},{"$ref":"#"}]}},"additionalProperties":false}`
	for _, tt := range []struct {
		name, schema, args string
		checked            bool
	}{
		{"twice per level, shallow", twice, nest(8, `1`), true},
		{"twice per level, deep", twice, nest(900, `{}`), false},
		{"twice by items", `{"properties":{"a":{"$ref":"#/$defs/l"}},"$defs":{"l":{"items":{"$ref":"#/$defs/l"},"contains":{"$ref":"#/$defs/l"},"unevaluatedItems":{"$ref":"#/$defs/l"}}}}`,
			`{"a":` + strings.Repeat("[", 800) + strings.Repeat("]", 800) + `}`, false},
		{"plain recursion, deep", `{"properties":{"a":{"$ref":"#"}}}`, nest(900, `{}`), true},
		{"long way per level, deep", `{"properties":{"a":{"$ref":"#/$defs/d0"}},` + strings.Replace(chain(15, func(n string) string { return `{"allOf":[` + n + `]}` }), `{"type":"string"}`, `{"$ref":"#"}`, 1) + `}`, nest(900, `{}`), false},
		{"long way of references", `{"properties":{"a":{"$ref":"#/$defs/d0"}},` + chain(1500, func(n string) string { return n }) + `}`, `{"a":"x"}`, true},
		{"large value, long way", `{"properties":{"a":{"$ref":"#/$defs/d0"}},` + chain(1500, func(n string) string { return n }) + `}`, `{"a":"` + strings.Repeat("x", 1<<20) + `"}`, false},
		{"large value, many branches", `{"properties":{"a":{"anyOf":[` + strings.Repeat(`{"type":"number"},`, 500) + `{"type":"string"}]}}}`, `{"a":"` + strings.Repeat("x", 1<<20) + `"}`, false},
		{"large value, plain", `{"properties":{"a":{"type":"string"}}}`, `{"a":"` + strings.Repeat("x", 4<<20) + `"}`, true},
		{"large value, large expression", `{"properties":{"a":{"pattern":"^(x?){900}y$"}}}`, `{"a":"` + strings.Repeat("x", 4<<20) + `"}`, false},
		{"large value, small expression", `{"properties":{"a":{"pattern":"^x*$"}}}`, `{"a":"` + strings.Repeat("x", 1<<18) + `"}`, true},
		{"large enum, many items", `{"properties":{"a":{"items":{"enum":[` + strings.Repeat(`"x",`, 10_000) + `"y"]}}}}`, `{"a":[` + strings.Repeat(`"y",`, 50_000) + `"y"]}`, false},
		{"many items", `{"properties":{"a":{"items":{"type":"number"},"uniqueItems":true}}}`, `{"a":[1` + numbers(50_000) + `]}`, true},
		{"too many values", `{"properties":{"a":{"items":{"type":"string"}}}}`, `{"a":[1` + numbers(maxValues) + `]}`, false},
		{"many names", `{"propertyNames":{"maxLength":3}}`, `{"a":1,"abc":2}`, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			within(t, func() {
				tool := withSchema(t, tt.schema)
				if p := tool.SchemaProblem(); p != "" {
					t.Fatalf("never checked: %s", p)
				}
				raw := json.RawMessage(tt.args)
				tree := parseValue(raw)
				checked := tree != nil && affordable(tool.compiled().plan, tree)
				if checked != tt.checked {
					t.Errorf("checked: %v; want %v", checked, tt.checked)
				}
				if _, err := tool.CheckArguments(raw); err != nil && !checked {
					t.Errorf("refused without a check: %v", err)
				}
			})
		})
	}
}

func numbers(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, ",%d", i+2)
	}
	return b.String()
}

// The validator recurses for each step of a chain. The deepest that is allowed must fit into a goroutine's stack with
// room to spare: an overflow there cannot be recovered from.
func TestDeepestCheckUsesLittleStack(t *testing.T) {
	tool := withSchema(t, `{"properties":{"a":{"allOf":[{"allOf":[{"$ref":"#"}]}]}}}`)
	levels, args := 999, ""
	for ; levels > 100; levels -= 10 {
		args = strings.Repeat(`{"a":`, levels) + `{}` + strings.Repeat(`}`, levels)
		if affordable(tool.compiled().plan, parseValue([]byte(args))) {
			break
		}
	}
	done := make(chan uint64)
	go func() {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := tool.CheckArguments([]byte(args)); err != nil {
			t.Error(err)
		}
		runtime.ReadMemStats(&after)
		done <- after.StackInuse - min(before.StackInuse, after.StackInuse)
	}()
	used := <-done
	t.Logf("%d levels, %d KiB of stack", levels, used>>10)
	if used > 256<<20 {
		t.Errorf("%d MiB of stack", used>>20)
	}
}

func TestErrorsOfLargeValuesAreSmall(t *testing.T) {
	tool := withSchema(t, `{"properties":{"a":{"anyOf":[{"type":"number"},{"minItems":1,"type":"array"}]}}}`)
	_, err := tool.CheckArguments([]byte(`{"a":"` + strings.Repeat("x", 1<<20) + `"}`))
	if err == nil || len(err.Error()) > 1000 {
		t.Errorf("got %.200v", err)
	}
}

func TestManyProblemsAndToolsStayCheap(t *testing.T) {
	for name, frame := range map[string]string{
		"bad tools":      `{"tools":[` + strings.TrimSuffix(strings.Repeat(`7,`, 1_000_000), ",") + `]}`,
		"bad reports":    `{"tools":[],"problems":[` + strings.TrimSuffix(strings.Repeat(`{},`, 500_000), ",") + `]}`,
		"unknown fields": `{"tools":[]` + strings.Repeat(`,"x":1`, 1_000_000) + `}`,
		"many params":    `{"tools":[{"name":"a","params":{` + strings.TrimSuffix(strings.Repeat(`"p":"string",`, 200_000), ",") + `}}]}`,
		"bad prompts":    `{"tools":[],"prompts":[` + strings.TrimSuffix(strings.Repeat(`7,`, 500_000), ",") + `]}`,
		"arguments":      `{"tools":[],"prompts":[{"name":"a","arguments":[` + strings.TrimSuffix(strings.Repeat(`{"name":"x"},`, 200_000), ",") + `]}]}`,
		"same prompts":   `{"tools":[],"prompts":[` + strings.TrimSuffix(strings.Repeat(`{"name":"a"},`, 200_000), ",") + `]}`,
		"bad resources":  `{"tools":[],"resources":[` + strings.TrimSuffix(strings.Repeat(`{"uri":"page:x"},`, 200_000), ",") + `]}`,
		"braces":         `{"tools":[],"resourceTemplates":[{"uriTemplate":"` + strings.Repeat("{", 1<<20) + `"}]}`,
		"audience":       `{"tools":[],"resources":[{"uri":"a","annotations":{"audience":[` + strings.TrimSuffix(strings.Repeat(`"user",`, 500_000), ",") + `]}}]}`,
		"icons":          `{"tools":[{"name":"a","icons":[` + strings.TrimSuffix(strings.Repeat(`{},`, 500_000), ",") + `]}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			within(t, func() {
				m, err := Parse([]byte(frame), Limits{})
				if err != nil || len(m.Problems) > 100 {
					t.Errorf("%d problems, %v", len(m.Problems), err)
				}
			})
		})
	}
}

// A field of Schema that subschemas does not know would be visited by the validator behind the back of the count.
func TestEverySubschemaIsCounted(t *testing.T) {
	schema := reflect.TypeFor[*jsonschema.Schema]()
	typ := schema.Elem()
	for i := range typ.NumField() {
		f := typ.Field(i)
		var s jsonschema.Schema
		v := reflect.ValueOf(&s).Elem().Field(i)
		switch f.Type {
		case schema:
			v.Set(reflect.ValueOf(&jsonschema.Schema{}))
		case reflect.SliceOf(schema):
			v.Set(reflect.ValueOf([]*jsonschema.Schema{{}}))
		case reflect.MapOf(reflect.TypeFor[string](), schema):
			v.Set(reflect.ValueOf(map[string]*jsonschema.Schema{"k": {}}))
		default:
			continue
		}
		if got := len(subschemas(&s)); got != 1 {
			t.Errorf("subschemas finds %d schemas in %s; want 1", got, f.Name)
		}
	}
}
