package tenant

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
)

var connectForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// A connect string is what a human typed or a page was given. Whatever it is, it
// names one place at most, in a form that leads there again, and a capability is
// never taken for a name.
func FuzzParseConnect(f *testing.F) {
	raw, err := os.ReadFile("testdata/connect.json")
	if err != nil {
		f.Fatal(err)
	}
	var cases []struct{ In string }
	if err := json.Unmarshal(raw, &cases); err != nil {
		f.Fatal(err)
	}
	for _, c := range cases {
		f.Add(c.In)
	}
	f.Fuzz(func(t *testing.T, s string) {
		c := ParseConnect(s)
		for _, part := range []string{c.Channel, c.Name} {
			if part != "" && !connectForm.MatchString(part) {
				t.Errorf("ParseConnect(%q) has the part %q", s, part)
			}
		}
		switch {
		case c.Session != "" && (c.Channel != "" || c.Name != "" || !uuidForm.MatchString(c.Session) || c.Session != strings.ToLower(c.Session)):
			t.Errorf("ParseConnect(%q) is %+v", s, c)
		case c.Channel == "" && uuidForm.MatchString(c.Name):
			t.Errorf("ParseConnect(%q) makes a name of a capability: %+v", s, c)
		case c.Channel != "" && !strings.Contains(s, ":"):
			t.Errorf("ParseConnect(%q) names the channel %q", s, c.Channel)
		}
		if again := ParseConnect(c.String()); again != c {
			t.Errorf("ParseConnect(%q) is %+v, its form %q is %+v", s, c, c, again)
		}
	})
}
