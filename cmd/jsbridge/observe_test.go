package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

func TestServeIsObservedByFlagsAndVariables(t *testing.T) {
	for name, row := range map[string]struct {
		args             []string
		env              []string
		metrics, profile string // how the answers begin
	}{
		"neither":                            {nil, nil, "404", "404"},
		"flags":                              {[]string{"--metrics", "--debug"}, nil, "200", "200"},
		"variables":                          {nil, []string{"JSBRIDGE_METRICS", "true", "JSBRIDGE_DEBUG", "true"}, "200", "200"},
		"one":                                {[]string{"--metrics"}, nil, "200", "404"},
		"a flag that overrules its variable": {[]string{"--metrics=false"}, []string{"JSBRIDGE_METRICS", "true"}, "404", "404"},
	} {
		t.Run(name, func(t *testing.T) {
			env := append(row.env, "JSBRIDGE_STATE", filepath.Join(t.TempDir(), "state.json"))
			url, stop := started(t, environ(env...), append([]string{"--port", "0"}, row.args...)...)
			base := strings.TrimSuffix(url, "/mcp")
			for path, want := range map[string]string{"/metrics": row.metrics, "/debug/pprof/goroutine?debug=1": row.profile, "/healthz": "200", "/readyz": `200 {"ready":true`} {
				if got := get(t, base+path); !strings.HasPrefix(got, want) {
					t.Errorf("%s: %.200s; want %s", path, got, want)
				}
			}
			if got := get(t, base+"/metrics"); row.metrics == "200" && !strings.Contains(got, "\njsbridge_build_info{") {
				t.Errorf("no build: %s", got)
			}
			if code := stop(); code != 0 {
				t.Errorf("exit code %d", code)
			}
		})
	}
}

func TestLogFormats(t *testing.T) {
	for format, isJSON := range map[string]bool{"text": false, "json": true} {
		var out bytes.Buffer // read after the server's end
		url, stop := startedWith(t, &out, environ("JSBRIDGE_LOG_FORMAT", format), "--port", "0", "--state", "")
		if got := get(t, strings.TrimSuffix(url, "/mcp")+"/readyz"); !strings.HasPrefix(got, "200") {
			t.Errorf("%s: %s", url, got)
		}
		if code := stop(); code != 0 {
			t.Errorf("exit code %d", code)
		}
		if !strings.Contains(out.String(), "no state file") {
			t.Errorf("%s: nothing was logged: %q", format, out.String())
		}
		for line := range strings.Lines(out.String()) {
			if json.Valid([]byte(line)) != isJSON {
				t.Errorf("%s: %s", format, line)
			}
		}
	}
}
