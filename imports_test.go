// Package jsbridge_test asserts the architecture: which folder may import
// which.
package jsbridge_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// allowed lists what each package of this module may import of this module.
var allowed = map[string][]string{
	"jsbridge/cmd/jsbridge":     {"jsbridge/bridge", "jsbridge/bridge/agent", "jsbridge/bridge/page", "jsbridge/bridge/state", "jsbridge/tenant", "jsbridge/manifest", "jsbridge/web", "jsbridge/legacy-page"},
	"jsbridge/bridge":           {"jsbridge/bridge/agent", "jsbridge/bridge/dashboard", "jsbridge/bridge/metrics", "jsbridge/bridge/page", "jsbridge/bridge/state", "jsbridge/tenant", "jsbridge/manifest"},
	"jsbridge/bridge/agent":     {"jsbridge/tenant", "jsbridge/manifest"},
	"jsbridge/bridge/page":      {"jsbridge/tenant", "jsbridge/manifest"},
	"jsbridge/bridge/dashboard": {"jsbridge/bridge/state", "jsbridge/tenant", "jsbridge/manifest"},
	"jsbridge/bridge/metrics":   {"jsbridge/bridge/agent", "jsbridge/bridge/page", "jsbridge/tenant"},
	"jsbridge/bridge/state":     {"jsbridge/manifest"},
	"jsbridge/tenant":           {"jsbridge/manifest"},
	"jsbridge/manifest":         {},
	"jsbridge/web":              {},
	"jsbridge/web/bundle":       {},
	"jsbridge/legacy-page":      {},
}

// only lists the foreign modules that belong to one package.
var only = map[string]string{
	"github.com/modelcontextprotocol/go-sdk": "jsbridge/bridge/agent",
	"github.com/coder/websocket":             "jsbridge/bridge/page",
	"github.com/evanw/esbuild":               "jsbridge/web/bundle",
	"github.com/spf13/cobra":                 "jsbridge/cmd/jsbridge",
	"github.com/google/jsonschema-go":        "jsbridge/manifest",
	"github.com/yosida95/uritemplate":        "jsbridge/manifest",
	"github.com/gofrs/flock":                 "jsbridge/bridge/state",
	"github.com/adrg/strutil":                "jsbridge/bridge/agent",
	"github.com/prometheus/client_golang":    "jsbridge/bridge/metrics",
}

type goPackage struct {
	ImportPath string
	Imports    []string
}

func TestImportGraph(t *testing.T) {
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; seen++ {
		var p goPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		// Test helpers and tools stand outside: nothing imports them.
		if strings.HasPrefix(p.ImportPath, "jsbridge/internal/") || p.ImportPath == "jsbridge" {
			continue
		}
		may, ok := allowed[p.ImportPath]
		if !ok {
			t.Errorf("%s is not in the import graph: add it here and to ARCHITECTURE.md", p.ImportPath)
		}
		for _, i := range p.Imports {
			if strings.HasPrefix(i, "jsbridge/") && !slices.Contains(may, i) {
				t.Errorf("%s must not import %s", p.ImportPath, i)
			}
			for module, owner := range only {
				if (i == module || strings.HasPrefix(i, module+"/")) && p.ImportPath != owner {
					t.Errorf("%s must not import %s: only %s may", p.ImportPath, i, owner)
				}
			}
			if p.ImportPath == "jsbridge/tenant" && strings.Contains(i, ".") && i != "github.com/google/uuid" {
				t.Errorf("tenant must not import %s: standard library and uuid only", i)
			}
		}
	}
	if seen < len(allowed) {
		t.Errorf("saw %d packages, want at least %d", seen, len(allowed))
	}
}
