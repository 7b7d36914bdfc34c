package manifest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// BenchmarkCheckArguments is the check of a call's arguments.
func BenchmarkCheckArguments(b *testing.B) {
	m, err := Parse([]byte(`{"tools":[{"name":"echo","params":{"text":{"type":"string"},"n":{"type":"number","optional":true}}}]}`), Limits{})
	if err != nil || len(m.Tools) != 1 {
		b.Fatalf("%+v, error %v", m, err)
	}
	for _, size := range []struct {
		name  string
		bytes int
	}{{"short", 16}, {"100kB", 100_000}} {
		b.Run(size.name, func(b *testing.B) {
			args := json.RawMessage(fmt.Sprintf(`{"text":"%s","n":1}`, strings.Repeat("x", size.bytes)))
			b.ReportAllocs()
			for b.Loop() {
				if checked, err := m.Tools[0].CheckArguments(args); err != nil || len(checked) != len(args) {
					b.Fatalf("%.100s, error %v", checked, err)
				}
			}
		})
	}
}
