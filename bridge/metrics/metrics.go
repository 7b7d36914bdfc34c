// Package metrics counts what an operator wants to know of a running server, and
// shows it in Prometheus' text format. docs/observability.md lists every metric.
package metrics

import (
	"log/slog"
	"net/http"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics are those of one server. Use [New].
type Metrics struct {
	registry *prometheus.Registry
}

// New returns metrics in a registry of their own: what else is linked into this
// process can't add to them.
func New(version string) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "jsbridge_build_info", Help: "1, labelled with the version of jsbridge and of Go.",
		ConstLabels: prometheus.Labels{"version": version, "goversion": runtime.Version()},
	})
	build.Set(1)
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), build)
	return m
}

// Handler serves the metrics. Who may read them is for the guard in front.
func (m *Metrics) Handler(log *slog.Logger) http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelError),
		// What is known is better than nothing.
		ErrorHandling:       promhttp.ContinueOnError,
		MaxRequestsInFlight: 4,
		DisableCompression:  true, // it would pin buffers for a few kilobytes on loopback
	})
}
