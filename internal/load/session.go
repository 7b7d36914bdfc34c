package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const protocolVersion = "2025-11-25"

// A gallery is the MCP sessions, in this process.
type gallery struct {
	ctx      context.Context // ends with the first stream that ends by itself
	cancel   context.CancelCauseFunc
	base     string // http://127.0.0.1:port
	client   *http.Client
	sessions []*session
	told     chan telling // of tools/list_changed
	streams  sync.WaitGroup
	ids      atomic.Int64 // of requests
}

// A session is one MCP client with its stream open.
type session struct {
	g      *gallery
	number int
	id     string
	tenant string // its snippet's
}

// A telling is one notification's arrival.
type telling struct {
	session int
	at      time.Time
}

func newGallery(ctx context.Context, base string, expect int) *gallery {
	g := &gallery{base: base, told: make(chan telling, 1+100*expect)}
	g.ctx, g.cancel = context.WithCancelCause(ctx)
	g.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2 * comers, DisableCompression: true}}
	return g
}

func (g *gallery) close() {
	g.cancel(errors.New("the run is over"))
	g.streams.Wait()
	g.client.CloseIdleConnections()
}

// open opens further sessions, several at a time.
func (g *gallery) open(to int) error {
	from := len(g.sessions)
	for n := from; n < to; n++ {
		g.sessions = append(g.sessions, &session{g: g, number: n})
	}
	return g.each(g.sessions[from:], (*session).open)
}

// each does something for each session, several at a time.
func (g *gallery) each(sessions []*session, do func(*session) error) error {
	next := make(chan *session)
	var workers sync.WaitGroup
	for range comers {
		workers.Go(func() {
			for s := range next {
				if err := do(s); err != nil {
					g.cancel(fmt.Errorf("session %d: %w", s.number, err))
				}
			}
		})
	}
	for _, s := range sessions {
		select {
		case next <- s:
		case <-g.ctx.Done():
		}
	}
	close(next)
	workers.Wait()
	return context.Cause(g.ctx)
}

func (s *session) open() error {
	res, err := s.request(http.MethodPost, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"`+protocolVersion+
		`","capabilities":{},"clientInfo":{"name":"load","version":"1"}}}`)
	if err != nil {
		return fmt.Errorf("initialize: %w", err)
	}
	if _, err := finish(res); err != nil {
		return fmt.Errorf("initialize: %w", err)
	}
	if s.id = res.Header.Get("Mcp-Session-Id"); s.id == "" {
		return errors.New("initialize: the answer names no session")
	}
	res, err = s.request(http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	if err != nil {
		return fmt.Errorf("notifications/initialized: %w", err)
	}
	if _, err := finish(res); err != nil {
		return fmt.Errorf("notifications/initialized: %w", err)
	}
	if err := s.listen(); err != nil {
		return err
	}
	snippet, err := s.call("get_embed_snippet", "{}")
	if err != nil {
		return err
	}
	m := tenantInSnippet.FindStringSubmatch(snippet)
	if m == nil {
		return fmt.Errorf("the embed snippet names no tenant: %s", snippet)
	}
	s.tenant = m[1]
	return nil
}

var tenantInSnippet = regexp.MustCompile(`tenant=([0-9A-Za-z-]+)`)

// listen opens the session's stream and reads it until the gallery's end.
func (s *session) listen() error {
	res, err := s.request(http.MethodGet, "")
	if err != nil {
		return fmt.Errorf("GET: %w", err)
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("GET: %s", res.Status)
	}
	s.g.streams.Go(func() {
		defer res.Body.Close()
		lines := bufio.NewScanner(res.Body)
		for lines.Scan() {
			if bytes.Contains(lines.Bytes(), []byte(`"notifications/tools/list_changed"`)) {
				select {
				case s.g.told <- telling{s.number, time.Now()}:
				default: // nobody waits for it
				}
			}
		}
		s.g.cancel(fmt.Errorf("the stream of session %d has ended: %v", s.number, lines.Err()))
	})
	return nil
}

func (s *session) request(method, body string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(s.g.ctx, method, s.g.base+"/mcp", strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "text/event-stream")
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
	}
	if s.id != "" {
		req.Header.Set("Mcp-Session-Id", s.id)
		req.Header.Set("Mcp-Protocol-Version", protocolVersion)
	}
	return s.g.client.Do(req)
}

