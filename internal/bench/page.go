package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/coder/websocket"
)

// toolName is what the page calls its only tool.
const toolName = "echo"

// echoSchema takes one text.
const echoSchema = `{"type":"object","properties":{"text":{"type":"string","description":"what to give back"}},"required":["text"]}`

// describe is the tool's description after some number of changes.
func describe(changes int) string {
	return fmt.Sprintf("Gives the text back. This is version %d.", changes)
}

// playPage is the scripted page: it registers one tool and answers each call at
// once, in the order of arrival. Each line on control changes the tool and
// registers it again.
func playPage(url string, control io.Reader) error {
	ctx := context.Background()
	ws, _, err := websocket.Dial(ctx, url, nil)
	if err != nil {
		return err
	}
	defer func() { _ = ws.CloseNow() }()
	if err := register(ctx, ws, 0); err != nil {
		return err
	}
	go func() {
		lines := bufio.NewScanner(control)
		for changes := 1; lines.Scan(); changes++ {
			if register(ctx, ws, changes) != nil {
				break // the reader meets the same end and says so
			}
		}
		if lines.Err() == nil {
			os.Exit(0) // whoever started this process is gone
		}
	}()
	return answerCalls(ctx, ws)
}

func register(ctx context.Context, ws *websocket.Conn, changes int) error {
	msg := fmt.Appendf(nil, `{"type":"register_tools","appLabel":"bench","title":"bench","url":"http://localhost/bench","tools":[`+
		`{"name":%q,"description":%q,"source":"host","inputSchema":%s}]}`, toolName, describe(changes), echoSchema)
	return ws.Write(ctx, websocket.MessageText, msg)
}

func answerCalls(ctx context.Context, ws *websocket.Conn) error {
	var out []byte
	for {
		_, data, err := ws.Read(ctx)
		if err != nil {
			return err
		}
		var msg struct {
			Type string          `json:"type"`
			ID   json.RawMessage `json:"id"`
			Args struct {
				Text json.RawMessage `json:"text"`
			} `json:"args"`
		}
		if err := json.Unmarshal(data, &msg); err != nil {
			return fmt.Errorf("the page cannot read %.200q: %w", data, err)
		}
		switch msg.Type {
		case "call":
			out = append(out[:0], `{"type":"call_result","id":`...)
			out = append(out, msg.ID...)
			out = append(out, `,"result":`...)
			out = append(out, msg.Args.Text...)
		case "probe": // on a machine so busy that a call takes seconds
			out = append(out[:0], `{"type":"alive","id":`...)
			out = append(out, msg.ID...)
		case "welcome", "registered":
			continue
		default:
			return fmt.Errorf("the page was told %.200q", data)
		}
		out = append(out, '}')
		if err := ws.Write(ctx, websocket.MessageText, out); err != nil {
			return err
		}
	}
}
