package manifest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// parse is Parse of a frame with those tools, which must succeed.
func parse(t *testing.T, tools string) *Manifest {
	t.Helper()
	m, err := Parse([]byte(`{"type":"register_tools","tools":[`+tools+`]}`), Limits{})
	if err != nil {
		t.Fatalf("Parse(%.200s): %v", tools, err)
	}
	return m
}

// one is the only tool of a frame with that tool, which must have no problems.
func one(t *testing.T, tool string) *Tool {
	t.Helper()
	m := parse(t, tool)
	if len(m.Tools) != 1 || len(m.Problems) != 0 {
		t.Fatalf("Parse(%.200s): %d tools, problems %+v; want one tool and no problem", tool, len(m.Tools), m.Problems)
	}
	return m.Tools[0]
}

func names(m *Manifest) string {
	var out []string
	for _, t := range m.Tools {
		out = append(out, t.Name)
	}
	return strings.Join(out, " ")
}

func TestFrameThatIsNoManifestIsAnError(t *testing.T) {
	for _, tt := range []struct{ name, frame, want string }{
		{"empty", ``, "valid JSON"},
		{"not JSON", `{"tools":[}`, "valid JSON"},
		{"cut off", `{"tools":[{"name":"a"`, "valid JSON"},
		{"two values", `{"tools":[]} {}`, "valid JSON"},
		{"array", `[]`, "not an array"},
		{"null", `null`, "not null"},
		{"text", `"tools"`, "not text"},
		{"no tools", `{"type":"register_tools"}`, "has no tools"},
		{"tools null", `{"tools":null}`, "must be an array"},
		{"tools object", `{"tools":{"a":{}}}`, "must be an array"},
		{"other case", `{"Tools":[]}`, "has no tools"},
		{"deep and broken", `{"tools":` + strings.Repeat("[", 20_000), "well-formed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, err := Parse([]byte(tt.frame), Limits{})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Parse = %+v, %v; want an error with %q", m, err, tt.want)
			}
		})
	}
}

