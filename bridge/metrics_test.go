package bridge

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// scrape gives the values of all series of jsbridge's own, and each metric's type.
func (b *board) scrape() (values map[string]float64, types map[string]string) {
	b.t.Helper()
	status, header, body := b.ask("GET", "/metrics", "", nil)
	if status != 200 || !strings.HasPrefix(header.Get("Content-Type"), "text/plain") {
		b.t.Fatalf("/metrics: %d %s %.200s", status, header.Get("Content-Type"), body)
	}
	values, types = make(map[string]float64), make(map[string]string)
	for lines := bufio.NewScanner(strings.NewReader(body)); lines.Scan(); {
		line := lines.Text()
		if name, kind, ok := strings.Cut(strings.TrimPrefix(line, "# TYPE "), " "); ok && strings.HasPrefix(line, "# TYPE ") {
			types[name] = kind
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		if !strings.HasPrefix(line, "jsbridge_") || at < 0 {
			continue
		}
		v, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			b.t.Errorf("%q: %v", line, err)
		}
		values[line[:at]] = v
	}
	return values, types
}

// grows waits until the counters that are named have grown by so much since
// before, and no other has.
func (b *board) grows(what string, before map[string]float64, want map[string]float64) map[string]float64 {
	b.t.Helper()
	ctx := within(b.t)
	for {
		after, types := b.scrape()
		got := make(map[string]float64)
		for series, v := range after {
			name, _, _ := strings.Cut(series, "{")
			if d := v - before[series]; d != 0 && types[name] == "counter" {
				got[series] = d
			}
		}
		if maps.Equal(got, want) {
			return after
		}
		if ctx.Err() != nil {
			b.t.Fatalf("%s: counted %v, want %v", what, got, want)
		}
	}
}

func TestMetricsCountCalls(t *testing.T) {
	b := newBoard(t, Options{Metrics: true})
	const tools = `[{"name":"ok","description":"d"},{"name":"fails","description":"d"},{"name":"throws","description":"d"},{"name":"waits","description":"d"},
		{"name":"late","description":"d","timeoutMs":20},{"name":"long","description":"d"},{"name":"n","description":"d","params":{"n":{"type":"number"}}}]`
	waiting := make(chan struct{}, 2)
	var p *tab
	p = b.open("one", near, tools, func(f map[string]any) any {
		switch f["name"] {
		case "fails":
			return map[string]any{"isError": true, "content": []any{map[string]any{"type": "text", "text": "no"}}}
		case "throws":
			p.say(fmt.Sprintf(`{"type":"call_result","id":%q,"error":{"message":"no"}}`, f["id"]))
			return nil
		case "waits":
			waiting <- struct{}{}
			return nil
		case "late":
			return nil
		case "long":
			return strings.Repeat("x", 1<<20)
		}
		return "done"
	})
	p.hears("registered")
	a := b.agent("/mcp")
	before, _ := b.scrape()
	call := func(name string, args map[string]any) {
		_, _ = a.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
	}
	calls := func(outcome string) string {
		return fmt.Sprintf(`jsbridge_calls_total{method="tool",outcome=%q}`, outcome)
	}
	for name, want := range map[string]string{
		"one__ok": calls("ok"), "one__long": calls("ok"), "one__fails": calls("tool_error"), "one__throws": calls("tool_error"), "one__late": calls("timed_out"),
		"one__none": `jsbridge_calls_refused_total{reason="unknown"}`,
	} {
		call(name, nil)
		before = b.grows(name, before, map[string]float64{want: 1})
	}
	call("one__n", map[string]any{"n": "many"})
	before = b.grows("wrong arguments", before, map[string]float64{`jsbridge_calls_refused_total{reason="arguments"}`: 1})

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = a.CallTool(ctx, &mcp.CallToolParams{Name: "one__waits"})
	}()
	receive(t, "the call", waiting)
	if now, _ := b.scrape(); now["jsbridge_calls_in_flight"] != 1 {
		t.Errorf("%v calls in flight", now["jsbridge_calls_in_flight"])
	}
	cancel()
	<-done
	before = b.grows("a cancelled call", before, map[string]float64{calls("cancelled"): 1})

	go func() { call("one__waits", nil) }()
	receive(t, "the call", waiting)
	p.say(`{"type":"leave_channel"}`)
	now := b.grows("a page that leaves", before, map[string]float64{calls("page_gone"): 1, `jsbridge_page_disconnects_total{code="1000"}`: 1, `jsbridge_list_changed_total{list="tools"}`: 1})
	if n := now[`jsbridge_call_duration_seconds_count{method="tool"}`]; n != 7 || now["jsbridge_calls_in_flight"] != 0 {
		t.Errorf("%v durations, %v calls in flight", n, now["jsbridge_calls_in_flight"])
	}
	if sum := now[`jsbridge_call_duration_seconds_sum{method="tool"}`]; sum < .020 { // the one that was late
		t.Errorf("%v seconds in all", sum)
	}
}

