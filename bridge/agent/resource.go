package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"jsbridge/manifest"
	"jsbridge/tenant"
)

// maxContents bounds what one resource may consist of.
const maxContents = 1000

// readResource is the internal resource: it has the URI that was asked for.
func (s *session) readResource(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	uri, _ := ctx.Value(nameKey{}).(string)
	at, ok := s.view.Snapshot().FindResource(uri)
	if !ok {
		return nil, mcp.ResourceNotFoundError(uri)
	}
	asked := struct {
		URI       string            `json:"uri"`
		Template  string            `json:"uriTemplate,omitempty"`
		Variables map[string]string `json:"variables,omitempty"`
	}{URI: at.Own, Variables: at.Variables}
	if at.Resource.Template {
		asked.Template = at.Resource.URI
	}
	fields, err := json.Marshal(asked)
	if err != nil {
		return nil, refusal(err)
	}
	r := requestOf(ctx, req).repeats(req.Params.InputResponses, req.Params.RequestState)
	out, err := s.run(r, errand{at.Label, at.Origin, "resource " + uri, func(ctx context.Context, c tenant.Call) (tenant.Answer, error) {
		c.Args = fields
		return at.Page.Resource(ctx, tenant.ReadResource, at.Resource, c)
	}})
	if err == nil && out.answer.Err != nil {
		err = s.thrown(r, at.Own, out.answer.Err)
	}
	switch {
	case err != nil:
		return nil, s.protocolError(uri, err)
	case out.questions != nil:
		return &mcp.ReadResourceResult{InputRequests: out.questions.requests, RequestState: out.questions.state}, nil
	}
	res, err := s.resourceResult(out.answer.Result, uri, at)
	if err != nil {
		at.Page.Complain("resource %q: %v", at.Resource.URI, err)
		return nil, s.protocolError(uri, fmt.Errorf("the page's resource %q is no use: %w", at.Own, err))
	}
	return res, nil
}

// resourceResult reads what a page's script made of a resource.
func (s *session) resourceResult(raw json.RawMessage, uri string, at tenant.Located) (*mcp.ReadResourceResult, error) {
	res := new(mcp.ReadResourceResult)
	if raw == nil {
		return nil, errors.New("it returned nothing: return a text, binary data or JSON")
	}
	if err := json.Unmarshal(raw, res); err != nil {
		return nil, fmt.Errorf("its contents are not valid: %v", err)
	}
	if res.Contents == nil || len(res.Contents) > maxContents {
		return nil, fmt.Errorf("it returned %d contents; at most %d are allowed", len(res.Contents), maxContents)
	}
	left := s.h.opts.MaxResult
	for i, c := range res.Contents {
		if c == nil {
			return nil, fmt.Errorf("content %d (from 0) is null", i)
		}
		if size := len(c.Text) + len(c.Blob); size > left {
			return nil, fmt.Errorf("it is larger than the limit of %d bytes (--max-result); offer a part of it", s.h.opts.MaxResult)
		}
		left -= len(c.Text) + len(c.Blob)
		c.URI = s.publicURI(c.URI, uri, at)
		if c.MIMEType = manifest.Clean(c.MIMEType, 128, false); c.MIMEType == "" {
			c.MIMEType = at.Resource.MIMEType
		}
		c.Meta = ownMeta(c.Meta)
	}
	res.InputRequests, res.RequestState = nil, ""
	res.Cacheable = mcp.Cacheable{}
	res.Meta = ownMeta(res.Meta)
	return res, nil
}

// publicURI is the published form of a URI that the page gave one of its contents:
// another resource of its own, else the one that was asked for.
func (s *session) publicURI(own, asked string, at tenant.Located) string {
	if own == "" || own == at.Own {
		return asked
	}
	_, _, resources := s.view.Snapshot().Of(at.Page)
	for _, e := range resources {
		if !e.Resource.Template && e.Resource.URI == own {
			return e.URI
		}
	}
	return asked
}

func (s *session) subscribe(_ context.Context, req *mcp.SubscribeRequest) error {
	uri := req.Params.URI
	if s.teller != nil { // a stateless client subscribes to what may come, too
		if _, ok := s.view.Snapshot().FindResource(uri); !ok {
			return mcp.ResourceNotFoundError(uri)
		}
		if !s.subscribed(uri, true) {
			return nil
		}
	}
	if err := s.view.Watch(uri); err != nil {
		s.subscribed(uri, false)
		return refusal(err)
	}
	return nil
}

func (s *session) unsubscribe(_ context.Context, req *mcp.UnsubscribeRequest) error {
	uri := req.Params.URI
	if s.teller == nil || s.subscribed(uri, false) {
		s.view.Unwatch(uri)
	}
	return nil
}

// subscribed notes what a session's client is subscribed to, and tells whether
// that is new: it may say the same twice.
func (s *session) subscribed(uri string, on bool) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.subscriptions[uri] == on {
		return false
	}
	if on {
		if s.subscriptions == nil {
			s.subscriptions = make(map[string]bool)
		}
		s.subscriptions[uri] = true
	} else {
		delete(s.subscriptions, uri)
	}
	return true
}
