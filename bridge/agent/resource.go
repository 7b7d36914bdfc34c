package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"jsbridge/manifest"
	"jsbridge/tenant"
)

// maxContents bounds what one resource may consist of.
const maxContents = 1000

// readResource is the internal resource: it has the URI that was asked for.
func (s *session) readResource(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	uri, _ := ctx.Value(nameKey{}).(string)
	r := requestOf(ctx, req).repeats(req.Params.InputResponses, req.Params.RequestState)
	at, ok := s.view.Snapshot().FindResource(uri)
	switch {
	case !ok && s.waits(r): // its page has gone, which the call that waits knows best
		at = tenant.Located{ResourceEntry: tenant.ResourceEntry{URI: uri, Resource: &manifest.Resource{URI: uri}}, Own: uri}
	case !ok:
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
	out, err := s.run(r, errand{label: at.Label, origin: at.Origin, kind: "resource ", name: uri, do: func(ctx context.Context, c tenant.Call) (tenant.Answer, error) {
		c.Args, c.Shown = fields, uri
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
		at.Complain("resource %q: %v", at.Resource.URI, err)
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
	var shape map[string]json.RawMessage
	if err := json.Unmarshal(raw, &shape); err != nil {
		return nil, errors.New("it is no object with contents")
	}
	if err := decodeOwn(shape, []string{"contents", "_meta"}, res); err != nil {
		return nil, fmt.Errorf("its contents are not valid: %v", err)
	}
	if res.Contents == nil || len(res.Contents) > maxContents {
		return nil, fmt.Errorf("it returned %d contents; at most %d are allowed", len(res.Contents), maxContents)
	}
	left := s.h.opts.MaxResult
	public := s.publicForm(at.Page)
	for i, c := range res.Contents {
		if c == nil {
			return nil, fmt.Errorf("content %d (from 0) is null", i)
		}
		if size := len(c.Text) + len(c.Blob); size > left {
			return nil, fmt.Errorf("it is larger than the limit of %d bytes (--max-result); offer a part of it", s.h.opts.MaxResult)
		}
		left -= len(c.Text) + len(c.Blob)
		if c.URI == "" || c.URI == at.Own {
			c.URI = uri
		} else {
			c.URI = public(c.URI)
		}
		if c.MIMEType = manifest.Clean(c.MIMEType, 128, false); c.MIMEType == "" {
			c.MIMEType = at.Resource.MIMEType
		}
		c.Meta = ownMeta(c.Meta)
	}
	res.Meta = ownMeta(res.Meta)
	return res, nil
}

// publicForm gives the published form of URIs that a page uses for itself: of its own
// resources, and of what is relative. Others stay.
func (s *session) publicForm(p *tenant.Page) func(own string) string {
	if p == nil {
		return func(own string) string { return own }
	}
	return publicForm(s.view.Info(p))
}

func publicForm(info tenant.Info) func(own string) string {
	published := make(map[string]string)
	for _, e := range info.Resources {
		if !e.Resource.Template {
			published[e.Resource.URI] = e.URI
		}
	}
	return func(own string) string {
		if uri := published[own]; uri != "" {
			return uri
		}
		if u, err := url.Parse(own); err != nil || u.IsAbs() {
			return own
		}
		return "page://" + info.Prefix + "/" + strings.TrimLeft(own, "/")
	}
}

// publicURIs gives the links and resources among a page's items their public URIs.
func (s *session) publicURIs(p *tenant.Page, items []mcp.Content) {
	publicURIs(items, func() func(string) string { return s.publicForm(p) })
}

// publicURIs is that for any view; form gives the form, if there is need of it.
func publicURIs(items []mcp.Content, form func() func(own string) string) {
	var public func(string) string
	for _, item := range items {
		var uri *string
		switch c := item.(type) {
		case *mcp.ResourceLink:
			uri = &c.URI
		case *mcp.EmbeddedResource:
			if c.Resource != nil {
				uri = &c.Resource.URI
			}
		}
		if uri == nil {
			continue
		}
		if public == nil { // most results have none of them
			public = form()
		}
		*uri = public(*uri)
	}
}

func (s *session) subscribe(_ context.Context, req *mcp.SubscribeRequest) error {
	uri := req.Params.URI
	if s.shared { // a stateless client subscribes to what may come, too
		if err := s.view.Watch(uri); err != nil {
			return refusal(err)
		}
		return nil
	}
	if _, ok := s.view.Snapshot().FindResource(uri); !ok {
		return mcp.ResourceNotFoundError(uri)
	}
	s.subscribing.Lock()
	defer s.subscribing.Unlock()
	if s.subscriptions[uri] { // a client may say the same twice
		return nil
	}
	if err := s.view.Watch(uri); err != nil {
		return refusal(err)
	}
	if s.subscriptions == nil {
		s.subscriptions = make(map[string]bool)
	}
	s.subscriptions[uri] = true
	return nil
}

func (s *session) unsubscribe(_ context.Context, req *mcp.UnsubscribeRequest) error {
	uri := req.Params.URI
	if s.shared {
		s.view.Unwatch(uri)
		return nil
	}
	s.subscribing.Lock()
	defer s.subscribing.Unlock()
	if s.subscriptions[uri] {
		delete(s.subscriptions, uri)
		s.view.Unwatch(uri)
	}
	return nil
}
