package dashboard

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"jsbridge/manifest"
	"jsbridge/tenant"
)

// begin begins a call of a session.
func begin(j *Journal, session, args string) *entry {
	t, _ := j.Call(context.Background(), tenant.Beginning{Page: "p", Label: "P", Method: tenant.RunTool, Name: "p__x", Session: session, Args: json.RawMessage(args), Cancel: func() {}})
	return t.(*entry)
}

func result(text string) tenant.Answer { return tenant.Answer{Result: json.RawMessage(text)} }

func TestJournalOutcomes(t *testing.T) {
	long := strings.Repeat("x", 1000)
	for name, tt := range map[string]struct {
		answer    tenant.Answer
		err       error
		state     string
		why       string
		redacted  string
		hasResult bool
	}{
		"a result":           {answer: result(`{"a":1}`), state: "done", hasResult: true},
		"nothing":            {state: "done"},
		"thrown":             {answer: tenant.Answer{Err: &tenant.PageError{Message: "no\u202e\n" + long, Name: "TypeError"}}, state: "failed", why: "TypeError: no " + long, redacted: "the page's function failed"},
		"thrown, no message": {answer: tenant.Answer{Err: &tenant.PageError{}}, state: "failed", why: "the page's function threw an error without a message", redacted: "the page's function failed"},
		"a result that is an error": {answer: result(`{"content":[{"type":"image"},{"type":"text","text":"sold out"}],"isError":true}`), state: "failed", why: "sold out",
			redacted: "the page's function failed", hasResult: true},
		"a result that speaks of errors": {answer: result(`{"content":"x","isError":true}`), state: "done", hasResult: true},
		"an error":                       {err: errors.New("gone"), state: "failed", why: "gone", redacted: "gone"},
		"cancelled by the client":        {err: fmt.Errorf("x: %w", context.Canceled), state: "cancelled"},
		"cancelled here":                 {err: &tenant.CallError{Kind: tenant.Cancelled}, state: "cancelled"},
	} {
		for _, redact := range []bool{false, true} {
			j := NewJournal(redact)
			e := begin(j, "s1", `{"in":1}`)
			e.Progress(tenant.Progress{Progress: 1, Message: "secret"})
			if d, _ := j.find("c1"); d.State != "running" || d.MS != nil || redact == (d.Progress.Message == "secret") {
				t.Errorf("%s: while it runs: %+v", name, d)
			}
			if _, _, r := j.diff(map[string]uint64{}); r.count.Running != 1 || r.running["s1"] != 1 {
				t.Errorf("%s: while it runs: %+v", name, r)
			}
			e.End(tt.answer, tt.err)
			d, ok := j.find("c1")
			why := tt.why
			if redact {
				why = tt.redacted
			}
			why = manifest.Clean(why, maxError, false)
			if !ok || d.State != tt.state || d.Error != why || d.MS == nil || d.Progress != nil || (d.Result != nil) != (tt.hasResult && !redact) {
				t.Errorf("%s, redact %v: %+v", name, redact, d)
			}
			if redact == (d.Arguments != nil) || (d.Omitted == "redacted") != redact {
				t.Errorf("%s, redact %v: arguments %s, omitted %q", name, redact, d.Arguments, d.Omitted)
			}
			_, _, r := j.diff(map[string]uint64{})
			if r.count.Calls != 1 || r.count.Running != 0 || len(r.running) != 0 || (r.count.Failed == 1) != (tt.state != "done") {
				t.Errorf("%s: %+v", name, r)
			}
		}
	}
}

func TestJournalIsBounded(t *testing.T) {
	j := NewJournal(false)
	first := begin(j, "", `{}`) // it runs all the time
	second := begin(j, "", `{}`)
	second.End(result("1"), nil)
	for range maxCalls {
		begin(j, "", `{}`).End(result("1"), nil)
	}
	if _, ok := j.find("c1"); !ok {
		t.Error("a running call has left")
	}
	if _, ok := j.find("c2"); ok || len(j.all()) != maxCalls || j.count.Dropped != 2 || len(j.byID) != maxCalls {
		t.Errorf("%d calls, %d dropped", len(j.all()), j.count.Dropped)
	}
	first.End(result("1"), nil)

	// Also when all of them run.
	var all []*entry
	for range maxCalls + 10 {
		all = append(all, begin(j, "s", `{}`))
	}
	if len(j.all()) != maxCalls || j.running["s"] != maxCalls+10 {
		t.Errorf("%d calls, %d run", len(j.all()), j.running["s"])
	}
	for _, e := range all {
		e.End(result("1"), nil)
	}
	held := 0
	for _, d := range j.all() {
		held += len(d.Arguments) + len(d.Result)
	}
	if j.held != held || j.count.Running != 0 || len(j.running) != 0 {
		t.Errorf("held %d, counted %d, %d run", held, j.held, j.count.Running)
	}
}

