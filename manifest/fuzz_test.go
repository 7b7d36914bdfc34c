package manifest

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/yosida95/uritemplate/v3"
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
	for _, members := range []string{
		`"prompts":[{"name":"a","arguments":[{"name":"x","required":true,"complete":true},{"name":"y","title":"\u202e"}],"icons":[{"src":"https://x/y"}],"timeoutMs":5},{"name":"a"},7]`,
		`"resources":[{"uri":"/cart","size":5,"annotations":{"audience":["user"],"priority":0.5,"lastModified":"2025-01-12"}},{"uri":"cart"},{"uri":"https://[::1]/ä"},{"uri":"page:x"}]`,
		`"resourceTemplates":[{"uriTemplate":"item/{id}{?a*,b:3}","complete":["id","c"],"mimeType":"text/plain"},{"uriTemplate":"x:{+y}{/z}"}],"problems":[{"kind":"resource"}]`,
	} {
		f.Add([]byte(`{"tools":[],`+members+`}`), "Shop", 0)
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
			checkNames(t, BareToolNames(prefix, m.Tools, max, nil), limit)
			checkNames(t, PublishedPromptNames(prefix, m.Prompts, max), limit)
			checkResources(t, prefix, m.Resources)
		}
		for _, p := range m.Prompts {
			if err := p.CheckArguments(nil); err != nil && (len(err.Error()) > 4000 || strings.ContainsAny(err.Error(), "\n\x1b")) {
				t.Errorf("error %q", err)
			}
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

// checkResources checks that the resources of a page lead back to themselves and to nothing else.
func checkResources(t *testing.T, prefix string, resources []*Resource) {
	t.Helper()
	seen := map[string]bool{}
	for _, r := range resources {
		kind := strconv.FormatBool(r.Template)
		if f := kind + r.Fallback(prefix); seen[f] {
			t.Errorf("%q: %s twice", r.URI, f)
		} else {
			seen[f] = true
		}
		if r.Name == "" || !utf8.ValidString(r.Name) || !utf8.ValidString(r.URI) {
			t.Errorf("%+v", r)
		}
		for _, raw := range []json.RawMessage{r.Annotations, r.Icons} {
			if raw != nil && (!json.Valid(raw) || !utf8.Valid(raw)) {
				t.Errorf("not valid: %q", raw)
			}
		}
		checkPublished(t, r, prefix)
	}
}

func checkPublished(t *testing.T, r *Resource, prefix string) {
	t.Helper()
	below := "page://" + Slug(prefix) + "/"
	if f := r.Fallback(prefix); !strings.HasPrefix(f, below) {
		t.Errorf("%q falls back to %q", r.URI, f)
	}
	for _, published := range []string{r.Published(prefix), r.Fallback(prefix)} {
		if strings.HasPrefix(strings.ToLower(published), "page:") && !strings.HasPrefix(published, below) {
			t.Errorf("%q is published as %q", r.URI, published)
		}
		uri := published
		if r.Template {
			tmpl, err := uritemplate.New(published)
			if err != nil {
				t.Errorf("%q is published as %q: %v", r.URI, published, err)
				continue
			}
			values := uritemplate.Values{}
			for _, name := range tmpl.Varnames() {
				values[name] = uritemplate.String("v")
			}
			if ambiguous(r) {
				continue
			}
			if uri, err = tmpl.Expand(values); err != nil {
				t.Fatal(err)
			}
		}
		if published != escapeURI(strings.NewReplacer("{", "", "}", "").Replace(published), false) && !r.Template {
			t.Errorf("%q is published as %q, which is no URI", r.URI, published)
		}
		own, vars, ok := r.Match(published, uri)
		if !ok || vars == nil || !r.Template && own != r.URI {
			t.Errorf("%q: %q does not match %q: %q, %v", r.URI, uri, published, own, ok)
		}
	}
}

// ambiguous reports whether the first way to split a URI may be one that does not do, while another would: a variable occurs
// twice or may be cut off, or names stand in the way.
func ambiguous(r *Resource) bool {
	seen := map[string]bool{}
	parts := r.compiled().parts
	for i, p := range parts {
		if p.expr == nil {
			continue
		}
		if strings.IndexByte(";?&", p.expr.op) >= 0 && i < len(parts)-1 {
			return true
		}
		for _, v := range p.expr.vars {
			if seen[v.name] || v.prefix > 0 {
				return true
			}
			seen[v.name] = true
		}
	}
	return false
}

func FuzzMatch(f *testing.F) {
	for _, seed := range [][2]string{
		{"item/{id}", "page://p/item/5"}, {"{+path}{?q,r*}{#f}", "page://p/a/b?q=1&x=2#y"}, {"{/a,b*}{;c}", "page://p//1/2/3;c=4"},
		{"https://[::1]/{a:3}{.b}-{a}", "https://[::1]/abc.d-abcd"}, {"K\u00e4se{x}20", "page://p/K%C3%A4se%2020"}, {"cart", "page://p/cart"},
		{"{a,b*,c}{d}", "page://p/1,2,3,%ff"}, {"x{&a*}{&b}", "page://p/x&k=1&b=%"}, {"{?a}&a={a}", "page://p/?a=1&a=1"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, own, uri string) {
		for _, isTemplate := range []bool{false, true} {
			if _, err := newURIForm(own, isTemplate); err != nil {
				if len(err.Error()) > 400 {
					t.Errorf("error of %d bytes", len(err.Error()))
				}
				continue
			}
			r := &Resource{URI: own, Template: isTemplate}
			checkPublished(t, r, "p")
			for _, published := range []string{r.Published("p"), r.Fallback("p")} {
				got, vars, ok := r.Match(published, uri)
				if !ok {
					continue
				}
				if !strings.HasSuffix(escapeURI(uri, true), escapeURI(strings.TrimLeft(got, "/"), true)) {
					t.Errorf("%q: the own form of %q is %q", published, uri, got)
				}
				for name, val := range vars {
					if !slices.Contains(r.compiled().variables, name) || !utf8.ValidString(val) {
						t.Errorf("%q: %q is %q", published, name, val)
					}
				}
				if again, _, ok := r.Match(published, escapeURI(uri, true)); !ok || again != got {
					t.Errorf("%q: %q is %q, and escaped %q, %v", published, uri, got, again, ok)
				}
			}
		}
	})
}

func FuzzCheckOutput(f *testing.F) {
	f.Add([]byte(`{"properties":{"n":{"type":"number"}},"required":["n"]}`), []byte(`{"n":"5"}`))
	f.Add([]byte(`{"properties":{"a":{"items":{"$ref":"#"}}},"additionalProperties":false}`), []byte(`{"a":[{"a":[]},{"b":1e999}]}`))
	f.Fuzz(func(t *testing.T, schema, output []byte) {
		err := (&Tool{OutputSchema: schema}).CheckOutput(output)
		var arg *ArgumentError
		if err != nil && (!errors.As(err, &arg) || arg.Reason == "" || !utf8.ValidString(arg.Reason) || strings.ContainsAny(arg.Reason, "\n\x1b")) {
			t.Errorf("error %#v", err)
		}
	})
}
