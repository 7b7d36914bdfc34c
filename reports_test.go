package jsbridge_test

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// docs/public-reports.md says which test shows what. Each row has one at least, and
// all of them exist.
func TestReportsNameTestsThatExist(t *testing.T) {
	raw, err := os.ReadFile("docs/public-reports.md")
	if err != nil {
		t.Fatal(err)
	}
	const scenarios = 71
	named := regexp.MustCompile("`([^`]+)`")
	last, rows := "", 0
	for line := range strings.Lines(string(raw)) {
		if !strings.HasPrefix(line, "| JB-") {
			continue
		}
		rows++
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		id := strings.TrimSpace(cells[0])
		if len(cells) != 4 || id <= last {
			t.Errorf("%s: %d cells, after %s", id, len(cells), last)
			continue
		}
		last = id
		tests := named.FindAllStringSubmatch(cells[3], -1)
		if len(tests) == 0 || strings.TrimSpace(named.ReplaceAllString(cells[3], "")) != "" {
			t.Errorf("%s: the last cell must be tests, each in backquotes: %s", id, cells[3])
		}
		for _, m := range tests {
			if why := missing(t, m[1]); why != "" {
				t.Errorf("%s: %s %s", id, m[1], why)
			}
		}
	}
	if rows != scenarios {
		t.Errorf("%d rows, want %d", rows, scenarios)
	}
	for _, made := range []string{"bridge.TestNothing", "nowhere.TestBodies", "bridge.Body", "bridge", "web/test/socket.test.ts: nothing", "web/test/nothing.test.ts: x", "web/test/convert.test.ts: result: nothing"} {
		if missing(t, made) == "" {
			t.Errorf("%s is taken for a test", made)
		}
	}
}

var goTest = regexp.MustCompile(`^([a-z0-9/]+)\.((?:Test|Fuzz)\w+)$`)

// missing tells why a name names no test; "" if it does.
func missing(t *testing.T, name string) string {
	t.Helper()
	if file, title, ok := strings.Cut(name, ".test.ts: "); ok {
		return missingTitle(t, file+".test.ts", title)
	}
	m := goTest.FindStringSubmatch(name)
	if m == nil {
		return "is neither package.TestName nor file.test.ts: title"
	}
	files, err := filepath.Glob(path.Join(m[1], "*_test.go"))
	if err != nil || len(files) == 0 {
		return "is in a package without tests"
	}
	for _, file := range files {
		if strings.Contains(read(t, file), "\nfunc "+m[2]+"(") {
			return ""
		}
	}
	return "does not exist"
}

// missingTitle takes a title as it is written, or as `what: ${row}` of a table makes it.
func missingTitle(t *testing.T, file, title string) string {
	t.Helper()
	if _, err := os.Stat(file); err != nil {
		return "is in a file that does not exist"
	}
	source := read(t, file)
	if strings.Contains(source, `test("`+title+`"`) {
		return ""
	}
	what, row, ok := strings.Cut(title, ": ")
	if ok && strings.Contains(source, "test(`"+what+": ${") && strings.Contains(source, `["`+row+`",`) {
		return ""
	}
	return "does not exist"
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