func TestMetricsShowWhatThereIs(t *testing.T) {
	b := newBoard(t, Options{Metrics: true})
	before, _ := b.scrape()
	gauges := func(what string, want map[string]float64) {
		t.Helper()
		ctx := within(t)
		for {
			now, types := b.scrape()
			got := make(map[string]float64)
			for series, v := range now {
				if name, _, _ := strings.Cut(series, "{"); types[name] == "gauge" && v != 0 && name != "jsbridge_build_info" {
					got[series] = v
				}
			}
			if maps.Equal(got, want) {
				return
			}
			if ctx.Err() != nil {
				t.Fatalf("%s: %v, want %v", what, got, want)
			}
		}
	}
	want := map[string]float64{`jsbridge_tenants{kind="roots"}`: 1}
	gauges("nothing", want)
	p := b.open("one", near, someTools, echo)
	p.hears("registered")
	want[`jsbridge_pages{state="ready"}`] = 1
	gauges("a page", want)
	b.open("ch:two", "https://far.example", someTools, echo)
	want[`jsbridge_pages{state="pending"}`], want[`jsbridge_tenants{kind="channel"}`] = 1, 1
	gauges("one that waits", want)
	a := b.agent("/mcp")
	want[`jsbridge_sessions{era="session"}`], want[`jsbridge_tenants{kind="session"}`], want[`jsbridge_streams{kind="standalone"}`] = 1, 1, 1
	gauges("a client", want)
	v := b.watch("")
	want[`jsbridge_streams{kind="dashboard"}`] = 1
	gauges("a dashboard", want)
	v.close()
	_ = a.Close()
	delete(want, `jsbridge_streams{kind="dashboard"}`)
	delete(want, `jsbridge_streams{kind="standalone"}`)
	delete(want, `jsbridge_sessions{era="session"}`)
	delete(want, `jsbridge_tenants{kind="session"}`)
	gauges("both gone", want)

	b.open("one", near, someTools, echo).hears("registered") // the same tab again
	b.grows("a reload", before, map[string]float64{"jsbridge_page_reconnects_total": 1, `jsbridge_page_disconnects_total{code="4409"}`: 1})
	gauges("a reload", want)
}

