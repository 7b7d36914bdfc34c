package page

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"jsbridge/tenant"
)

// benchSizes are the bytes of a call's text, there and back.
var benchSizes = []struct {
	name  string
	bytes int
}{{"short", 16}, {"100kB", 100_000}}

// BenchmarkEncodeCall is what goes out to a page for a call.
func BenchmarkEncodeCall(b *testing.B) {
	for _, size := range benchSizes {
		b.Run(size.name, func(b *testing.B) {
			call := tenant.CallFrame{ID: "1-1", Method: tenant.RunTool, Tool: "echo", Args: json.RawMessage(`{"text":"` + strings.Repeat("x", size.bytes) + `"}`),
				Timeout: time.Minute, Agent: tenant.Agent{Name: "bench", Version: "1", Capabilities: json.RawMessage(`{}`)}}
			b.ReportAllocs()
			for b.Loop() {
				if len(encodeCall(call, true)) < len(call.Args) {
					b.Fatal("the arguments are missing")
				}
			}
		})
	}
}

// BenchmarkDecodeAnswer is what is done with a page's answer.
func BenchmarkDecodeAnswer(b *testing.B) {
	for _, size := range benchSizes {
		b.Run(size.name, func(b *testing.B) {
			data := fmt.Appendf(nil, `{"type":"call_result","id":"1-1","result":"%s"}`, strings.Repeat("x", size.bytes))
			b.ReportAllocs()
			for b.Loop() {
				f, err := decodeFrame(data)
				if err != nil {
					b.Fatal(err)
				}
				if id, a, err := f.answer(); err != nil || id != "1-1" || len(a.Result) != size.bytes+2 {
					b.Fatalf("%s, %d bytes, error %v", id, len(a.Result), err)
				}
			}
		})
	}
}
