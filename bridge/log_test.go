package bridge

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"jsbridge/bridge/dashboard"
)

// logged keeps what is logged.
type logged struct {
	more chan struct{} // an entry once there is more
	mu   sync.Mutex
	buf  bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.more <- struct{}{}:
	default:
	}
	return l.buf.Write(p)
}

type line map[string]any

func (l *logged) lines(t *testing.T) (all []line, raw string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	raw = l.buf.String()
	for text := range strings.Lines(raw) {
		var one line
		if err := json.Unmarshal([]byte(text), &one); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		all = append(all, one)
	}
	return all, raw
}

// wait gives the first line that says this, once it is there.
func (l *logged) wait(t *testing.T, msg string) line {
	t.Helper()
	for ctx := within(t); ; {
		all, raw := l.lines(t)
		if i := slices.IndexFunc(all, func(one line) bool { return one["msg"] == msg }); i >= 0 {
			return all[i]
		}
		select {
		case <-l.more:
		case <-ctx.Done():
			t.Fatalf("nobody logged %q:\n%s", msg, raw)
		}
	}
}

func TestLogsNameConnectionSessionAndCall(t *testing.T) {
	out := &logged{more: make(chan struct{}, 1)}
	b := newBoard(t, Options{Logger: slog.New(slog.NewJSONHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	v := b.watch("")
	ids := make(chan string, 10)
	var p *tab
	p = b.open("one", near, someTools, func(f map[string]any) any {
		ids <- f["id"].(string)
		if args := fmt.Sprint(f["args"]); strings.Contains(args, "41") {
			p.say(fmt.Sprintf(`{"type":"call_result","id":%q,"result":"secret result"}`, f["id"]))
			p.say(fmt.Sprintf(`{"type":"call_result","id":%q,"result":"secret result"}`, f["id"])) // once too often
		}
		return nil
	})
	page := v.connection("one").ID
	a := b.agent("/mcp")
	session := v.sees("the session", func(s *dashboard.State) bool { return len(s.Sessions) == 1 }).Sessions[0].ID
	call := func(n int) {
		_, _ = a.CallTool(t.Context(), &mcp.CallToolParams{Name: "one__add", Arguments: map[string]any{"n": n}})
	}
	call(41)
	first := receive(t, "a call", ids)
	has := func(msg string, want line) {
		t.Helper()
		got := out.wait(t, msg)
		for _, field := range []string{"connection", "session", "call"} {
			if got[field] != want[field] {
				t.Errorf("%s: %s is %v, want %v", msg, field, got[field], want[field])
			}
		}
	}
	all := line{"connection": page, "session": session, "call": first}
	has("page connected", line{"connection": page})
	has("page registered", line{"connection": page})
	has("session opened", line{"session": session})
	has("call begun", line{"connection": page, "session": session})
	has("call sent", all)
	has("call ended", all)
	has("late answer dropped", line{"connection": page, "call": first})
	if end := out.wait(t, "call ended"); end["outcome"] != "ok" || end["level"] != "DEBUG" {
		t.Errorf("the end was logged as %v", end)
	} else if s, ok := end["seconds"].(float64); !ok || s < 0 || s > patience.Seconds() {
		t.Errorf("it took %v seconds", end["seconds"])
	}

	go call(42)
	second := receive(t, "a call", ids)
	s := v.sees("the call", func(s *dashboard.State) bool { return len(s.Calls) == 2 && s.Counters.Running == 1 })
	b.do("POST", "/api/calls/"+s.Calls[1].ID+"/cancel", struct{}{}, 204)
	all["call"] = second
	has("call cancelled in the dashboard", all)
	has("call failed", all)

	b.do("POST", "/api/connections/"+page+"/disconnect", struct{}{}, 204)
	has("page disconnected in the dashboard", line{"connection": page})
	has("page disconnected", line{"connection": page})
	_ = a.Close()
	has("session ended", line{"session": session})

	_, raw := out.lines(t)
	for _, secret := range []string{"secret result", `"n":41`, ":41}", a.ID(), b.token} {
		if secret != "" && strings.Contains(raw, secret) {
			t.Errorf("%q is in the log:\n%s", secret, raw)
		}
	}
	named := []string{"connection", "session", "call"}
	for _, id := range []string{page, session, first, second} {
		lines, _ := out.lines(t)
		for _, one := range lines {
			for field, v := range one {
				if v == id && !slices.Contains(named, field) {
					t.Errorf("%s is called %q in %v", id, field, one)
				}
			}
		}
	}
}