func TestMetricsCountRefusals(t *testing.T) {
	b := newBoard(t, Options{Metrics: true})
	before, _ := b.scrape()
	guard := func(reason string) string { return fmt.Sprintf(`jsbridge_guard_refused_total{reason=%q}`, reason) }
	requests := func(reason string) string {
		return fmt.Sprintf(`jsbridge_mcp_requests_refused_total{reason=%q}`, reason)
	}
	const origin, site = "Origin", "Sec-Fetch-Site"
	for what, row := range map[string]struct {
		method, path, body string
		header             map[string]string
		want               string
	}{
		"host":              {"GET", "/", "", map[string]string{"Host": "evil.example"}, guard("host")},
		"origin":            {"POST", "/mcp", "{}", map[string]string{origin: "https://evil.example"}, guard("origin")},
		"site":              {"POST", "/mcp", "{}", map[string]string{site: "cross-site"}, guard("browser")},
		"API":               {"GET", "/api/origins", "", map[string]string{origin: "https://evil.example"}, guard("browser")},
		"metrics":           {"GET", "/metrics", "", map[string]string{origin: b.base}, guard("browser")},
		"content type":      {"POST", "/api/origins", "{}", map[string]string{"Content-Type": "text/plain"}, guard("content_type")},
		"page token":        {"POST", "/api/origins", "{}", map[string]string{"Content-Type": "application/json"}, guard("page_token")},
		"unknown session":   {"POST", "/mcp", "{}", map[string]string{"Mcp-Session-Id": "gone"}, requests("session")},
		"no session":        {"GET", "/mcp", "", nil, requests("session_missing")},
		"unknown version":   {"POST", "/mcp", "{}", map[string]string{"Mcp-Protocol-Version": "1999-01-01"}, requests("version")},
		"unknown workspace": {"POST", "/mcp/a:b", "{}", nil, requests("workspace")},
		"no JSON":           {"POST", "/mcp", "{", map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}, requests("invalid")},
		"no socket":         {"GET", "/ws?tenant=x", "", nil, `jsbridge_page_connections_refused_total{reason="handshake"}`},
	} {
		b.ask(row.method, row.path, row.body, row.header)
		before = b.grows(what, before, map[string]float64{row.want: 1})
	}
	b.open("00000000-0000-4000-8000-000000000000", near, someTools, echo).hears("closed")
	before = b.grows("an unknown tenant", before, map[string]float64{`jsbridge_page_connections_refused_total{reason="unknown"}`: 1})
	p := b.open("one", near, someTools, echo)
	p.hears("registered")
	p.say(`{"type":"nonsense"}`)
	b.grows("nonsense", before, map[string]float64{"jsbridge_page_messages_refused_total": 1})
}

func TestMetricsCountWhatIsCutAndTold(t *testing.T) {
	opts := Options{Metrics: true}
	opts.Agent.MaxResult = 100
	b := newBoard(t, opts)
	a := b.agent("/mcp")
	before, _ := b.scrape()
	p := b.open("one", near, someTools, func(map[string]any) any { return strings.Repeat("x", 150) })
	p.hears("registered")
	before = b.grows("a page", before, map[string]float64{`jsbridge_list_changed_total{list="tools"}`: 1})
	if _, err := a.CallTool(t.Context(), &mcp.CallToolParams{Name: "one__add", Arguments: map[string]any{"n": 1}}); err != nil {
		t.Fatal(err)
	}
	b.grows("a long result", before, map[string]float64{`jsbridge_calls_total{method="tool",outcome="ok"}`: 1, "jsbridge_result_items_cut_total": 1, "jsbridge_result_cut_bytes_total": 50})
}

func TestMetricsCountQuestions(t *testing.T) {
	b := newBoard(t, Options{Metrics: true})
	answered := make(chan struct{}, 4)
	var p *tab
	p = b.open("one", near, someTools, func(f map[string]any) any {
		p.say(fmt.Sprintf(`{"type":"ask","id":"q","callId":%q,"kind":"elicit","params":{"message":"m","requestedSchema":{"type":"object","properties":{}}}}`, f["id"]))
		go func() {
			receive(t, "the answer", answered)
			p.say(fmt.Sprintf(`{"type":"call_result","id":%q,"result":"done"}`, f["id"]))
		}()
		return nil
	})
	p.hears("registered")
	go func() {
		for f := range p.said {
			if f["type"] == "answer" {
				answered <- struct{}{}
			}
			if f["type"] == "closed" {
				return
			}
		}
	}()
	asks := func(outcome string) map[string]float64 {
		return map[string]float64{`jsbridge_calls_total{method="tool",outcome="ok"}`: 1, fmt.Sprintf(`jsbridge_questions_total{kind="elicit",outcome=%q}`, outcome): 1}
	}
	for outcome, answer := range map[string]func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error){
		"refused": nil,
		"answered": func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "decline"}, nil
		},
		"failed": func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) { return nil, fmt.Errorf("no") },
	} {
		client := mcp.NewClient(&mcp.Implementation{Name: "tester", Version: "1"}, &mcp.ClientOptions{ElicitationHandler: answer})
		a, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: b.base + "/mcp"}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
		if err != nil {
			t.Fatal(err)
		}
		before, _ := b.scrape()
		if _, err := a.CallTool(t.Context(), &mcp.CallToolParams{Name: "one__add", Arguments: map[string]any{"n": 1}}); err != nil {
			t.Error(err)
		}
		b.grows(outcome, before, asks(outcome))
		_ = a.Close()
	}
}

