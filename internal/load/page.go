package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"
)

// toolsPerPage is how many tools each page has.
const toolsPerPage = 5

// A page is one scripted tab. It gives back what its tools are called with.
type page struct {
	host    string
	connect string // the connect string
	from    string // local address
	label   string
	number  int

	ws       *websocket
	versions int           // of its manifest
	told     chan struct{} // an entry for each "registered"
	ended    chan error    // the reader's end
	leaving  atomic.Bool
}

func newPage(host, connect string, number int) *page {
	return &page{host: host, connect: connect, number: number, label: labelOf(number), from: sourceOf(number)}
}

func labelOf(number int) string { return fmt.Sprintf("page %d", number) }

// prefixOf is what the server makes of the label.
func prefixOf(number int) string { return fmt.Sprintf("page_%d__", number) }

// portsPerAddress is how many connections one source address has for sure: Linux
// gives out 28,000 ports, and those of connections that have ended rest for a minute.
const portsPerAddress = 15_000

// sourceOf spreads pages over the addresses of 127.0.0.0/8.
func sourceOf(number int) string {
	if number < 0 {
		number = 0
	}
	return fmt.Sprintf("127.0.0.%d", 1+number/portsPerAddress%250)
}

// come connects and registers; serve is run in a goroutine of its own, and done is
// called with its end.
func (p *page) come(ctx context.Context, done func(error)) error {
	// A tab that was never here before: one that comes back would keep its place.
	instance := fmt.Sprintf("load%012x%08x", time.Now().UnixNano(), p.number)
	ws, err := dialSocket(ctx, p.host, "v=1&tenant="+p.connect+"&instance="+instance, p.from)
	if err != nil {
		return err
	}
	p.ws, p.told, p.ended = ws, make(chan struct{}, 1), make(chan error, 1)
	p.leaving.Store(false)
	go func() {
		err := p.serve()
		p.ended <- err
		done(err)
	}()
	return p.register()
}

// register declares the tools, in one more version, and waits for the answer.
func (p *page) register() error {
	p.versions++
	if err := p.ws.write(opText, p.manifest()); err != nil {
		return err
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.told:
		return nil
	case err := <-p.ended:
		p.ended <- err
		return fmt.Errorf("%s registered and was not answered: %w", p.label, err)
	case <-timer.C:
		return fmt.Errorf("%s registered and was not answered within %s", p.label, patience)
	}
}

// leave leaves for good and waits for the socket's end.
func (p *page) leave() error {
	p.leaving.Store(true)
	if err := p.ws.write(opText, []byte(`{"type":"leave_channel"}`)); err != nil {
		return err
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case err := <-p.ended:
		return err
	case <-timer.C:
		return fmt.Errorf("%s left and was not closed within %s", p.label, patience)
	}
}

// manifest is what the page declares. No two pages share a description or a schema:
// what the server saves when they do must not flatter its figures.
func (p *page) manifest() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"type":"register_tools","appLabel":%q,"title":%[1]q,"url":"http://localhost/load/%d","summary":"A page that is there to be one of many.","tools":[`, p.label, p.number)
	for i := range toolsPerPage {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"name":%q,"description":"Gives the text back, as the other tools of %s do (version %d).","source":"host","inputSchema":{"type":"object","properties":{`+
			`"text":{"type":"string","description":"what %[2]s gives back"},"count":{"type":"integer","description":"how often, which it does not care for","minimum":1}},"required":["text"]}}`,
			toolOf(i), p.label, p.versions)
	}
	b.WriteString(`]}`)
	return b.Bytes()
}

func toolOf(i int) string { return fmt.Sprintf("tool_%d", i+1) }

// serve answers what the page is told. It ends with nil when the page has left.
func (p *page) serve() error {
	defer func() { _ = p.ws.conn.Close() }()
	var out []byte
	for {
		data, err := p.ws.read()
		var closed *closedError
		if p.leaving.Load() && errors.As(err, &closed) && closed.code == 1000 {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", p.label, err)
		}
		if out, err = p.answer(out[:0], data); err != nil {
			return err
		}
		if len(out) > 0 {
			if err := p.ws.write(opText, out); err != nil {
				return fmt.Errorf("%s: %w", p.label, err)
			}
		}
	}
}

func (p *page) answer(out, data []byte) ([]byte, error) {
	var msg struct {
		Type string
		ID   json.RawMessage
		Args struct{ Text json.RawMessage }

		State           string
		Tools, Problems []json.RawMessage
	}
	if err := json.Unmarshal(data, &msg); err != nil {
		return nil, fmt.Errorf("%s cannot read %.200q: %w", p.label, data, err)
	}
	switch msg.Type {
	case "call":
		out = append(out, `{"type":"call_result","id":`...)
		out = append(out, msg.ID...)
		out = append(out, `,"result":`...)
		out = append(out, msg.Args.Text...)
		return append(out, '}'), nil
	case "probe": // on a machine so busy that a call takes seconds
		out = append(out, `{"type":"alive","id":`...)
		out = append(out, msg.ID...)
		return append(out, '}'), nil
	case "welcome":
		if msg.State == "ready" {
			return out, nil
		}
	case "registered":
		if len(msg.Tools) == toolsPerPage && len(msg.Problems) == 0 {
			select {
			case p.told <- struct{}{}:
			default: // of another page that came or left, which renamed nothing here
			}
			return out, nil
		}
	}
	return nil, fmt.Errorf("%s was told %.200q", p.label, strings.TrimSpace(string(data)))
}
