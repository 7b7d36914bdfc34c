package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"sync"

	"github.com/coder/websocket"

	"jsbridge/internal/rig"
)

// A page is a scripted one. Its tools: echo gives its text back, big gives as many
// letters as it is asked for, and what else it has waits for [page.answer].
type page struct {
	ws     *websocket.Conn
	prefix string
	told   chan frame    // calls to be answered, cancellations, and what else is no routine
	ended  chan struct{} // closed when the socket has ended
	why    error         // set before
	mute   func(frame) bool

	registered chan struct{} // an entry for each registration that was acknowledged; some may be dropped
}

// frame is a message of the server.
type frame struct {
	Type, ID, Name, Prefix, Message, Reason string
	Args                                    struct {
		Text  string
		Bytes int
	}
}

// pageOptions says what a page is.
type pageOptions struct {
	connect  string // the connect string
	instance string // of the tab, at least 16 letters or digits; "" for one without
	label    string
	tools    []string
	origin   string // "" for none
	// mute: such a message is given to told, and not answered. Nil: none is.
	mute func(frame) bool
}

// join connects a page and waits until it is registered.
func join(ctx context.Context, base string, o pageOptions) (*page, error) {
	at := "ws" + strings.TrimPrefix(base, "http") + "/ws?" + url.Values{"tenant": {o.connect}, "v": {"1"}, "instance": {o.instance}}.Encode()
	options := &websocket.DialOptions{HTTPHeader: map[string][]string{}}
	if o.origin != "" {
		options.HTTPHeader.Set("Origin", o.origin)
	}
	ws, _, err := websocket.Dial(ctx, at, options)
	if err != nil {
		return nil, fmt.Errorf("a page: %w", err)
	}
	ws.SetReadLimit(-1)
	p := &page{ws: ws, told: make(chan frame, 10_000), ended: make(chan struct{}), mute: o.mute, registered: make(chan struct{}, 10_000)}
	var first sync.Once
	ready := make(chan struct{})
	go p.listen(ctx, func() { first.Do(func() { close(ready) }) })
	if err := p.say(ctx, declaration(o)); err != nil {
		p.cut()
		return nil, err
	}
	select {
	case <-ready:
		return p, nil
	case <-p.ended:
		return nil, fmt.Errorf("a page was not let in: %w", p.why)
	case <-ctx.Done():
		p.cut()
		return nil, context.Cause(ctx)
	}
}

// declaration is the page's register_tools.
func declaration(o pageOptions) string {
	var tools []string
	for _, name := range o.tools {
		tools = append(tools, fmt.Sprintf(`{"name":%q,"description":"Does %s.","source":"host"}`, name, name))
	}
	return fmt.Sprintf(`{"type":"register_tools","appLabel":%q,"title":%[1]q,"url":"http://localhost/faults","tools":[%s]}`, o.label, strings.Join(tools, ","))
}

// listen reads the socket to its end.
func (p *page) listen(ctx context.Context, ready func()) {
	defer close(p.ended)
	for {
		_, data, err := p.ws.Read(ctx)
		if err != nil {
			p.why = err
			return
		}
		var f frame
		if err := json.Unmarshal(data, &f); err != nil {
			p.why = fmt.Errorf("the page cannot read %.200q: %w", data, err)
			return
		}
		if p.mute != nil && p.mute(f) {
			p.told <- f
			continue
		}
		switch {
		case f.Type == "welcome":
			if strings.Contains(string(data), `"state":"pending"`) {
				ready()
			}
		case f.Type == "registered":
			if p.prefix == "" {
				p.prefix = f.Prefix
			}
			ready()
			select {
			case p.registered <- struct{}{}:
			default:
			}
		case f.Type == "probe":
			_ = p.say(ctx, fmt.Sprintf(`{"type":"alive","id":%q}`, f.ID))
		case f.Type == "call" && f.Name == "echo":
			_ = p.answer(ctx, f.ID, f.Args.Text)
		case f.Type == "call" && f.Name == "big":
			_ = p.answer(ctx, f.ID, strings.Repeat("x", f.Args.Bytes))
		default:
			select {
			case p.told <- f:
			default: // nobody listens
			}
		}
	}
}

func (p *page) say(ctx context.Context, message string) error {
	ctx, cancel := context.WithTimeout(ctx, rig.Patience)
	defer cancel()
	return p.ws.Write(ctx, websocket.MessageText, []byte(message))
}

// declare registers anew, and waits until that is acknowledged.
func (p *page) declare(ctx context.Context, message string) error {
	for len(p.registered) > 0 {
		<-p.registered
	}
	if err := p.say(ctx, message); err != nil {
		return err
	}
	_, err := within(ctx, rig.Patience, "a registration's acknowledgement", p.registered)
	return err
}

// answer ends a call with a text.
func (p *page) answer(ctx context.Context, id, result string) error {
	return p.say(ctx, fmt.Sprintf(`{"type":"call_result","id":%q,"result":%q}`, id, result))
}

// hears waits for a message of this type, and drops others.
func (p *page) hears(ctx context.Context, typ string) (frame, error) {
	ctx, cancel := context.WithTimeout(ctx, rig.Patience)
	defer cancel()
	for {
		select {
		case f := <-p.told:
			if f.Type == typ {
				return f, nil
			}
		case <-p.ended:
			return frame{}, fmt.Errorf("waiting for %q: the page's socket ended: %w", typ, p.why)
		case <-ctx.Done():
			return frame{}, fmt.Errorf("the page was not told %q: %w", typ, ctx.Err())
		}
	}
}

// leave closes the page for good.
func (p *page) leave() {
	_ = p.ws.Close(websocket.StatusNormalClosure, "left")
	<-p.ended
}

// cut ends the socket without a close frame.
func (p *page) cut() {
	_ = p.ws.CloseNow()
	<-p.ended
}