// The documentation has every metric, with its type, labels and their values, and
// no other.
func TestMetricsAreDocumented(t *testing.T) {
	b := newBoard(t, Options{Metrics: true})
	values, types := b.scrape()
	doc, err := os.ReadFile("../docs/observability.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| `(jsbridge_\\w+)` \\| (\\w+) \\| ([^|]*)\\| (.*) \\|$")
	word := regexp.MustCompile("`(\\w+)`")
	documented := make(map[string]string) // what is said of each
	for _, m := range row.FindAllStringSubmatch(string(doc), -1) {
		name, kind, labels := m[1], m[2], m[3]
		documented[name] = m[4]
		if types[name] != kind {
			t.Errorf("%s is documented as a %s; it is %q", name, kind, types[name])
		}
		var want, got []string
		for _, l := range word.FindAllStringSubmatch(labels, -1) {
			want = append(want, l[1])
		}
		for series := range values {
			if base, rest, _ := strings.Cut(series, "{"); base == name || base == name+"_count" {
				for _, l := range regexp.MustCompile(`(\w+)="`).FindAllStringSubmatch(rest, -1) {
					got = append(got, l[1])
				}
				break
			}
		}
		if slices.Sort(want); !slices.Equal(want, slices.Sorted(slices.Values(got))) {
			t.Errorf("%s is documented with the labels %v; it has %v", name, want, got)
		}
	}
	if len(documented) == 0 {
		t.Fatal("the documentation has no table of metrics")
	}
	for name := range types {
		if _, ok := documented[name]; !ok && strings.HasPrefix(name, "jsbridge_") {
			t.Errorf("%s is not documented", name)
		}
	}
	value := regexp.MustCompile(`\w+="([^"]*)"`)
	for series := range values {
		name, rest, _ := strings.Cut(series, "{")
		if said := documented[name]; said != "" && name != "jsbridge_build_info" && name != "jsbridge_page_disconnects_total" { // codes are in protocol.md
			for _, v := range value.FindAllStringSubmatch(rest, -1) {
				if !strings.Contains(said, "`"+v[1]+"`") && !(name == "jsbridge_call_duration_seconds") {
					t.Errorf("%s: the documentation does not say what %q means", name, v[1])
				}
			}
		}
	}
}

// Nothing that a page or client says becomes a series.
func TestHostileNamesMakeNoSeries(t *testing.T) {
	b := newBoard(t, Options{Metrics: true})
	a := b.agent("/mcp/work")
	before, _ := b.scrape()
	p := b.open("evil%22%0Ajsbridge_pages%20999", near, someTools, echo)
	p.hears("registered")
	p.say(`{"type":"evil\"} 1\njsbridge_x 2"}`)
	p.hears("error")
	_, _ = a.CallTool(t.Context(), &mcp.CallToolParams{Name: "evil\"} 1\njsbridge_x"})
	b.ask("PROPFIND", "/evil", "", map[string]string{"Mcp-Session-Id": "evil", "Origin": "evil\"}"})
	after, _ := b.scrape()
	if got, want := slices.Sorted(maps.Keys(after)), slices.Sorted(maps.Keys(before)); !slices.Equal(got, want) {
		t.Errorf("the series were\n%v\nand are\n%v", want, got)
	}
}

// Off, they are as any unknown path.
func TestOffByDefault(t *testing.T) {
	b := newBoard(t, Options{})
	for _, path := range []string{"/metrics", "/debug/pprof/", "/debug/pprof/heap", "/debug/vars"} {
		if status, _, body := b.ask("GET", path, "", nil); status != http.StatusNotFound || !strings.Contains(body, "there is nothing at") {
			t.Errorf("%s: %d %.100s", path, status, body)
		}
	}
}
