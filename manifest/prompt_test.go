package manifest

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

func declare(t *testing.T, members string, l Limits) *Manifest {
	t.Helper()
	m, err := Parse([]byte(`{"tools":[],`+members+`}`), l)
	if err != nil {
		t.Fatalf("Parse(%.300s): %v", members, err)
	}
	return m
}

func TestPromptIsReadWhole(t *testing.T) {
	m := declare(t, `"prompts":[{"name":"code review","title":" Review\u200b ","description":"Reviews\nit","arguments":[
		{"name":"lang","title":"T","description":"D\u202e","required":true,"complete":true},{"name":"x y"},{"name":"z","required":false,"complete":null}],
		"icons":[{"src":"https://a.example/i.png"}],"timeoutMs":1500,"source":"dynamic","other":1}]`, Limits{})
	if len(m.Prompts) != 1 || len(m.Problems) != 0 {
		t.Fatalf("%+v", m)
	}
	p := *m.Prompts[0]
	if p.Digest = ""; !reflect.DeepEqual(p, Prompt{
		Name: "code review", Title: "Review", Description: "Reviews\nit", Timeout: 1500 * time.Millisecond, Dynamic: true,
		Icons:     []byte(`[{"src":"https://a.example/i.png"}]`),
		Arguments: []PromptArgument{{"lang", "T", "D", true, true}, {Name: "x y"}, {Name: "z"}},
	}) {
		t.Errorf("got %+v", p)
	}
}

func TestBadPromptsAreSkippedAndNamed(t *testing.T) {
	for _, tt := range []struct{ prompt, name, want string }{
		{`7`, "", "a prompt must be an object, not a number"},
		{`{}`, "", "the name is missing"},
		{`{"name":5}`, "", "the name must be text"},
		{`{"name":" \u200b"}`, "", "the name is empty"},
		{`{"name":"` + strings.Repeat("n", 257) + `"}`, strings.Repeat("n", 253) + "…", "the limit is 256"},
		{`{"name":"a","timeoutMs":-1}`, "a", "timeoutMs must be"},
		{`{"name":"a","arguments":{"x":{}}}`, "a", "arguments must be an array of {name, …}, not an object"},
		{`{"name":"a","arguments":[{"name":"x"},"y"]}`, "a", "argument 1 (from 0): it must be an object, not text"},
		{`{"name":"a","arguments":[{}]}`, "a", "argument 0 (from 0): the name is missing"},
		{`{"name":"a","arguments":[{"name":"x"},{"name":"x"}]}`, "a", "argument 1 (from 0): its name is that of an earlier one"},
		{`{"name":"a","arguments":[{"name":"x","required":"yes"}]}`, "a", "required must be true or false, not text"},
		{`{"name":"a","arguments":[{"name":"x","complete":["a"]}]}`, "a", "complete must be true or false, not an array"},
		{`{"name":"a","arguments":[` + strings.Repeat(`{"name":"x"},`, 1) + manyArguments(101) + `]}`, "a", "too many arguments"},
	} {
		m := declare(t, `"prompts":[{"name":"good"},`+tt.prompt+`,{"name":"__unregister_tool__"}]`, Limits{})
		if len(m.Prompts) != 2 || len(m.Problems) != 1 {
			t.Errorf("%.100s: %d prompts, problems %+v", tt.prompt, len(m.Prompts), m.Problems)
			continue
		}
		if p := m.Problems[0]; p.Kind != "prompt" || p.Index != 1 || p.Name != tt.name || !strings.Contains(p.Reason, tt.want) {
			t.Errorf("%.100s: %+v; want %q", tt.prompt, p, tt.want)
		}
	}
}

func manyArguments(n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf(`{"name":"a%d"}`, i))
	}
	return strings.Join(list, ",")
}

func TestPartsOfPromptsAreDropped(t *testing.T) {
	m := declare(t, `"prompts":[{"name":"a","title":1,"description":[],"icons":{}}]`, Limits{})
	if len(m.Prompts) != 1 || len(m.Problems) != 3 {
		t.Fatalf("%+v", m)
	}
	for i, want := range []string{"title", "description", "icons"} {
		if p := m.Problems[i]; !strings.HasPrefix(p.Reason, want+" was dropped") || !strings.HasSuffix(p.Reason, "; the prompt itself is kept") {
			t.Errorf("%+v; want one about %s", p, want)
		}
	}
}

func TestListsAreBoundedAndTheLastOfANameWins(t *testing.T) {
	m := declare(t, `"prompts":[{"name":"a","title":"1"},{"name":"b"},{"name":"a","title":"2"},{"name":"c"}],
		"resources":[{"uri":"cart","title":"1"},{"uri":"/cart","title":"2"},{"uri":"https://a.example"}],
		"resourceTemplates":[{"uriTemplate":"cart"},{"uriTemplate":"x/{y}"},{"uriTemplate":"{z}"}]`, Limits{Prompts: 3, Resources: 5})
	if len(m.Prompts) != 2 || m.Prompts[0].Name != "b" || m.Prompts[1].Title != "2" {
		t.Errorf("prompts %+v", m.Prompts)
	}
	var uris []string
	for _, r := range m.Resources {
		uris = append(uris, r.URI)
	}
	if got := strings.Join(uris, " "); got != "/cart https://a.example cart x/{y}" {
		t.Errorf("resources %s", got)
	}
	want := []Problem{
		{"resource", "", -1, "the page declares 6 resources and templates and the limit is 5: the first 5 are kept"},
		{"prompt", "", 3, "the page declares 4 prompts and the limit is 3: the first 3 are kept"},
		{"prompt", "a", 0, "the same name is declared at positions 0 and 2 (from 0): the last one, at 2, is used"},
		{"resource", "cart", 0, "the same URI is declared at positions 0 and 1 (from 0): the last one, at 1, is used"},
	}
	if !reflect.DeepEqual(m.Problems, want) {
		t.Errorf("problems %+v\nwant %+v", m.Problems, want)
	}
}

