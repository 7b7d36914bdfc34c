package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/coder/websocket"
)

// toolName is what the page calls its only tool.
const toolName = "echo"

// echoSchema takes one text.
const echoSchema = `{"type":"object","properties":{"text":{"type":"string","description":"what to give back"}},"required":["text"]}`

// echoParams is echoSchema as every page script may say it.
const echoParams = `{"text":{"type":"string","description":"what to give back"}}`

// frameLimit is what either end of a page's socket reads at most.
const frameLimit = 16 << 20

// What a page may speak.
const (
	pageV1  = "v1"
	pageOld = "old" // only what pages without v=1 in their address know
)

// describe is the tool's description after some number of changes.
func describe(changes int) string {
	return fmt.Sprintf("Gives the text back. This is version %d.", changes)
}

// playPage is the scripted page: it registers its tools and answers each call at
// once, in the order of arrival. Each line on control changes its one tool and
// registers it again. The last argument is a number of tools that are only listed,
// 0 for the one that is called.
func playPage(url, form, name, tools string, control io.Reader) error {
	number, err := strconv.Atoi(tools)
	if err != nil {
		return err
	}
	ctx := context.Background()
	ws, _, err := websocket.Dial(ctx, url, nil)
	if err != nil {
		return err
	}
	defer func() { _ = ws.CloseNow() }()
	ws.SetReadLimit(frameLimit)
	register := func(changes int) error {
		declared := echoTool(changes, form)
		if number > 0 {
			declared = listTools(name, number)
		}
		return ws.Write(ctx, websocket.MessageText, registration(form, name, declared))
	}
	if err := register(0); err != nil {
		return err
	}
	go func() {
		lines := bufio.NewScanner(control)
		for changes := 1; lines.Scan(); changes++ {
			if register(changes) != nil {
				break // the reader meets the same end and says so
			}
		}
		if lines.Err() == nil {
			os.Exit(0) // whoever started this process is gone
		}
	}()
	return answerCalls(ctx, ws)
}

// registration is the page's first message, and the one after each change.
func registration(form, name, tools string) []byte {
	own := ""
	if form == pageV1 {
		own = fmt.Sprintf(`"title":%q,"url":"http://localhost/bench",`, name)
	}
	return fmt.Appendf(nil, `{"type":"register_tools","appLabel":%q,%s"tools":[%s]}`, name, own, tools)
}

func echoTool(changes int, form string) string {
	params := `"inputSchema":` + echoSchema
	if form == pageOld {
		params = `"params":` + echoParams
	}
	return fmt.Sprintf(`{"name":%q,"description":%q,"source":"host",%s}`, toolName, describe(changes), params)
}

// listTools are tools like those of real pages, each a little different.
func listTools(name string, number int) string {
	var b strings.Builder
	for i := range number {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"name":"tool_%04d","description":"Finds the entries of list %d of %s that have the text, and gives their ids and titles.","source":"host",`+
			`"params":{"text":{"type":"string","description":"what to look for, case ignored"},"limit":{"type":"number","description":"how many at most","optional":true},`+
			`"archived":{"type":"boolean","description":"looks through archived ones as well","optional":true}}}`, i, i, name)
	}
	return b.String()
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
		case "welcome", "registered", "init":
			continue
		case "reinit", "update", "waiting": // another use of the older protocol
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
