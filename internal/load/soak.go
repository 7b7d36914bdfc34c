package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
	"time"
)

// A soak's memory is sampled so often, in all.
const soakSamples = 60

// What comes before is not fitted: the first calls fill the caches and logs that have
// a bound.
const warmUp = 0.25

// Growth within the fitted time that is called growth: less is noise of the machine.
const (
	heapGrowth = 0.02
	rssGrowth  = 0.05
)

// sample is the memory at one moment.
type sample struct {
	at time.Duration
	memory
}

// errGrowing is a soak's bad end.
var errGrowing = errors.New("memory grows")

// runSoak makes calls at a steady pace while 1% of the pages come and go, and says
// whether memory grows.
func runSoak(ctx context.Context, o options, w, progress io.Writer) error {
	st, err := newStage(ctx, o.binary, o.soakPages, o.sessions, progress)
	if err != nil {
		return err
	}
	defer st.close()
	if err := st.admit(o.sessions); err != nil {
		return err
	}
	if _, err := st.grow(o.soakPages); err != nil {
		return err
	}
	if err := st.list(); err != nil {
		return err
	}
	churning := max(1, o.soakPages/100)
	if _, err := st.pages.ask(order{Do: doChurn, Count: churning}); err != nil {
		return err
	}
	fmt.Fprintf(w, "jsbridge under %d calls/s for %s, %d sessions, %d pages, %d of which leave and come back each second\n%s, %s\n\n",
		o.soakRate, o.soak, o.sessions, o.soakPages, churning, time.Now().Format(time.DateOnly), machine())
	c := newCallers(st, o.callers, churning)
	c.tolerant = true
	samples, calls, err := st.soak(c, o, w)
	if err != nil {
		return fmt.Errorf("%w\n%s", err, st.server.Log)
	}
	a, err := st.pages.ask(order{Do: doCalm})
	if err != nil {
		return err
	}
	if err := st.list(); err != nil {
		return err
	}
	fmt.Fprintf(w, "\n%.0f calls/s, p50 %s, p99 %s, %d failed; pages have left and come back %d times\n", calls.rate, ms(calls.p50), ms(calls.p99), c.failed, a.Rounds)
	err = verdicts(w, samples)
	if c.failed > 0 {
		err = errors.Join(err, fmt.Errorf("%d calls failed, the first: %w", c.failed, c.failure))
	}
	return err
}

// soak calls and samples.
func (st *stage) soak(c *callers, o options, w io.Writer) (samples []sample, rate callRate, err error) {
	if _, err := c.warm(); err != nil {
		return nil, rate, err
	}
	c.pace = time.Second * time.Duration(o.callers) / time.Duration(o.soakRate)
	var calling sync.WaitGroup
	var failed error
	calling.Go(func() { rate, failed = c.measure(o.soak * 5 / 6) }) // it takes a fifth more
	begun := time.Now()
	for i := range soakSamples {
		if err = pause(st.sessions.ctx, time.Until(begun.Add(o.soak*time.Duration(i+1)/soakSamples-settleTime))); err != nil {
			break
		}
		var m memory
		if m, err = readMemory(st.sessions.ctx, st.base, st.server.Pid); err != nil {
			break
		}
		s := sample{time.Since(begun), m}
		samples = append(samples, s)
		fmt.Fprintf(w, "%8s  heap %7.2f MB  stacks %6.2f MB  RSS %7.2f MB\n", s.at.Round(time.Second), megabytes(m.heap), megabytes(m.stacks), megabytes(m.resident))
	}
	calling.Wait()
	return samples, rate, errors.Join(err, failed)
}

func megabytes(n int64) float64 { return float64(n) / (1 << 20) }

// verdicts prints what the fitted lines say.
func verdicts(w io.Writer, samples []sample) error {
	fitted := samples[int(float64(len(samples))*warmUp):]
	var grows bool
	for _, v := range []struct {
		what    string
		allowed float64
		of      func(sample) int64
	}{
		{"heap + stacks", heapGrowth, func(s sample) int64 { return s.live() }},
		{"RSS", rssGrowth, func(s sample) int64 { return s.resident }},
	} {
		var x, y []float64
		for _, s := range fitted {
			x, y = append(x, s.at.Hours()), append(y, megabytes(v.of(s)))
		}
		l := fit(x, y)
		word := "flat"
		if l.grows(x[len(x)-1]-x[0], v.allowed) {
			word, grows = "growing", true
		}
		fmt.Fprintf(w, "%s: %s: %+.2f ± %.2f MB an hour at %.1f MB, fitted from %s on\n", v.what, word, l.slope, 2*l.deviation, l.mean, fitted[0].at.Round(time.Second))
	}
	if grows {
		return errGrowing
	}
	return nil
}

// line is a straight line through samples.
type line struct {
	slope     float64
	deviation float64 // standard deviation of the slope
	mean      float64 // of the values
}

// grows tells whether the slope is more than noise, and makes more of the mean, over
// the time fitted, than is allowed.
func (l line) grows(span, allowed float64) bool {
	return l.slope > 2*l.deviation && l.slope*span > allowed*l.mean
}

// fit fits by least squares. It takes three samples at least.
func fit(x, y []float64) line {
	n := float64(len(x))
	var sx, sy float64
	for i := range x {
		sx += x[i]
		sy += y[i]
	}
	mx, my := sx/n, sy/n
	var sxx, sxy float64
	for i := range x {
		sxx += (x[i] - mx) * (x[i] - mx)
		sxy += (x[i] - mx) * (y[i] - my)
	}
	l := line{slope: sxy / sxx, mean: my}
	var rest float64
	for i := range x {
		d := y[i] - my - l.slope*(x[i]-mx)
		rest += d * d
	}
	l.deviation = math.Sqrt(rest / (n - 2) / sxx)
	return l
}
