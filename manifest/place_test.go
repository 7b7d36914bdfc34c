package manifest

import (
	"fmt"
	"testing"
)

// The page's own script leaves out what it can't send. A problem's place is the one in
// the list that the page's developer wrote, all the same.
func TestPlacesCountWhatThePageLeftOut(t *testing.T) {
	for _, tc := range []struct{ reported, want string }{
		{`[]`, "0 1 3"},
		{`[{"index":0}]`, "1 2 4 0"},
		{`[{"index":5},{"index":1},{"index":2},{"index":1}]`, "0 3 6 5 1 2 1"},
		{`[{"index":3,"kind":"prompt"},{"index":-1},{"index":"0"},{}]`, "0 1 3 3 -1 -1 -1"},
		{`[{"index":1e9}]`, "0 1 3 1000000000"},
	} {
		m, err := Parse([]byte(`{"tools":[{"name":5},{"name":"a","title":7},{"name":"b"},{"name":"c","params":5}],"problems":`+tc.reported+`}`), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, p := range m.Problems {
			got += fmt.Sprintf(" %d", p.Index)
		}
		if got != " "+tc.want {
			t.Errorf("reported %s: problems at%s, want %s", tc.reported, got, tc.want)
		}
	}
	m, err := Parse([]byte(`{"tools":[],"prompts":[{"name":"a"},{"name":"a"}],"problems":[{"kind":"prompt","index":0}]}`), Limits{})
	if err != nil || m.Problems[0].Reason != "the same name is declared at positions 1 and 2 (from 0): the last one, at 2, is used" {
		t.Errorf("problems %+v, %v", m.Problems, err)
	}
}
