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

// complete suggests values for a prompt's argument or a template's variable.
func (s *session) complete(ctx context.Context, req *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
	none := &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{}}}
	ref, arg := req.Params.Ref, req.Params.Argument.Name
	ask := struct {
		Ref struct {
			Type string `json:"type"`
			Name string `json:"name,omitempty"`
			URI  string `json:"uri,omitempty"`
		} `json:"ref"`
		Argument mcp.CompleteParamsArgument `json:"argument"`
		Context  *mcp.CompleteContext       `json:"context,omitempty"`
	}{Argument: req.Params.Argument, Context: req.Params.Context}
	ask.Ref.Type = ref.Type

	var e errand
	var fields json.RawMessage
	snap := s.view.Snapshot()
	switch ref.Type {
	case "ref/prompt":
		entry, ok := snap.FindPrompt(ref.Name)
		if !ok {
			return nil, invalidParams("completion: there is no prompt %.80q", ref.Name)
		}
		i := slices.IndexFunc(entry.Prompt.Arguments, func(a manifest.PromptArgument) bool { return a.Name == arg })
		if i < 0 {
			return nil, invalidParams("completion: the prompt %.80q has no argument %.80q", ref.Name, arg)
		}
		if !entry.Prompt.Arguments[i].Completes {
			return none, nil
		}
		ask.Ref.Name = entry.Prompt.Name
		e = errand{label: entry.Label, origin: entry.Origin, do: func(ctx context.Context, c tenant.Call) (tenant.Answer, error) {
			c.Args, c.Prefix, c.Shown = fields, prefixOf(ref.Name), ref.Name
			return entry.Page.Prompt(ctx, tenant.Complete, entry.Prompt, c)
		}}
	case "ref/resource":
		entry, ok := snap.FindTemplate(ref.URI)
		if !ok {
			if _, static := snap.FindResource(ref.URI); static {
				return none, nil
			}
			return nil, invalidParams("completion: there is no resource template %.200q", ref.URI)
		}
		if !slices.Contains(entry.Resource.Completes, arg) {
			return none, nil
		}
		ask.Ref.URI = entry.Resource.URI
		e = errand{label: entry.Label, origin: entry.Origin, do: func(ctx context.Context, c tenant.Call) (tenant.Answer, error) {
			c.Args, c.Shown = fields, ref.URI
			return entry.Page.Resource(ctx, tenant.Complete, entry.Resource, c)
		}}
	default:
		return nil, invalidParams("completion: %.40q is no kind of reference; there are ref/prompt and ref/resource", ref.Type)
	}
	var err error
	if fields, err = json.Marshal(ask); err != nil {
		return nil, refusal(err)
	}
	e.quiet = true
	answer, err := s.watched(requestOf(ctx, req), e)
	if err == nil && answer.Err != nil {
		err = errors.New(saidBriefly(arg, answer.Err))
	}
	if err != nil {
		return nil, s.protocolError("completion", err)
	}
	return completion(answer.Result)
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
