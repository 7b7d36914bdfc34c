package agent

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"jsbridge/manifest"
	"jsbridge/tenant"
)

// maxMessages bounds what a prompt may be filled in as.
const maxMessages = 1000

// getPrompt is the internal prompt: it has the name that was asked for.
func (s *session) getPrompt(ctx context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	name, _ := ctx.Value(nameKey{}).(string)
	r := requestOf(ctx, req).repeats(req.Params.InputResponses, req.Params.RequestState)
	entry, ok := s.view.Snapshot().FindPrompt(name)
	switch {
	case !ok && s.waits(r): // its page has gone, which the call that waits knows best
		entry.Prompt = &manifest.Prompt{Name: name}
	case !ok:
		s.h.counts.unknownCalls.Add(1)
		return nil, invalidParams("the prompt %.80q has gone with its page", name)
	default:
		if err := entry.Prompt.CheckArguments(req.Params.Arguments); err != nil {
			s.h.counts.wrongCalls.Add(1)
			return nil, invalidParams("%s: %v", name, err)
		}
	}
	args := req.Params.Arguments
	if args == nil {
		args = map[string]string{}
	}
	fields, err := json.Marshal(struct {
		Name      string            `json:"name"`
		Arguments map[string]string `json:"arguments"`
	}{entry.Prompt.Name, args})
	if err != nil {
		return nil, refusal(err)
	}
	out, err := s.run(r, errand{label: entry.Label, origin: entry.Origin, kind: "prompt ", name: name, do: func(ctx context.Context, c tenant.Call) (tenant.Answer, error) {
		c.Args, c.Prefix, c.Shown = fields, prefixOf(name), name
		return entry.Page.Prompt(ctx, tenant.GetPrompt, entry.Prompt, c)
	}})
	if err == nil && out.answer.Err != nil {
		err = s.thrown(r, entry.Prompt.Name, out.answer.Err)
	}
	switch {
	case err != nil:
		return nil, s.protocolError(name, err)
	case out.questions != nil:
		return &mcp.GetPromptResult{InputRequests: out.questions.requests, RequestState: out.questions.state}, nil
	}
	res, err := promptResult(out.answer.Result)
	if err != nil {
		entry.Complain("prompt %q: %v", entry.Prompt.Name, err)
		return nil, s.protocolError(name, fmt.Errorf("the page's prompt %q is no use: %w", entry.Prompt.Name, err))
	}
	s.publicURIs(entry.Page, messageItems(res.Messages))
	s.h.boundMessages(res.Messages)
	return res, nil
}

// promptResult reads what a page's script made of a prompt.
func promptResult(raw json.RawMessage) (*mcp.GetPromptResult, error) {
	res := new(mcp.GetPromptResult)
	if raw == nil {
		return nil, fmt.Errorf("it returned nothing: return a text, or messages")
	}
	var shape map[string]json.RawMessage
	if err := json.Unmarshal(raw, &shape); err != nil {
		return nil, fmt.Errorf("it is no object with messages")
	}
	if err := decodeOwn(shape, []string{"messages", "description", "_meta"}, res); err != nil {
		return nil, fmt.Errorf("its messages are not valid: %v", err)
	}
	if len(res.Messages) == 0 || len(res.Messages) > maxMessages {
		return nil, fmt.Errorf("it returned %d messages; 1 to %d are allowed", len(res.Messages), maxMessages)
	}
	for i, m := range res.Messages {
		if m == nil || m.Content == nil || m.Role != "user" && m.Role != "assistant" {
			return nil, fmt.Errorf("message %d (from 0) must have the role user or assistant, and content", i)
		}
		m.Content = usable(m.Content)
	}
	res.Description = manifest.Clean(res.Description, maxMessage, true)
	res.Meta = ownMeta(res.Meta)
	return res, nil
}

func messageItems(messages []*mcp.PromptMessage) []mcp.Content {
	items := make([]mcp.Content, 0, len(messages))
	for _, m := range messages {
		items = append(items, m.Content)
	}
	return items
}

func (h *Handler) boundMessages(messages []*mcp.PromptMessage) {
	left := h.opts.MaxResult
	for _, m := range messages {
		m.Content, left = h.bound(m.Content, left)
	}
}

// thrown makes an error of the protocol of what a page's function threw.
func (s *session) thrown(r *request, name string, e *tenant.PageError) error {
	if err := s.thrownOn(r, e); err != nil {
		return err
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: saidBriefly(name, e)}
}
