package tenant

import (
	"encoding/json"
	"os"
	"testing"
)

// TestParseConnect reads the table that the page scripts are tested with too.
func TestParseConnect(t *testing.T) {
	raw, err := os.ReadFile("testdata/connect.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		In, Kind, Session, Channel, Name, Canonical string
	}
	if err := json.Unmarshal(raw, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) < 20 {
		t.Fatalf("only %d cases", len(cases))
	}
	for _, c := range cases {
		got := ParseConnect(c.In)
		if want := (Connect{c.Session, c.Channel, c.Name}); got != want {
			t.Errorf("ParseConnect(%q) = %+v, want %+v", c.In, got, want)
		}
		kind := "root"
		switch {
		case got == Connect{}:
			kind = "none"
		case got.Session != "":
			kind = "session"
		case got.Channel != "":
			kind = "channel"
		}
		if kind != c.Kind || got.String() != c.Canonical {
			t.Errorf("%q is a %s with the form %q, want a %s with %q", c.In, kind, got, c.Kind, c.Canonical)
		}
		if again := ParseConnect(got.String()); again != got && got != (Connect{}) {
			t.Errorf("%q: the mended form %q parses to %+v", c.In, got, again)
		}
	}
}