func TestFrameTextsAreCleaned(t *testing.T) {
	m, err := Parse([]byte(`{"tools":[],"appLabel":" Sh\u200bop\n2 ","summary":"one\ntwo\u202e\u001b[31m","url":"https://a.example/\u0000x",
		"title":"T\ti","Summary":"other"}`), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if m.Label != "Shop 2" || m.Summary != "one\ntwo" || m.URL != "https://a.example/x" || m.Title != "T i" {
		t.Errorf("got %+v", m)
	}
	m, err = Parse([]byte(`{"tools":[],"appLabel":7,"summary":{},"url":null,"title":[]}`), Limits{})
	if err != nil || m.Label != "" || m.Summary != "" || m.URL != "" || m.Title != "" {
		t.Errorf("texts of other types: got %+v, %v", m, err)
	}
	m, _ = Parse([]byte(`{"tools":[],"summary":"`+strings.Repeat("é", 4000)+`"}`), Limits{})
	if len(m.Summary) > 4<<10 || !strings.HasSuffix(m.Summary, "é…") {
		t.Errorf("long summary: %d bytes, ends in %q", len(m.Summary), m.Summary[len(m.Summary)-8:])
	}
}

func TestBadToolIsSkippedAndTheOthersStay(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 10_000) + `1` + strings.Repeat(`}`, 10_000)
	deeper := strings.Repeat(`[`, 200_000) + strings.Repeat(`]`, 200_000)
	for _, tt := range []struct{ name, tool, want string }{
		{"null", `null`, "must be an object, not null"},
		{"number", `7`, "must be an object"},
		{"array", `[]`, "must be an object, not an array"},
		{"name missing", `{"description":"d"}`, "name is missing"},
		{"name in other case", `{"Name":"x"}`, "name is missing"},
		{"name null", `{"name":null}`, "name is missing"},
		{"name 7", `{"name":7}`, "name must be text, not a number"},
		{"name empty", `{"name":""}`, "name is empty"},
		{"name invisible", `{"name":" \u200b"}`, "name is empty"},
		{"name half a surrogate", `{"name":"a\ud800"}`, "not valid Unicode"},
		{"name 1 MB", `{"name":"` + strings.Repeat("n", 1<<20) + `"}`, "the limit is 256"},
		{"name reserved", `{"name":"__unregister_tool__"}`, "reserved"},
		{"name reserved, path", `{"name":"__register_tool_by_path__"}`, "reserved"},
		{"name reserved, code", `{"name":"__register_tool_by_code__"}`, "reserved"},
		{"description an object", `{"name":"x","description":{}}`, "description must be text"},
		{"params null", `{"name":"x","params":null}`, "params must be an object"},
		{"params 5", `{"name":"x","params":5}`, "params must be an object"},
		{"params array", `{"name":"x","params":[]}`, "params must be an object"},
		{"param of unknown type", `{"name":"x","params":{"a":{"type":"date"}}}`, paramTypes},
		{"inputSchema true", `{"name":"x","inputSchema":true}`, "must be a JSON Schema object"},
		{"inputSchema text that is no schema", `{"name":"x","inputSchema":"hello"}`, "not valid JSON"},
		{"inputSchema empty text", `{"name":"x","inputSchema":""}`, "not valid JSON"},
		{"inputSchema of type string", `{"name":"x","inputSchema":{"type":"string"}}`, `must have "type":"object"`},
		{"inputSchema of type 7", `{"name":"x","inputSchema":{"type":7}}`, `must have "type":"object"`},
		{"inputSchema, properties an array", `{"name":"x","inputSchema":{"properties":[]}}`, "properties in inputSchema"},
		{"inputSchema, required true", `{"name":"x","inputSchema":{"required":true}}`, "required in inputSchema"},
		{"inputSchema 10,000 deep", `{"name":"x","inputSchema":` + deep + `}`, "nests deeper than 64"},
		{"params 10,000 deep", `{"name":"x","params":` + deep + `}`, "nests deeper than 64"},
		{"inputSchema 200,000 deep", `{"name":"x","inputSchema":` + deeper + `}`, "nests deeper than 64"},
		{"inputSchema text 10,000 deep", `{"name":"x","inputSchema":` + string(appendString(nil, deep)) + `}`, "nests deeper than 64"},
		{"inputSchema with an endless number", `{"name":"x","inputSchema":{"properties":{"a":{"default":1e999}}}}`, "number out of range"},
		{"params with an endless number", `{"name":"x","params":{"a":{"enum":[-1e999]}}}`, "number out of range"},
		{"inputSchema too large", `{"name":"x","inputSchema":{"title":"` + strings.Repeat("t", 70_000) + `"}}`, "the limit is 65536"},
		{"timeoutMs 0", `{"name":"x","timeoutMs":0}`, "positive number"},
		{"timeoutMs negative", `{"name":"x","timeoutMs":-5}`, "positive number"},
		{"timeoutMs text", `{"name":"x","timeoutMs":"5"}`, "positive number"},
		{"timeoutMs endless", `{"name":"x","timeoutMs":1e999}`, "positive number"},
		{"timeoutMs beyond a day", `{"name":"x","timeoutMs":86400001}`, "at most 24 hours"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			start := time.Now()
			m := parse(t, `{"name":"a"},{"name":"b"},`+tt.tool+`,{"name":"c"},{"name":"d"}`)
			if got := names(m); got != "a b c d" {
				t.Errorf("tools %q", got)
			}
			if len(m.Problems) != 1 || m.Problems[0].Index != 2 || !strings.Contains(m.Problems[0].Reason, tt.want) {
				t.Errorf("problems %+v; want one at 2 with %q", m.Problems, tt.want)
			}
			if took := time.Since(start); took > 2*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

func TestProblemNamesAreCleaned(t *testing.T) {
	m := parse(t, `{"name":"a\nERROR \u202eb","description":7}`)
	if len(m.Problems) != 1 || m.Problems[0].Name != "a ERROR b" {
		t.Errorf("got %+v", m.Problems)
	}
}

func TestDuplicateNameLastWinsWithOneProblem(t *testing.T) {
	m := parse(t, `{"name":"a","description":"first"},{"name":"b"},{"name":"a","description":"second"},{"name":"a","params":3}`)
	if names(m) != "b a" || m.Tools[1].Description != "second" {
		t.Errorf("tools %q, description %q", names(m), m.Tools[1].Description)
	}
	if len(m.Problems) != 2 {
		t.Fatalf("problems %+v", m.Problems)
	}
	if p := m.Problems[1]; p.Name != "a" || p.Index != 0 || !strings.Contains(p.Reason, "positions 0 and 2") {
		t.Errorf("problem %+v; want one naming both positions", p)
	}
	m = parse(t, strings.Repeat(`{"name":"a"},`, 9)+`{"name":"a"}`)
	if len(m.Tools) != 1 || len(m.Problems) != 1 || !strings.Contains(m.Problems[0].Reason, "0, 1, 2, 3, 4 (and 4 more) and 9") {
		t.Errorf("ten times: %d tools, %+v", len(m.Tools), m.Problems)
	}
}

func TestTooManyToolsKeepsTheFirst(t *testing.T) {
	m, err := Parse([]byte(`{"tools":[{"name":"a"},{"name":"b"},{"name":"c"},{"name":"d"}]}`), Limits{Tools: 2})
	if err != nil || names(m) != "a b" {
		t.Fatalf("%q, %v", names(m), err)
	}
	if len(m.Problems) != 1 || !strings.Contains(m.Problems[0].Reason, "declares 4 tools and the limit is 2: the first 2") {
		t.Errorf("problems %+v", m.Problems)
	}
}

func TestProblemsAreBounded(t *testing.T) {
	m := parse(t, strings.TrimSuffix(strings.Repeat(`7,`, 600), ","))
	if len(m.Problems) != 100 {
		t.Fatalf("%d problems", len(m.Problems))
	}
	if !strings.Contains(m.Problems[0].Reason, "declares 600 tools") {
		t.Errorf("first: %+v", m.Problems[0])
	}
	if want := fmt.Sprintf("and %d more problems", 512-98); m.Problems[99].Reason != want {
		t.Errorf("last: %+v; want %q", m.Problems[99], want)
	}
}

func TestProblemsOfThePageAreMerged(t *testing.T) {
	m, err := Parse([]byte(`{"tools":[7],"problems":[{"name":"save\u200b","index":3,"reason":"fn is\nmissing"},5,{"index":"x"},
		{"index":1e300,"reason":"`+strings.Repeat("r", 5000)+`"}]}`), Limits{})
	if err != nil || len(m.Problems) != 4 {
		t.Fatalf("%+v, %v", m, err)
	}
	if p := m.Problems[1]; p != (Problem{"", "save", 3, "fn is missing"}) {
		t.Errorf("got %+v", p)
	}
	if p := m.Problems[2]; p.Index != -1 || p.Reason == "" {
		t.Errorf("got %+v", p)
	}
	if p := m.Problems[3]; p.Index != -1 || len(p.Reason) > maxReasonBytes {
		t.Errorf("got %+v", p)
	}
	b, _ := json.Marshal(m.Problems[1])
	if string(b) != `{"name":"save","index":3,"reason":"fn is missing"}` {
		t.Errorf("JSON %s", b)
	}
}

func TestWrongOptionalIsDroppedAndTheToolKept(t *testing.T) {
	big := `"` + strings.Repeat("x", 70_000) + `"`
	deep := strings.Repeat(`[`, 70) + strings.Repeat(`]`, 70)
	for _, tt := range []struct{ name, field, want string }{
		{"title", `"title":7`, "title was dropped"},
		{"example too large", `"example":` + big, "example was dropped"},
		{"example too deep", `"example":` + deep, "example was dropped"},
		{"annotations", `"annotations":[]`, "annotations was dropped"},
		{"annotations too deep", `"annotations":{"x":` + deep + `}`, "annotations was dropped"},
		{"annotation hint", `"annotations":{"readOnlyHint":"yes"}`, "annotations.readOnlyHint was dropped"},
		{"annotation title", `"annotations":{"title":5}`, "annotations.title was dropped"},
		{"icons", `"icons":{}`, "icons was dropped"},
		{"icons too deep", `"icons":` + deep, "icons was dropped"},
		{"icons too large", `"icons":[{"src":"data:image/png;base64,` + strings.Repeat("A", 70_000) + `"}]`, "icons was dropped"},
		{"icon source", `"icons":[{"src":"file:///etc/passwd"},{"src":"javascript:1"},7]`, "3 of its icons dropped"},
		{"outputSchema with an endless number", `"outputSchema":{"maximum":1e999}`, "outputSchema was dropped"},
		{"example with an endless number", `"example":[1e999]`, "example was dropped"},
		{"outputSchema true", `"outputSchema":true`, "outputSchema was dropped"},
		{"outputSchema of an array", `"outputSchema":{"type":"array"}`, "outputSchema was dropped"},
		{"origin", `"source":"dynamic","origin":{"kind":"x"}`, "origin was dropped"},
		{"origin without text", `"source":"dynamic","origin":{"kind":"code"}`, "origin was dropped"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := parse(t, `{"name":"a",`+tt.field+`}`)
			if len(m.Tools) != 1 || len(m.Problems) != 1 {
				t.Fatalf("%d tools, problems %+v", len(m.Tools), m.Problems)
			}
			tool := m.Tools[0]
			if tool.Title != "" || tool.Example != nil || tool.Annotations != nil || tool.Icons != nil || tool.OutputSchema != nil || tool.Origin != nil {
				t.Errorf("something was kept: %+v", tool)
			}
			if r := m.Problems[0].Reason; !strings.Contains(r, tt.want) || !strings.Contains(r, "the tool itself is kept") {
				t.Errorf("reason %q; want %q, and that the tool is kept", r, tt.want)
			}
		})
	}
}

func TestToolFields(t *testing.T) {
	tool := one(t, `{"name":"Save note/v2","description":"Line\n\u200btwo","title":"Save\nit","timeoutMs":1500.5,
		"example":{"a": [1.10, 12345678901234567890]},"outputSchema":{"properties":{"n":{"type":"number"}}},
		"annotations":{"openWorldHint":false,"readOnlyHint":true,"title":"T","x":1},
		"icons":[{"src":"https://a.example/i.png","mimeType":"image/png","sizes":["16x16"],"x":1,"theme":"dark"},{"src":"data:image/png;base64,AA"}],
		"source":"dynamic","origin":{"kind":"path","path":"app.save","code":"no"}}`)
	if tool.Name != "Save note/v2" || tool.Description != "Line\ntwo" || tool.Title != "Save it" {
		t.Errorf("texts: %+v", tool)
	}
	if want := 1500500 * time.Microsecond; tool.Timeout != want {
		t.Errorf("timeout %v; want %v", tool.Timeout, want)
	}
	for _, tt := range []struct{ what, got, want string }{
		{"input", string(tool.InputSchema), `{"type":"object","properties":{}}`},
		{"output", string(tool.OutputSchema), `{"type":"object","properties":{"n":{"type":"number"}}}`},
		{"example", string(tool.Example), `{"a":[1.10,12345678901234567890]}`},
		{"annotations", string(tool.Annotations), `{"title":"T","readOnlyHint":true,"openWorldHint":false}`},
		{"icons", string(tool.Icons), `[{"src":"https://a.example/i.png","mimeType":"image/png","sizes":["16x16"],"theme":"dark"},{"src":"data:image/png;base64,AA"}]`},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: %s; want %s", tt.what, tt.got, tt.want)
		}
	}
	if !tool.Dynamic || *tool.Origin != (Origin{Kind: "path", Path: "app.save"}) {
		t.Errorf("origin %+v", tool.Origin)
	}
	code := one(t, `{"name":"c","source":"dynamic","origin":{"kind":"code","code":"return 1\u200b"}}`)
	if *code.Origin != (Origin{Kind: "code", Code: "return 1\u200b"}) {
		t.Errorf("code is not verbatim: %+v", code.Origin)
	}
	if host := one(t, `{"name":"h","source":"host","origin":{"kind":"path","path":"x"}}`); host.Dynamic || host.Origin != nil {
		t.Errorf("host tool %+v", host)
	}
	if d := one(t, `{"name":"h\u202ei"}`).Description; d != "Runs hi in the page." {
		t.Errorf("default description %q", d)
	}
	if tm := one(t, `{"name":"h","timeoutMs":1e-9}`).Timeout; tm <= 0 {
		t.Errorf("tiny timeout became %v, which means the default", tm)
	}
}

func TestAtMostEightIcons(t *testing.T) {
	icon := `{"src":"http://a.example/i"},`
	m := parse(t, `{"name":"a","icons":[`+strings.TrimSuffix(strings.Repeat(icon, 10), ",")+`]}`)
	var icons []any
	if err := json.Unmarshal(m.Tools[0].Icons, &icons); err != nil || len(icons) != 8 {
		t.Errorf("%d icons, %v", len(icons), err)
	}
	if len(m.Problems) != 1 || !strings.Contains(m.Problems[0].Reason, "2 of its icons dropped: the limit is 8") {
		t.Errorf("problems %+v", m.Problems)
	}
}

func TestRepeatedAndMiscasedKeys(t *testing.T) {
	tool := one(t, `{"name":"a","name":"b","NAME":"c","Description":"no","params":7,"params":{"x":{"type":"string"}}}`)
	if tool.Name != "b" || tool.Description != "Runs b in the page." || !strings.Contains(string(tool.InputSchema), `"x"`) {
		t.Errorf("got %+v", tool)
	}
}

func TestInvalidUTF8InAFrame(t *testing.T) {
	m, err := Parse([]byte("{\"tools\":[{\"name\":\"a\",\"description\":\"x\xffy\",\"inputSchema\":{\"title\":\"\xfe\"}},{\"name\":\"b\xff\"}]}"), Limits{})
	if err != nil || names(m) != "a" || len(m.Problems) != 1 {
		t.Fatalf("%+v, %v", m, err)
	}
	if !strings.Contains(string(m.Tools[0].InputSchema), "\uFFFD") {
		t.Errorf("schema %q", m.Tools[0].InputSchema)
	}
}

func TestDigestCoversWhatIsPublished(t *testing.T) {
	base := one(t, `{"name":"a","params":{"x":{"type":"string"}}}`).Digest
	if again := one(t, ` { "params" : {"x": {"type":"string"}}, "name":"a", "timeoutMs": 5 }`).Digest; again != base {
		t.Error("white space, order or the timeout changed the digest")
	}
	seen := map[string]string{base: "base"}
	for _, tool := range []string{
		`{"name":"b","params":{"x":{"type":"string"}}}`,
		`{"name":"a","params":{"x":{"type":"number"}}}`,
		`{"name":"a","params":{"x":{"type":"string"}},"description":"d"}`,
		`{"name":"a","params":{"x":{"type":"string"}},"title":"d"}`,
		`{"name":"a","params":{"x":{"type":"string"}},"example":{}}`,
		`{"name":"a","params":{"x":{"type":"string"}},"outputSchema":{}}`,
		`{"name":"a","params":{"x":{"type":"string"}},"annotations":{"readOnlyHint":true}}`,
		`{"name":"a","params":{"x":{"type":"string"}},"annotations":{"readOnlyHint":false}}`,
		`{"name":"a","params":{"x":{"type":"string"}},"icons":[{"src":"http://a/b"}]}`,
		`{"name":"a","params":{"x":{"type":"string"}},"source":"dynamic"}`,
		`{"name":"a","params":{"x":{"type":"string"}},"source":"dynamic","origin":{"kind":"code","code":"1"}}`,
	} {
		d := one(t, tool).Digest
		if other, ok := seen[d]; ok {
			t.Errorf("%s has the digest of %s", tool, other)
		}
		seen[d] = tool
	}
}

func TestToolsDoNotKeepTheFrameAlive(t *testing.T) {
	frame := []byte(`{"tools":[{"name":"aa","description":"dd","inputSchema":{"type":"object","properties":{"p":{}}},"example":{"k":1}}]}`)
	m, err := Parse(frame, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range frame {
		frame[i] = '#'
	}
	tool := m.Tools[0]
	if got := tool.Name + tool.Description + string(tool.InputSchema) + string(tool.Example); strings.Contains(got, "#") {
		t.Errorf("the tool shares memory with the frame: %s", got)
	}
}