// finish reads an answer to its end: a JSON body, or the last event of a stream.
func finish(res *http.Response) ([]byte, error) {
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	if res.StatusCode/100 != 2 {
		return nil, fmt.Errorf("%s: %s", res.Status, bytes.TrimSpace(body))
	}
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		return body, nil
	}
	var last []byte
	for line := range bytes.Lines(body) {
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			last = data
		}
	}
	return last, nil
}

// ask sends one request and decodes its result.
func (s *session) ask(method, params string, result any) error {
	id := s.g.ids.Add(1)
	res, err := s.request(http.MethodPost, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params))
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	body, err := finish(res)
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	var a struct {
		ID     int64
		Result json.RawMessage
		Error  *struct{ Message string }
	}
	if err := json.Unmarshal(body, &a); err != nil {
		return fmt.Errorf("%s: wrong answer %.200q: %w", method, body, err)
	}
	if a.Error != nil {
		return fmt.Errorf("%s: %s", method, a.Error.Message)
	}
	if a.ID != id {
		return fmt.Errorf("%s: the answer to request %d came to request %d", method, a.ID, id)
	}
	return json.Unmarshal(a.Result, result)
}

// call calls a tool and gives its text.
func (s *session) call(tool, args string) (string, error) {
	var r struct {
		Content []struct{ Type, Text string }
		IsError bool
	}
	if err := s.ask("tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, args), &r); err != nil {
		return "", fmt.Errorf("%s: %w", tool, err)
	}
	if r.IsError || len(r.Content) != 1 || r.Content[0].Type != "text" {
		return "", fmt.Errorf("%s: want one text, have %+v", tool, r)
	}
	return r.Content[0].Text, nil
}

// check makes sure that the session's list has the tools of these pages and no
// other's.
func (s *session) check(pages []int) error {
	want := make(map[string]bool)
	for _, n := range pages {
		for i := range toolsPerPage {
			want[prefixOf(n)+toolOf(i)] = true
		}
	}
	var list struct{ Tools []struct{ Name string } }
	if err := s.ask("tools/list", `{}`, &list); err != nil {
		return err
	}
	for _, t := range list.Tools {
		switch {
		case want[t.Name]:
			delete(want, t.Name)
		case strings.Contains(t.Name, "__"):
			return fmt.Errorf("tools/list shows %s, which belongs to no page of this session", t.Name)
		}
	}
	if len(want) > 0 {
		return fmt.Errorf("tools/list lacks %d of %d tools", len(want), len(pages)*toolsPerPage)
	}
	return nil
}

// settle waits until nobody has been told anything for a while.
func (g *gallery) settle() error {
	for {
		select {
		case <-g.told:
		case <-g.ctx.Done():
			return context.Cause(g.ctx)
		case <-time.After(500 * time.Millisecond):
			return nil
		}
	}
}

// await waits until each of n sessions was told, and gives how long after begun.
func (g *gallery) await(begun time.Time, n int) ([]time.Duration, error) {
	heard := make(map[int]bool, n)
	all := make([]time.Duration, 0, n)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for len(all) < n {
		select {
		case t := <-g.told:
			if heard[t.session] {
				return nil, fmt.Errorf("session %d was told twice of one change", t.session)
			}
			heard[t.session] = true
			all = append(all, t.at.Sub(begun))
		case <-g.ctx.Done():
			return nil, context.Cause(g.ctx)
		case <-timer.C:
			return nil, fmt.Errorf("%d of %d sessions were not told of a change within %s", n-len(all), n, patience)
		}
	}
	return all, nil
}
