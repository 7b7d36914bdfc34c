package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// How the calls are made that a dashboard must not slow.
const (
	boardCallers = 25 // each on a connection of its own
	boardReads   = "with a dashboard that reads, and one that does not"
	boardNone    = "without a dashboard"
)

// boardOptions is the load under which dashboards are measured.
type boardOptions struct {
	pages  int // 0 leaves the measurement out
	tools  int // of each page
	rate   int // calls a second
	rounds int
	each   time.Duration
}

// boards are what was measured, one sample for each round.
type boards struct {
	with, without []sample
	events        int // that the dashboard which reads was told in a round, the last one's
	bytes         int
}

// measureDashboard has sessions call the tools of many pages at a fixed rate, by
// turns without a dashboard and with two: one reads its stream of events, the other
// never does. It takes a server of its own. Pages, sessions and dashboards are in
// this process.
func measureDashboard(c *crew, binary string, o boardOptions, progress io.Writer) (*boards, error) {
	server, err := c.start("jsbridge with dashboards", binary, "", "--port", "0", "--state", "")
	if err != nil {
		return nil, err
	}
	base, err := server.address(c.ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(c.ctx)
	var pages sync.WaitGroup
	defer pages.Wait()
	defer cancel(nil)
	at := endpoint{host: strings.TrimPrefix(base, "http://")}
	for i := range o.pages {
		ws, err := joinBoard(ctx, at.host, i, o.tools)
		if err != nil {
			return nil, err
		}
		pages.Go(func() {
			defer func() { _ = ws.CloseNow() }()
			cancel(answerCalls(ctx, ws))
		})
	}
	if err := at.initialize(ctx); err != nil {
		return nil, err
	}
	b := new(boards)
	for round := range o.rounds {
		fmt.Fprintf(progress, "bench: dashboards, round %d of %d\n", round+1, o.rounds)
		s, err := paced(ctx, server, at, o)
		if err != nil {
			return nil, err
		}
		b.without = append(b.without, s)
		if s, err = b.watched(ctx, server, at, o); err != nil {
			return nil, err
		}
		b.with = append(b.with, s)
	}
	return b, nil
}

// joinBoard brings one page in.
func joinBoard(ctx context.Context, host string, number, tools int) (*websocket.Conn, error) {
	ws, _, err := websocket.Dial(ctx, fmt.Sprintf("ws://%s/ws?v=1&instance=bench-instance-%06d&tenant=%s", host, number, boardPage(number)), nil)
	if err != nil {
		return nil, err
	}
	ws.SetReadLimit(1 << 20) // it is told the names of all its tools
	var frame strings.Builder
	frame.WriteString(`{"type":"register_tools","url":"http://localhost/bench","tools":[`)
	for i := range tools {
		if i > 0 {
			frame.WriteByte(',')
		}
		fmt.Fprintf(&frame, `{"name":"t%d","description":"Gives the text back.","source":"host","inputSchema":%s}`, i, echoSchema)
	}
	frame.WriteString("]}")
	if err := ws.Write(ctx, websocket.MessageText, []byte(frame.String())); err != nil {
		return nil, err
	}
	for { // until it is published
		_, data, err := ws.Read(ctx)
		if err != nil {
			return nil, err
		}
		if strings.HasPrefix(string(data), `{"type":"registered"`) {
			return ws, nil
		}
	}
}

func boardPage(number int) string { return fmt.Sprintf("bench-%d", number) }

// watched measures while two dashboards are open.
func (b *boards) watched(ctx context.Context, server *process, at endpoint, o boardOptions) (sample, error) {
	ctx, cancel := context.WithCancel(ctx)
	stalled, err := openBoard(ctx, at.host)
	if err != nil {
		cancel()
		return sample{}, err
	}
	if tcp, ok := stalled.(*net.TCPConn); ok {
		_ = tcp.SetReadBuffer(4 << 10) // so that it stalls soon
	}
	reads, err := openBoard(ctx, at.host)
	if err != nil {
		cancel()
		return sample{}, errors.Join(err, stalled.Close())
	}
	b.events, b.bytes = 0, 0
	var reader sync.WaitGroup
	reader.Go(func() {
		for in := bufio.NewReader(reads); ; {
			line, err := in.ReadString('\n')
			if err != nil {
				return // it is closed below, or the round shows too few events
			}
			b.bytes += len(line)
			if strings.HasPrefix(line, "event:") {
				b.events++
			}
		}
	})
	s, err := paced(ctx, server, at, o)
	cancel()
	_, _ = stalled.Close(), reads.Close()
	reader.Wait()
	if err == nil && b.events < 2 {
		err = fmt.Errorf("a dashboard was told %d events", b.events)
	}
	return s, err
}

// openBoard opens a stream of events, of which nothing is read yet.
func openBoard(ctx context.Context, host string) (net.Conn, error) {
	conn, err := endpoint{host: host}.dial(ctx)
	if err != nil {
		return nil, err
	}
	conn.stop()
	_, err = fmt.Fprintf(conn.conn, "GET /api/events HTTP/1.1\r\nHost: %s\r\n\r\n", host)
	return conn.conn, err
}

// paced calls at the given rate, first unmeasured for a fifth of the time.
func paced(ctx context.Context, server *process, at endpoint, o boardOptions) (sample, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	begun := time.Now()
	from := begun.Add(o.each / 5)
	until := from.Add(o.each)
	gap := time.Duration(boardCallers) * time.Second / time.Duration(o.rate)
	latencies := make([][]time.Duration, boardCallers)
	var running sync.WaitGroup
	for i := range boardCallers {
		running.Go(func() {
			first := begun.Add(gap * time.Duration(i) / boardCallers)
			if err := pacedCaller(ctx, at, o, i, first, gap, from, until, &latencies[i]); err != nil {
				cancel(err)
			}
		})
	}
	before, after := time.Duration(0), time.Duration(0)
	err := pause(ctx, time.Until(from))
	if err == nil {
		before = cpuTime(server.pid)
		err = pause(ctx, time.Until(until))
		after = cpuTime(server.pid)
	}
	running.Wait()
	if err != nil || ctx.Err() != nil {
		return sample{}, context.Cause(ctx)
	}
	all := slices.Concat(latencies...)
	if len(all) == 0 {
		return sample{}, errors.New("no call ended within the measurement")
	}
	slices.Sort(all)
	return sample{p50: percentile(all, 0.50), p99: percentile(all, 0.99), rate: float64(len(all)) / o.each.Seconds(), cpu: (after - before) / time.Duration(len(all))}, nil
}

// pacedCaller calls once in each gap. A latency counts from when the call was due,
// so that a call which holds the next ones up is not counted once only.
func pacedCaller(ctx context.Context, at endpoint, o boardOptions, number int, due time.Time, gap time.Duration, from, until time.Time, into *[]time.Duration) error {
	c, err := at.dial(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	_ = c.conn.SetDeadline(until.Add(patience))
	for n := 0; due.Before(until); n, due = n+1, due.Add(gap) {
		if err := pause(ctx, time.Until(due)); err != nil {
			return nil // the run has ended, and says why
		}
		id := 1 + number + n*boardCallers
		text := fmt.Sprintf("caller %d, call %d", number, id)
		msg := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%s__t%d","arguments":{"text":%q}}}`,
			id, strings.ReplaceAll(boardPage(id%o.pages), "-", "_"), id%o.tools, text)
		answer, _, err := c.post(msg)
		ended := time.Now()
		if err != nil {
			return err
		}
		var result callResult
		if err := decodeAnswer(answer, id, &result); err != nil {
			return err
		}
		if got, err := result.text(); err != nil || got != text {
			return fmt.Errorf("wrong answer: %q, %v", got, err)
		}
		if ended.After(from) && ended.Before(until) {
			*into = append(*into, ended.Sub(due))
		}
	}
	return nil
}

func (r *results) boardTable() table {
	o, b := r.options.board, r.boards
	t := table{title: fmt.Sprintf("Dashboards: %d pages of %d tools, %d calls/s by %d callers, %d × %s", o.pages, o.tools, o.rate, boardCallers, o.rounds, o.each),
		heads: []string{"", "p50 ms", "p99 ms", "calls/s", "server CPU µs/call"}}
	for _, row := range []struct {
		name string
		s    []sample
	}{{boardNone, b.without}, {boardReads, b.with}} {
		t.row(row.name, spread(each(row.s, func(s sample) float64 { return milliseconds(s.p50) })), spread(each(row.s, func(s sample) float64 { return milliseconds(s.p99) })),
			fmt.Sprintf("%.0f", median(each(row.s, sample.perSecond))), fmt.Sprintf("%.0f", median(each(row.s, func(s sample) float64 { return float64(s.cpu) }))/float64(time.Microsecond)))
	}
	t.note("Times: median (least to greatest) of the rounds, from when a call was due. The dashboard that reads was told %d events, %s MB.", b.events, mb(int64(b.bytes)))
	return t
}
