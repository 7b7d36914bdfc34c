// Package metrics counts what an operator wants to know of a running server, and
// shows it in Prometheus' text format. docs/observability.md lists every metric.
//
//	calls, refusals ──counted as they end──▶ Metrics ──▶ /metrics
//	Sources (registry, agents, pages) ──asked at each scrape──┘
//
// No label has a value that a page or a client gave, and every series is there
// from the start, at 0: they are as many as the code says, and a rate sees the
// first event.
package metrics

import (
	"log/slog"
	"net/http"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"jsbridge/tenant"
)

// Outcome is how a call ended.
type Outcome int

const (
	// OK: the page gave a result.
	OK Outcome = iota
	// ToolError: its function threw, or gave a result that says it is an error.
	ToolError
	// TimedOut: the limit passed.
	TimedOut
	// Cancelled by the client, or in the dashboard.
	Cancelled
	// PageGone: the page closed, reloaded or lost its connection.
	PageGone
	// PageSuspended: its JavaScript does not run.
	PageSuspended
	// NotOffered: it does not have any more what was called.
	NotOffered
	// Refused: too many calls to the page were running.
	Refused
	// NotSent: its queue would not take the call.
	NotSent
	// Stopping: the server took no more calls.
	Stopping
	// Failed in another way.
	Failed
	outcomes
)

var outcomeNames = [outcomes]string{"ok", "tool_error", "timed_out", "cancelled", "page_gone", "page_suspended", "not_offered", "refused", "not_sent", "stopping", "failed"}

// String is the outcome's label.
func (o Outcome) String() string { return outcomeNames[o] }

// methods are what a page is called for, by their labels.
var methods = map[tenant.Method]string{tenant.RunTool: "tool", tenant.GetPrompt: "prompt", tenant.ReadResource: "resource", tenant.Complete: "completion"}

// MethodName is the label of a method.
func MethodName(m tenant.Method) string { return methods[m] }

// buckets of a call's duration, in seconds: from a page on the same machine to
// the default limit of a call.
var buckets = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}

// method has the series of calls of one method, found once.
type method struct {
	ended [outcomes]prometheus.Counter
	took  prometheus.Observer
}

// Metrics are those of one server. Use [New]. The methods of a nil Metrics do
// nothing.
type Metrics struct {
	registry *prometheus.Registry
	methods  map[tenant.Method]*method
	refused  map[string]prometheus.Counter
}

// GuardReasons are why the guard in front of the routes refuses a request.
var GuardReasons = []string{"host", "origin", "browser", "token", "page_token", "content_type", "remote"}

// New returns metrics in a registry of their own: what else is linked into this
// process can't add to them.
func New(version string, from Sources) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), methods: make(map[tenant.Method]*method), refused: make(map[string]prometheus.Counter)}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "jsbridge_build_info", Help: "1, labelled with the version of jsbridge and of Go.",
		ConstLabels: prometheus.Labels{"version": version, "goversion": runtime.Version()},
	})
	build.Set(1)
	calls := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "jsbridge_calls_total", Help: "Calls to pages that have ended, by what was called and how it ended.",
	}, []string{"method", "outcome"})
	took := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "jsbridge_call_duration_seconds", Help: "How long calls to pages took, however they ended, by what was called.", Buckets: buckets,
	}, []string{"method"})
	refused := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "jsbridge_guard_refused_total", Help: "HTTP requests refused before they reached what they asked for, by the check that refused them.",
	}, []string{"reason"})
	for of, name := range methods {
		one := &method{took: took.WithLabelValues(name)}
		for o := range outcomes {
			one.ended[o] = calls.WithLabelValues(name, o.String())
		}
		m.methods[of] = one
	}
	for _, reason := range GuardReasons {
		m.refused[reason] = refused.WithLabelValues(reason)
	}
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		build, calls, took, refused, collector{from})
	return m
}

// Call counts a call that has ended.
func (m *Metrics) Call(of tenant.Method, o Outcome, took time.Duration) {
	if m == nil {
		return
	}
	if one := m.methods[of]; one != nil {
		one.ended[o].Inc()
		one.took.Observe(took.Seconds())
	}
}

// Refused counts a request that the guard refused, for one of [GuardReasons].
func (m *Metrics) Refused(reason string) {
	if m == nil {
		return
	}
	if c := m.refused[reason]; c != nil {
		c.Inc()
	}
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