func TestJournalBoundsBytes(t *testing.T) {
	j := NewJournal(false)
	text := func(n int) string { return `"` + strings.Repeat("x", n-2) + `"` }
	e := begin(j, "", text(maxKept+1))
	e.End(result(text(maxKept)), nil)
	if d, _ := j.find("c1"); d.Arguments != nil || len(d.Result) != maxKept || d.Omitted != "size" || d.ArgBytes != maxKept+1 || *d.ResultBytes != maxKept {
		t.Errorf("%d, %d, %q", len(d.Arguments), len(d.Result), d.Omitted)
	}
	begin(j, "", text(maxKept)).End(result(text(maxKept+1)), nil)
	if d, _ := j.find("c2"); d.Result != nil || len(d.Arguments) != maxKept || d.Omitted != "size" {
		t.Errorf("%d, %d, %q", len(d.Arguments), len(d.Result), d.Omitted)
	}
	for range maxHeld/maxKept + 20 {
		begin(j, "", text(maxKept)).End(result(text(100)), nil)
	}
	if j.held > maxHeld {
		t.Errorf("%d bytes are held", j.held)
	}
	if d, ok := j.find("c2"); !ok || d.Arguments != nil || d.Omitted != "size" {
		t.Errorf("an old call keeps its arguments: %q", d.Omitted)
	}
	if d, _ := j.find(fmt.Sprintf("c%d", j.serial)); len(d.Arguments) != maxKept {
		t.Error("the last call has not its arguments")
	}
}

// What the journal keeps is not its caller's memory.
func TestJournalCopiesArguments(t *testing.T) {
	j := NewJournal(false)
	raw := []byte(`{"a":1}`)
	_, _ = j.Call(t.Context(), tenant.Beginning{Args: raw})
	copy(raw, bytes.Repeat([]byte("x"), len(raw)))
	if d, _ := j.find("c1"); string(d.Arguments) != `{"a":1}` {
		t.Errorf("it keeps %s", d.Arguments)
	}
}

func TestJournalDiff(t *testing.T) {
	j := NewJournal(false)
	known := map[string]uint64{}
	a := begin(j, "", `{}`)
	b := begin(j, "", `{}`)
	ids := func(calls []Call) (s string) {
		for _, c := range calls {
			s += c.ID + c.State + " "
		}
		return s
	}
	if set, gone, _ := j.diff(known); ids(set) != "c1running c2running " || gone != nil {
		t.Errorf("%v, %v", ids(set), gone)
	}
	b.Progress(tenant.Progress{})
	a.End(result("1"), nil)
	if set, gone, _ := j.diff(known); ids(set) != "c1done c2running " || gone != nil {
		t.Errorf("%v, %v", ids(set), gone)
	}
	if set, gone, _ := j.diff(known); set != nil || gone != nil {
		t.Errorf("nothing has changed, but %v, %v", ids(set), gone)
	}
	for range maxCalls - 1 {
		begin(j, "", `{}`)
	}
	if set, gone, _ := j.diff(known); len(set) != maxCalls-1 || fmt.Sprint(gone) != "[c1]" || len(known) != maxCalls {
		t.Errorf("%d new, gone %v, %d known", len(set), gone, len(known))
	}
}

func TestJournalCancel(t *testing.T) {
	j := NewJournal(false)
	n := 0
	trace, _ := j.Call(t.Context(), tenant.Beginning{Cancel: func() { n++ }})
	if known, ran := j.cancel("c1"); !known || !ran || n != 1 {
		t.Errorf("%v, %v, cancelled %d times", known, ran, n)
	}
	trace.End(tenant.Answer{}, context.Canceled)
	if known, ran := j.cancel("c1"); !known || ran || n != 1 {
		t.Errorf("%v, %v, cancelled %d times", known, ran, n)
	}
	if known, _ := j.cancel("c2"); known {
		t.Error("cancelled a call that is none")
	}
}

func TestNotices(t *testing.T) {
	j := NewJournal(false)
	change := tenant.ToolChange{Page: "p", Label: "P", Entry: tenant.Entry{Name: "p__x", Tool: &manifest.Tool{Name: "x", Origin: &manifest.Origin{Kind: "code", Code: "1"}}}, Agent: tenant.Agent{Name: "a"}}
	j.Tool(context.WithValue(t.Context(), ticketKey{}, new(ticket)), change) // the human's own doing
	for range maxNotices + 5 {
		j.Tool(t.Context(), change)
	}
	_, _, r := j.diff(map[string]uint64{})
	if len(r.notices) != maxNotices || r.notices[0].ID != "n6" || r.notices[0].Kind != "registered" || r.notices[0].Origin.Code != "1" {
		t.Errorf("%d notices, the first is %+v", len(r.notices), r.notices[0])
	}
	if _, _, r := j.diff(map[string]uint64{}); len(r.notices) != 0 {
		t.Error("they are given twice")
	}
}
