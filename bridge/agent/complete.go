package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"jsbridge/manifest"
	"jsbridge/tenant"
)

const (
	maxValues = 100     // MCP, completion
	maxValue  = 1 << 10 // bytes
)

// suggesting is what a page is told of a completion.
type suggesting struct {
	Ref struct {
		Type string `json:"type"`
		Name string `json:"name,omitempty"`
		URI  string `json:"uri,omitempty"`
	} `json:"ref"`
	Argument mcp.CompleteParamsArgument `json:"argument"`
	Context  *mcp.CompleteContext       `json:"context,omitempty"`
}

// complete suggests values for a prompt's argument or a template's variable.
func (s *session) complete(ctx context.Context, req *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
	ask := suggesting{Argument: req.Params.Argument, Context: req.Params.Context}
	ask.Ref.Type = req.Params.Ref.Type
	var e errand
	var completes bool
	var err error
	switch ref := req.Params.Ref; ref.Type {
	case "ref/prompt":
		e, completes, err = s.completePrompt(&ask, ref.Name)
	case "ref/resource":
		e, completes, err = s.completeTemplate(&ask, ref.URI)
	default:
		err = invalidParams("completion: %.40q is no kind of reference; there are ref/prompt and ref/resource", ref.Type)
	}
	if err != nil {
		return nil, err
	}
	if !completes {
		return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{}}}, nil
	}
	answer, err := s.watched(requestOf(ctx, req), e)
	if err == nil && answer.Err != nil {
		err = errors.New(saidBriefly(ask.Argument.Name, answer.Err))
	}
	if err != nil {
		return nil, s.protocolError("completion", err)
	}
	return completion(answer.Result)
}

// completePrompt finds the argument of a prompt, and whether its page suggests
// values.
func (s *session) completePrompt(ask *suggesting, name string) (e errand, completes bool, err error) {
	entry, ok := s.view.Snapshot().FindPrompt(name)
	if !ok {
		return e, false, invalidParams("completion: there is no prompt %.80q", name)
	}
	arg := ask.Argument.Name
	i := slices.IndexFunc(entry.Prompt.Arguments, func(a manifest.PromptArgument) bool { return a.Name == arg })
	if i < 0 {
		return e, false, invalidParams("completion: the prompt %.80q has no argument %.80q", name, arg)
	}
	ask.Ref.Name = entry.Prompt.Name
	fields, err := json.Marshal(ask)
	if err != nil {
		return e, false, refusal(err)
	}
	return errand{label: entry.Label, origin: entry.Origin, quiet: true, do: func(ctx context.Context, c tenant.Call) (tenant.Answer, error) {
		c.Args, c.Prefix, c.Shown = fields, prefixOf(name), name
		return entry.Page.Prompt(ctx, tenant.Complete, entry.Prompt, c)
	}}, entry.Prompt.Arguments[i].Completes, nil
}

// completeTemplate finds the variable of a template, likewise.
func (s *session) completeTemplate(ask *suggesting, template string) (e errand, completes bool, err error) {
	snap := s.view.Snapshot()
	entry, ok := snap.FindTemplate(template)
	if !ok {
		if _, static := snap.FindResource(template); static {
			return e, false, nil
		}
		return e, false, invalidParams("completion: there is no resource template %.200q", template)
	}
	ask.Ref.URI = entry.Resource.URI
	fields, err := json.Marshal(ask)
	if err != nil {
		return e, false, refusal(err)
	}
	return errand{label: entry.Label, origin: entry.Origin, quiet: true, do: func(ctx context.Context, c tenant.Call) (tenant.Answer, error) {
		c.Args, c.Shown = fields, template
		return entry.Page.Resource(ctx, tenant.Complete, entry.Resource, c)
	}}, slices.Contains(entry.Resource.Completes, ask.Argument.Name), nil
}

// completion reads what a page's script made of the suggestions.
func completion(raw json.RawMessage) (*mcp.CompleteResult, error) {
	var given struct {
		Values  []string `json:"values"`
		Total   float64  `json:"total"`
		HasMore bool     `json:"hasMore"`
	}
	if raw == nil || json.Unmarshal(raw, &given) != nil {
		return nil, refusal(fmt.Errorf("the page's suggestions can't be read: they must be a list of texts"))
	}
	out := mcp.CompletionResultDetails{Values: []string{}, HasMore: given.HasMore}
	for _, v := range given.Values {
		if len(out.Values) == maxValues {
			out.HasMore = true
			break
		}
		if v = manifest.Clean(v, 0, false); v != "" && len(v) <= maxValue { // a part of one is another value
			out.Values = append(out.Values, v)
		}
	}
	if given.Total >= float64(len(out.Values)) && given.Total <= 1e9 {
		out.Total = int(given.Total)
	}
	return &mcp.CompleteResult{Completion: out}, nil
}
