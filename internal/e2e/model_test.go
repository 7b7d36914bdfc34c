package e2e

//lint:file-ignore SA1019 logging, roots and sampling work in all versions, and clients will have them for long.

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestModelAndRoots(t *testing.T) {
	s := serve(t)
	tb := askPage(t, s, "P")
	s.eras(tb, func(t *testing.T, version string) {
		able := s.connectAs(version, "/mcp/w", func(o *mcp.ClientOptions) {
			_, more := human(t)
			more(o)
			o.Capabilities.RootsV2 = &mcp.RootCapabilities{}
			o.CreateMessageHandler = func(_ context.Context, r *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
				last := r.Params.Messages[len(r.Params.Messages)-1]
				reply := fmt.Sprintf("%d %s %s %d %s", len(r.Params.Messages), last.Role, last.Content.(*mcp.TextContent).Text, r.Params.MaxTokens, r.Params.SystemPrompt)
				return &mcp.CreateMessageResult{Role: "assistant", Model: "m", Content: &mcp.TextContent{Text: reply}}, nil
			}
		})
		able.sdk.AddRoots(&mcp.Root{URI: "file:///work", Name: "Work"})
		if got := able.ok("p__sample", nil); got != "1 user Hello 1000  by m, 2 assistant Hi 7 Be brief by m" {
			t.Errorf("sampling: %s", got)
		}
		if got := able.ok("p__roots", nil); got != "file:///work Work" {
			t.Errorf("roots: %s", got)
		}
		if got := fmt.Sprint(able.call("p__who", nil).StructuredContent); got != "map[capabilities:map[elicitation:map[form:map[] url:map[]] roots:map[] sampling:map[]] name:e2e version:1]" {
			t.Errorf("the page sees the agent as %s", got)
		}

		unable := s.connectAs(version, "/mcp/w", func(o *mcp.ClientOptions) { o.Capabilities = &mcp.ClientCapabilities{} })
		if got := fmt.Sprint(unable.call("p__who", nil).StructuredContent); got != "map[capabilities:map[] name:e2e version:1]" {
			t.Errorf("the page sees the agent as %s", got)
		}
		for what, want := range map[string]string{"form": "elicitation", "url": "elicitation by URL", "sample": "sampling", "roots": "roots"} {
			if got := unable.ok("p__try", map[string]any{"what": what}); !strings.HasPrefix(got, "true|NotSupportedError|-32021|") || !strings.HasSuffix(got, "does not support "+want+", so the page can't ask through it") {
				t.Errorf("%s is refused with %s", what, got)
			}
			r := take(t, unable.begin(unable.ctx(), "p__try", map[string]any{"what": what, "rethrow": true}))
			if !strings.Contains(r.said(t), "does not support "+want) {
				t.Errorf("%s, thrown on: %s", what, r.said(t))
			}
			if version == stateless && codeOf(r.err) != mcp.CodeMissingRequiredClientCapabilities || version == withSessions && (r.err != nil || !r.IsError) {
				t.Errorf("%s, thrown on: %v", what, r.err)
			}
		}
		// Questions returned in place of a result are likewise refused.
		if r := take(t, unable.begin(unable.ctx(), "p__rounds", nil)); r.err == nil && !r.IsError || !strings.Contains(r.said(t), "does not support elicitation") {
			t.Errorf("questions returned: %s", r.said(t))
		}
	})
}

func TestProgressAndLogsAroundAQuestion(t *testing.T) {
	s := serve(t)
	tb := askPage(t, s, "P")
	s.eras(tb, func(t *testing.T, version string) {
		asked, more := human(t)
		c := s.connectAs(version, "/mcp/w", more)
		params := &mcp.CallToolParams{Name: "p__busy"}
		if version == stateless {
			params.Meta = mcp.Meta{mcp.MetaKeyLogLevel: "info"}
		} else if err := c.SetLoggingLevel(c.ctx(), &mcp.SetLoggingLevelParams{Level: "info"}); err != nil {
			t.Fatal(err)
		}
		params.SetProgressToken("tok")
		done := make(chan ended, 1)
		go func() {
			r, err := c.CallTool(c.ctx(), params)
			done <- ended{r, err}
		}()
		take(t, asked).answer <- accepted
		if r := take(t, done); r.said(t) != "busy for Ada" {
			t.Fatalf("ended with %s", r.said(t))
		}
		var progress, logs []string
		waitFor(t, "all that the page said", func() bool {
			c.mu.Lock()
			defer c.mu.Unlock()
			progress, logs = nil, nil
			for _, p := range c.progress {
				progress = append(progress, fmt.Sprintf("%g of %g %s", p.Progress, p.Total, p.Message))
			}
			for _, l := range c.logs {
				logs = append(logs, fmt.Sprint(l.Level, " ", l.Data))
			}
			return len(progress) >= 22 && len(logs) >= 2
		})
		if got := []string{progress[0], progress[19], progress[20], progress[21]}; strings.Join(got, ", ") != "1 of 30 step, 20 of 30 step, 21 of 30 asked, 30 of 30 done" {
			t.Errorf("progress: %q", progress)
		}
		if got := strings.Join(logs, ", "); got != "warning map[step:before], info Ada" {
			t.Errorf("logs: %s", got)
		}
	})
}
