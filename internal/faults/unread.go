package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"jsbridge/internal/rig"
)

func runUnreadAnswer(ctx context.Context, a *arena) (string, error) {
	w, err := newWorkspace(ctx, a)
	if err != nil {
		return "", err
	}
	defer w.leave()
	p, err := w.join(ctx, "page", "echo", "big")
	if err != nil {
		return "", err
	}
	defer p.leave()
	details := []string{}
	for _, accept := range []string{"application/json, text/event-stream", "application/json"} {
		s, err := slowTo(ctx, a.server)
		if err != nil {
			return "", err
		}
		defer s.conn.Close()
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":"big","method":"tools/call","params":{"name":"%s__big","arguments":{"bytes":%d}}}`, p.prefix, 8<<20)
		if err := s.write(mcpHead(w, http.MethodPost, accept, len(body)) + body); err != nil {
			return "", err
		}
		var worst time.Duration
		took, err := s.held(ctx, writeLimit, func() error {
			begun := time.Now()
			err := w.client.echo(ctx, p.prefix, "go on")
			worst = max(worst, time.Since(begun))
			return err
		})
		if err != nil {
			return "", fmt.Errorf("with Accept: %s: %w", accept, err)
		}
		details = append(details, fmt.Sprintf("%s: cut after %s, other calls took at most %s", strings.TrimPrefix(accept, "application/json, "), short(took), short(worst)))
	}
	return strings.Join(details, "; "), nil
}

// newWorkspaceWithoutStream has a client that opens no standalone stream, so that
// the scenario may.
func newWorkspaceWithoutStream(ctx context.Context, a *arena) (*workspace, error) {
	c, err := connectAs(ctx, a.server.Base, clientOptions{workspace: workspaceKey, version: withSessions, noStream: true})
	if err != nil {
		return nil, err
	}
	return workspaceOf(ctx, a.server.Base, c)
}

// streamResources are watched by clients, with addresses so long that telling of
// them fills a connection.
const streamResources = 200

func runUnreadStream(ctx context.Context, a *arena) (string, error) {
	stalled, err := newWorkspaceWithoutStream(ctx, a)
	if err != nil {
		return "", err
	}
	defer stalled.leave()
	p, err := stalled.join(ctx, "page", "echo")
	if err != nil {
		return "", err
	}
	defer p.leave()
	var uris, resources []string
	for i := range streamResources {
		uri := fmt.Sprintf("test://resource/%03d/%s", i, strings.Repeat("x", 1500))
		uris = append(uris, uri)
		resources = append(resources, fmt.Sprintf(`{"uri":%q,"name":"r%d"}`, uri, i))
	}
	if err := p.declare(ctx, strings.TrimSuffix(declaration(stalled.options("page", "echo")), "}")+`,"resources":[`+strings.Join(resources, ",")+`]}`); err != nil {
		return "", err
	}
	// Another session, which reads, is told of the same.
	told := make(chan string, 100_000)
	reads, err := connectAs(ctx, a.server.Base, clientOptions{workspace: workspaceKey, version: withSessions, told: told})
	if err != nil {
		return "", err
	}
	defer reads.leave()
	for _, uri := range uris {
		if err := errors.Join(stalled.client.subscribe(ctx, uri), reads.subscribe(ctx, uri)); err != nil {
			return "", err
		}
	}
	s, err := slowTo(ctx, a.server)
	if err != nil {
		return "", err
	}
	defer s.conn.Close()
	if err := errors.Join(s.write(mcpHead(stalled, http.MethodGet, "text/event-stream", 0)), s.head(http.StatusOK)); err != nil {
		return "", err
	}

	var worst time.Duration
	n := 0
	took, err := s.held(ctx, 3*writeLimit, func() error {
		begun := time.Now()
		for _, uri := range uris {
			if err := p.say(ctx, fmt.Sprintf(`{"type":"resource_updated","uri":%q}`, uri)); err != nil {
				return err
			}
		}
		n++
		if _, err := within(ctx, rig.Patience, "the other session to be told", told); err != nil {
			return err
		}
		for len(told) > 0 {
			<-told
		}
		worst = max(worst, time.Since(begun))
		return stalled.client.echo(ctx, p.prefix, "go on")
	})
	if err != nil {
		return "", err
	}
	again := &raw{base: a.server.Base, session: stalled.client.ID()}
	stream, err := again.open(ctx)
	if err != nil {
		return "", fmt.Errorf("opening another stream: %w", err)
	}
	defer stream.Body.Close()
	return fmt.Sprintf("cut after %s and %d rounds of %d notifications; the other session was told of each round after at most %s; the session opened another stream",
		short(took), n, streamResources, short(worst)), nil
}

// dashboardPages change all the time what the dashboard shows of them.
const dashboardPages = 60

func runUnreadDashboard(ctx context.Context, a *arena) (string, error) {
	w, err := newWorkspace(ctx, a)
	if err != nil {
		return "", err
	}
	defer w.leave()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var pages []*page
	defer func() {
		for _, p := range pages {
			p.leave()
		}
	}()
	for i := range dashboardPages {
		p, err := w.join(ctx, fmt.Sprint("page", i), "echo")
		if err != nil {
			return "", err
		}
		pages = append(pages, p)
	}
	s, err := slowTo(ctx, a.server)
	if err != nil {
		return "", err
	}
	defer s.conn.Close()
	if err := errors.Join(s.write("GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n"), s.head(http.StatusOK)); err != nil {
		return "", err
	}
	reads, events, err := watchDashboard(ctx, a)
	if err != nil {
		return "", err
	}
	n := 0
	summary := strings.Repeat("x", 3<<10)
	took, err := s.held(ctx, 3*writeLimit, func() error {
		n++
		for _, p := range pages {
			if err := p.say(ctx, fmt.Sprintf(`{"type":"register_tools","appLabel":"App","summary":"%d %s","tools":[{"name":"echo","description":"d"}]}`, n, summary)); err != nil {
				return err
			}
		}
		return w.client.echo(ctx, pages[0].prefix, "go on")
	})
	seen := events()
	cancel()
	reads.Wait()
	if err != nil {
		return "", err
	}
	if seen < 10 {
		return "", fmt.Errorf("the dashboard that reads was told %d events", seen)
	}
	return fmt.Sprintf("cut after %s; another dashboard was told %d events meanwhile", short(took), seen), nil
}

// watchDashboard is a dashboard that reads, until ctx ends, and counts.
func watchDashboard(ctx context.Context, a *arena) (reading *sync.WaitGroup, events func() int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.server.Base+"/api/events", nil)
	if err != nil {
		return nil, nil, err
	}
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		return nil, nil, err
	}
	var mu sync.Mutex
	n := 0
	reading = &sync.WaitGroup{}
	reading.Go(func() {
		defer res.Body.Close()
		for in := bufio.NewReader(res.Body); ; {
			line, err := in.ReadSlice('\n')
			if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
				return
			}
			if slices.Equal(line[:min(len(line), 6)], []byte("event:")) {
				mu.Lock()
				n++
				mu.Unlock()
			}
		}
	})
	return reading, func() int {
		mu.Lock()
		defer mu.Unlock()
		return n
	}, nil
}