func TestListsThatAreNoArrays(t *testing.T) {
	m := declare(t, `"prompts":{},"resources":7,"resourceTemplates":"x"`, Limits{})
	if len(m.Problems) != 3 || m.Prompts != nil || m.Resources != nil {
		t.Errorf("%+v", m)
	}
	for i, want := range []Problem{
		{"prompt", "", -1, "prompts must be an array, not an object"},
		{"resource", "", -1, "resources must be an array, not a number"},
		{"resource", "", -1, "resourceTemplates must be an array, not text"},
	} {
		if m.Problems[i] != want {
			t.Errorf("got %+v; want %+v", m.Problems[i], want)
		}
	}
	if m := declare(t, `"prompts":null,"resources":null,"resourceTemplates":[]`, Limits{}); len(m.Problems) != 0 {
		t.Errorf("%+v", m.Problems)
	}
}

func TestReportedProblemsKeepTheirKind(t *testing.T) {
	m := declare(t, `"problems":[{"kind":"prompt","name":"p","index":1,"reason":"r"},{"kind":"resource","name":"u","reason":"r"},{"kind":"tool","name":"t","reason":"r"},{"kind":7,"name":"n","reason":"r"}]`, Limits{})
	want := []Problem{{"prompt", "p", 1, "r"}, {"resource", "u", -1, "r"}, {"", "t", -1, "r"}, {"", "n", -1, "r"}}
	if !reflect.DeepEqual(m.Problems, want) {
		t.Errorf("got %+v; want %+v", m.Problems, want)
	}
}

func TestDigestsOfPromptsAndResources(t *testing.T) {
	seen := map[string]string{}
	for _, members := range []string{
		`"prompts":[{"name":"a"}]`, `"prompts":[{"name":"b"}]`, `"prompts":[{"name":"a","title":"b"}]`, `"prompts":[{"name":"a","description":"b"}]`,
		`"prompts":[{"name":"a","source":"dynamic"}]`, `"prompts":[{"name":"a","icons":[{"src":"https://a.example/i"}]}]`,
		`"prompts":[{"name":"a","arguments":[{"name":"b"}]}]`, `"prompts":[{"name":"a","arguments":[{"name":"b","required":true}]}]`,
		`"prompts":[{"name":"a","arguments":[{"name":"b","complete":true}]}]`,
		`"resources":[{"uri":"a"}]`, `"resourceTemplates":[{"uriTemplate":"a"}]`, `"resources":[{"uri":"a","name":"b"}]`,
		`"resources":[{"uri":"a","mimeType":"text/plain"}]`, `"resources":[{"uri":"a","size":0}]`, `"resources":[{"uri":"a","size":1}]`,
		`"resources":[{"uri":"a","annotations":{"priority":1}}]`, `"resources":[{"uri":"a","source":"dynamic"}]`, `"resources":[{"uri":"/a"}]`,
		`"resourceTemplates":[{"uriTemplate":"{a}"}]`, `"resourceTemplates":[{"uriTemplate":"{a}","complete":["a"]}]`,
	} {
		m, again := declare(t, members, Limits{}), declare(t, strings.Replace(members, "}]", `,"timeoutMs":5}]`, 1), Limits{})
		digest := ""
		for _, p := range m.Prompts {
			digest = p.Digest
		}
		for i, r := range m.Resources {
			if digest = r.Digest; again.Resources[i].Digest != digest {
				t.Errorf("%s: the timeout counts", members)
			}
		}
		if other, ok := seen[digest]; ok || digest == "" {
			t.Errorf("%s and %s have the same digest %q", members, other, digest)
		}
		seen[digest] = members
	}
}

func TestPromptArgumentsAreChecked(t *testing.T) {
	p := &Prompt{Arguments: []PromptArgument{{Name: "lang", Description: "Go or TypeScript", Required: true}, {Name: "style"}}}
	for _, tt := range []struct {
		args        map[string]string
		param, want string
	}{
		{map[string]string{"lang": ""}, "", ""},
		{map[string]string{"lang": "Go", "style": "x"}, "", ""},
		{nil, "lang", `missing required argument "lang" (Go or TypeScript): the prompt takes "lang" (required), "style"`},
		{map[string]string{"lang": "Go", "b": "", "a": ""}, "a", `unknown argument "a": the prompt takes "lang" (required), "style"`},
	} {
		err := p.CheckArguments(tt.args)
		var arg *ArgumentError
		if errors.As(err, &arg) != (tt.want != "") || arg != nil && (arg.Param != tt.param || arg.Reason != tt.want) {
			t.Errorf("%v: %v; want %q", tt.args, err, tt.want)
		}
	}
	if err := (&Prompt{}).CheckArguments(map[string]string{"x\x1b": ""}); err == nil || err.Error() != `unknown argument "x": the prompt takes none` {
		t.Errorf("got %v", err)
	}
	many := declare(t, `"prompts":[{"name":"a","arguments":[`+manyArguments(100)+`]}]`, Limits{}).Prompts[0]
	if err := many.CheckArguments(map[string]string{strings.Repeat("x", 1<<20): ""}); err == nil || len(err.Error()) > 500 || !strings.HasSuffix(err.Error(), "88 more") {
		t.Errorf("got %v", err)
	}
}
