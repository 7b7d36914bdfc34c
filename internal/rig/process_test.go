package rig

import "testing"

func TestAddressFinder(t *testing.T) {
	f := NewAddressFinder()
	for _, part := range []string{"MCP at http://local", "host:12", "34/mcp\n", "http://localhost:9/ again"} {
		if n, err := f.Write([]byte(part)); n != len(part) || err != nil {
			t.Fatalf("wrote %d, error %v", n, err)
		}
	}
	if got := <-f.Found; got != "http://localhost:1234" {
		t.Errorf("got %s", got)
	}
}
