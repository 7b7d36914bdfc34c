package metrics

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"jsbridge/bridge/agent"
	"jsbridge/bridge/page"
	"jsbridge/tenant"
)

func served(t *testing.T) *httptest.ResponseRecorder {
	t.Helper()
	r := tenant.NewRegistry(tenant.Options{})
	t.Cleanup(r.Close)
	agents := agent.New(r, agent.Options{})
	t.Cleanup(agents.Close)
	pages := page.New(r, page.Options{})
	m := New("v1.2.3", Sources{Census: r.Census, Agents: agents.Stats, Pages: pages.Stats, DashboardStreams: func() int { return 0 }})
	m.Call(tenant.RunTool, OK, time.Millisecond)
	m.Refused("host")
	w := httptest.NewRecorder()
	m.Handler(slog.Default()).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return w
}

// Prometheus' own linter knows the conventions: names, units, help texts.
func TestConventions(t *testing.T) {
	problems, err := promlint.New(served(t).Body).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// Off, counting does nothing; on, it allocates nothing.
func TestCountingIsFree(t *testing.T) {
	var off *Metrics
	off.Call(tenant.RunTool, OK, time.Second)
	off.Refused("host")
	on := New("", Sources{})
	if n := testing.AllocsPerRun(100, func() { on.Call(tenant.RunTool, ToolError, time.Second); on.Refused("host") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// What there is no label for is not counted, and ends nothing.
func TestUnknownLabels(t *testing.T) {
	m := New("", Sources{})
	m.Call("nonsense", OK, time.Second)
	m.Refused("nonsense")
}
