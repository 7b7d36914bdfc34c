package bridge

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"jsbridge/bridge/dashboard"
	"jsbridge/bridge/metrics"
	"jsbridge/manifest"
	"jsbridge/tenant"
)

// observer tells the dashboard's journal, the metrics and the log of calls. There
// is one only if somebody wants more than the journal.
type observer struct {
	*dashboard.Journal
	metrics *metrics.Metrics // nil: nobody counts
	log     *slog.Logger     // nil: calls are not logged
}

// observe gives the registry's observer.
func observe(j *dashboard.Journal, m *metrics.Metrics, log *slog.Logger) tenant.Observer {
	o := &observer{Journal: j, metrics: m}
	if log.Enabled(context.Background(), slog.LevelDebug) {
		o.log = log
	}
	if o.metrics == nil && o.log == nil {
		return j
	}
	return o
}

// trace is one call.
type trace struct {
	tenant.Trace // the journal's
	o            *observer
	method       tenant.Method
	begun        time.Time
	log          *slog.Logger // nil: it is not logged
}

// Call implements [tenant.Observer].
func (o *observer) Call(ctx context.Context, b tenant.Beginning) (tenant.Trace, bool) {
	inner, listens := o.Journal.Call(ctx, b)
	t := &trace{Trace: inner, o: o, method: b.Method, begun: time.Now()}
	if o.log != nil {
		t.log = o.log.With("connection", b.Page)
		if b.Session != "" { // else it is a human, in the dashboard
			t.log = t.log.With("session", b.Session)
		}
		t.log.Debug("call begun", "method", metrics.MethodName(b.Method), "name", manifest.Clean(b.Name, 256, false))
	}
	return t, listens
}

// Sent implements [tenant.Trace].
func (t *trace) Sent(id string) {
	t.Trace.Sent(id)
	if t.log != nil {
		t.log = t.log.With("call", id)
		t.log.Debug("call sent")
	}
}

// End implements [tenant.Trace].
func (t *trace) End(a tenant.Answer, err error) {
	t.Trace.End(a, err)
	took, o := time.Since(t.begun), outcomeOf(a, err)
	t.o.metrics.Call(t.method, o, took)
	if t.log != nil {
		t.log.Debug("call ended", "outcome", o.String(), "seconds", took.Seconds())
	}
}

var outcomes = map[tenant.CallErrorKind]metrics.Outcome{
	tenant.PageGone: metrics.PageGone, tenant.PageSuspended: metrics.PageSuspended, tenant.TimedOut: metrics.TimedOut, tenant.NotOffered: metrics.NotOffered,
	tenant.TooBusy: metrics.Refused, tenant.NotSent: metrics.NotSent, tenant.ServerStopping: metrics.Stopping, tenant.Cancelled: metrics.Cancelled,
}

func outcomeOf(a tenant.Answer, err error) metrics.Outcome {
	switch {
	case err != nil:
		return outcomeOfError(err)
	case a.Err != nil || dashboard.Failed(a.Result):
		return metrics.ToolError
	}
	return metrics.OK
}

func outcomeOfError(err error) metrics.Outcome {
	var ce *tenant.CallError
	if errors.As(err, &ce) {
		if o, ok := outcomes[ce.Kind]; ok {
			return o
		}
	} else if errors.Is(err, context.Canceled) {
		return metrics.Cancelled
	}
	return metrics.Failed
}
