package manifest

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestResourceIsReadWhole(t *testing.T) {
	m := declare(t, `"resources":[{"uri":"/cart","name":"Cart\u200b","title":"T","description":"What\nis in it","mimeType":"text/html; charset=utf-8","size":12,
		"annotations":{"audience":["user","assistant","user"],"priority":0.50,"lastModified":"2025-01-12T15:00:58Z","x":1},
		"icons":[{"src":"https://a.example/i.png"}],"timeoutMs":1500,"source":"host","complete":["a"]}],
		"resourceTemplates":[{"uriTemplate":"item/{id}{?a,b}","size":1,"complete":["b","id","b"],"source":"dynamic"}]`, Limits{})
	if len(m.Resources) != 2 || len(m.Problems) != 0 {
		t.Fatalf("%+v", m)
	}
	r := m.Resources[0]
	if r.URI != "/cart" || r.Template || r.Name != "Cart" || r.Title != "T" || r.Description != "What\nis in it" || r.MIMEType != "text/html; charset=utf-8" ||
		r.Size == nil || *r.Size != 12 || r.Timeout != 1500*time.Millisecond || r.Dynamic || r.Completes != nil ||
		string(r.Annotations) != `{"audience":["user","assistant"],"priority":0.5,"lastModified":"2025-01-12T15:00:58Z"}` ||
		string(r.Icons) != `[{"src":"https://a.example/i.png"}]` {
		t.Errorf("got %+v", r)
	}
	r = m.Resources[1]
	if r.URI != "item/{id}{?a,b}" || !r.Template || r.Name != r.URI || r.Size != nil || !r.Dynamic || !reflect.DeepEqual(r.Completes, []string{"b", "id"}) {
		t.Errorf("got %+v", r)
	}
}

func TestBadResourcesAreSkippedAndNamed(t *testing.T) {
	for _, tt := range []struct{ resource, name, want string }{
		{`7`, "", "a resource must be an object, not a number"},
		{`{}`, "", "the uri is missing"},
		{`{"uriTemplate":"a"}`, "", "the uri is missing"},
		{`{"uri":5}`, "", "the uri must be text, not a number"},
		{`{"uri":"page://x\u200b"}`, "page://x", "the uri has white space or characters that cannot be seen"},
		{`{"uri":"a","timeoutMs":"5"}`, "a", "timeoutMs must be"},
	} {
		m := declare(t, `"resources":[{"uri":"good"},`+tt.resource+`]`, Limits{})
		if len(m.Resources) != 1 || len(m.Problems) != 1 {
			t.Errorf("%s: %d resources, problems %+v", tt.resource, len(m.Resources), m.Problems)
			continue
		}
		if p := m.Problems[0]; p.Kind != "resource" || p.Index != 1 || p.Name != tt.name || !strings.Contains(p.Reason, tt.want) {
			t.Errorf("%s: %+v; want %q", tt.resource, p, tt.want)
		}
	}
}

func TestPartsOfResourcesAreDropped(t *testing.T) {
	for _, tt := range []struct{ member, want string }{
		{`"name":5`, "name was dropped: it must be text"},
		{`"title":5`, "title was dropped"},
		{`"description":5`, "description was dropped"},
		{`"mimeType":5`, `mimeType was dropped: it must be text like text/plain, got 5`},
		{`"mimeType":"text"`, "mimeType was dropped"},
		{`"mimeType":"text/plain\u200b"`, "mimeType was dropped"},
		{`"mimeType":"a/` + strings.Repeat("b", 300) + `"`, "mimeType was dropped"},
		{`"size":-1`, "size was dropped: it must be a whole number of bytes, got -1"},
		{`"size":1.5`, "size was dropped"},
		{`"size":1e300`, "size was dropped"},
		{`"size":"1"`, "size was dropped"},
		{`"annotations":[]`, "annotations was dropped"},
		{`"annotations":` + strings.Repeat(`{"a":`, 70) + `1` + strings.Repeat("}", 70), "annotations was dropped"},
		{`"annotations":{"audience":"user"}`, "annotations.audience was dropped"},
		{`"annotations":{"audience":["user","all"]}`, "annotations.audience was dropped"},
		{`"annotations":{"audience":[]}`, "annotations.audience was dropped"},
		{`"annotations":{"priority":2}`, "annotations.priority was dropped: it must be a number from 0 to 1, got 2"},
		{`"annotations":{"priority":"1"}`, "annotations.priority was dropped"},
		{`"annotations":{"lastModified":"yesterday"}`, "annotations.lastModified was dropped"},
		{`"annotations":{"lastModified":5}`, "annotations.lastModified was dropped"},
		{`"icons":5`, "icons was dropped"},
	} {
		m := declare(t, `"resources":[{"uri":"a",`+tt.member+`}]`, Limits{})
		if len(m.Resources) != 1 || len(m.Problems) != 1 || !strings.HasPrefix(m.Problems[0].Reason, tt.want) || !strings.HasSuffix(m.Problems[0].Reason, "; the resource itself is kept") {
			t.Errorf("%.60s: %+v; want %q", tt.member, m, tt.want)
			continue
		}
		if r := m.Resources[0]; r.Name != "a" || r.MIMEType != "" || r.Size != nil || r.Annotations != nil || r.Icons != nil {
			t.Errorf("%.60s: %+v", tt.member, r)
		}
	}
}

func TestVariablesThatCannotBeCompleted(t *testing.T) {
	m := declare(t, `"resourceTemplates":[{"uriTemplate":"{a}","complete":["b","a",5]},{"uriTemplate":"{b}","complete":"b"}]`, Limits{})
	if len(m.Resources) != 2 || !reflect.DeepEqual(m.Resources[0].Completes, []string{"a"}) || m.Resources[1].Completes != nil {
		t.Errorf("%+v", m.Resources)
	}
	for i, want := range []string{`complete names "b", which is no variable`, `complete names 5, which is no variable`, "complete was dropped: it must be an array"} {
		if len(m.Problems) != 3 || !strings.HasPrefix(m.Problems[i].Reason, want) {
			t.Errorf("%+v; want %q", m.Problems, want)
		}
	}
	m = declare(t, `"resourceTemplates":[{"uriTemplate":"{a}","complete":[`+strings.Repeat(`7,`, 100_000)+`7]}]`, Limits{})
	if len(m.Problems) > 10 {
		t.Errorf("%d problems", len(m.Problems))
	}
}
