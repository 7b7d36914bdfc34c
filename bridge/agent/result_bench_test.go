package agent

import (
	"encoding/json"
	"strings"
	"testing"

	"jsbridge/manifest"
	"jsbridge/tenant"
)

// BenchmarkResult is the conversion of a page's answer to an MCP result.
func BenchmarkResult(b *testing.B) {
	h := &Handler{opts: Options{MaxResult: DefaultMaxResult}}
	for _, of := range []struct{ name, wire string }{
		{"text", `"hello"`},
		{"object", `{"a":1,"b":[true,null,"x"]}`},
		{"content", `{"content":[{"type":"text","text":"hello"}]}`},
		{"text of 100kB", `"` + strings.Repeat("x", 100_000) + `"`},
	} {
		b.Run(strings.ReplaceAll(of.name, " ", "-"), func(b *testing.B) {
			tool := &manifest.Tool{Name: "echo"}
			b.ReportAllocs()
			for b.Loop() {
				if res, offence := h.result(tool, tenant.Answer{Result: json.RawMessage(of.wire)}); offence != nil || res.IsError || len(res.Content) != 1 {
					b.Fatalf("%+v, %v", res, offence)
				}
			}
		})
	}
}
