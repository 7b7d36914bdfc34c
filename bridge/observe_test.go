package bridge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"testing"

	"jsbridge/bridge/agent"
	"jsbridge/bridge/dashboard"
	"jsbridge/bridge/metrics"
	"jsbridge/bridge/page"
	"jsbridge/tenant"
)

func TestOutcomes(t *testing.T) {
	call := func(k tenant.CallErrorKind) error { return fmt.Errorf("wrapped: %w", &tenant.CallError{Kind: k}) }
	for want, rows := range map[metrics.Outcome][]struct {
		a   tenant.Answer
		err error
	}{
		metrics.OK:            {{}, {a: tenant.Answer{Result: []byte(`"isError"`)}}, {a: tenant.Answer{Result: []byte(`{"isError":true}`)}}},
		metrics.ToolError:     {{a: tenant.Answer{Err: &tenant.PageError{}}}, {a: tenant.Answer{Result: []byte(`{"isError":true,"content":[]}`)}}},
		metrics.PageGone:      {{err: call(tenant.PageGone)}},
		metrics.PageSuspended: {{err: call(tenant.PageSuspended)}},
		metrics.TimedOut:      {{err: call(tenant.TimedOut)}},
		metrics.NotOffered:    {{err: call(tenant.NotOffered)}},
		metrics.Refused:       {{err: call(tenant.TooBusy)}},
		metrics.NotSent:       {{err: call(tenant.NotSent)}},
		metrics.Stopping:      {{err: call(tenant.ServerStopping)}},
		metrics.Cancelled:     {{err: call(tenant.Cancelled)}, {err: context.Canceled}},
		metrics.Failed:        {{err: errors.New("another")}, {err: call(0)}, {err: context.DeadlineExceeded}},
	} {
		for _, row := range rows {
			if got := outcomeOf(row.a, row.err); got != want {
				t.Errorf("%s, %v: %v, want %v", row.a.Result, row.err, got, want)
			}
		}
	}
}

// Nobody but the journal hears of calls when nobody else wants to.
func TestNoObserverForNobody(t *testing.T) {
	j := dashboard.NewJournal(false)
	if o := observe(j, nil, quietLog); o != tenant.Observer(j) {
		t.Errorf("the observer is a %T", o)
	}
}

var quietLog = slog.New(slog.NewTextHandler(io.Discard, nil))

func BenchmarkObserver(b *testing.B) {
	m := metrics.New("", metrics.Sources{Census: func() (c tenant.Census) { return c }, Agents: func() (s agent.Stats) { return s }, Pages: func() (s page.Stats) { return s }, DashboardStreams: func() int { return 0 }})
	j := dashboard.NewJournal(false)
	for name, o := range map[string]tenant.Observer{"off": observe(j, nil, quietLog), "metrics": observe(j, m, quietLog),
		"debug": observe(j, m, slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelDebug})))} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			beginning := tenant.Beginning{Page: "p", Method: tenant.RunTool, Name: "n", Session: "s1", Args: []byte(`{}`)}
			for b.Loop() {
				t, _ := o.Call(b.Context(), beginning)
				t.Sent("1-1")
				t.End(tenant.Answer{Result: []byte(`"done"`)}, nil)
			}
		})
	}
}
