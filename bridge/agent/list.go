package agent

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"jsbridge/tenant"
)

// pageSize is how many items one answer to a list request has.
const pageSize = 1000

// catalog is a snapshot as clients read it.
type catalog struct {
	tools     []*mcp.Tool // built-ins first
	prompts   []*mcp.Prompt
	resources []*mcp.Resource
	templates []*mcp.ResourceTemplate
}

// publish makes the catalog of a snapshot, built-ins included.
func (h *Handler) publish(snap *tenant.Snapshot) any {
	entries := snap.Entries()
	c := &catalog{
		tools:     make([]*mcp.Tool, 0, len(h.builtinTools)+len(entries)),
		prompts:   []*mcp.Prompt{}, // these must not be null
		resources: []*mcp.Resource{},
		templates: []*mcp.ResourceTemplate{},
	}
	c.tools = append(c.tools, h.builtinTools...)
	if h.opts.HidePageTools {
		entries = nil
	}
	for _, e := range entries {
		c.tools = append(c.tools, e.Derive(toolOf).(*mcp.Tool))
	}
	for _, e := range snap.Prompts() {
		c.prompts = append(c.prompts, e.Derive(promptOf).(*mcp.Prompt))
	}
	for _, e := range snap.Resources() {
		if e.Resource.Template {
			c.templates = append(c.templates, e.Derive(templateOf).(*mcp.ResourceTemplate))
		} else {
			c.resources = append(c.resources, e.Derive(resourceOf).(*mcp.Resource))
		}
	}
	return c
}

func (s *session) catalog() (*catalog, *tenant.Snapshot) {
	snap := s.view.Snapshot()
	return snap.Derive(s.h.publish).(*catalog), snap
}

// listTools answers from the snapshot: built-ins first, for clients that cut the
// list, then the pages' tools by name. The SDK's own answer has what the protocol
// version wants; its list is one tool long.
func (s *session) listTools(ctx context.Context, next mcp.MethodHandler, method string, r *mcp.ListToolsRequest) (mcp.Result, error) {
	var cursor string
	if r.Params != nil { // they are this request's own
		cursor, r.Params.Cursor = r.Params.Cursor, ""
	}
	out, err := listResult[*mcp.ListToolsResult](next(ctx, method, r))
	if err != nil {
		return nil, err
	}
	all, snap := s.catalog()
	out.Tools, out.NextCursor, err = pageOf(all.tools, cursor, len(s.h.builtinTools), func(t *mcp.Tool) string { return t.Name })
	if err == nil && cursor == "" {
		s.listed(tenant.Tools, snap)
		s.warnOfMany(len(all.tools))
	}
	return out, err
}

// manyTools is what some clients take in all; others take fewer still.
const manyTools = 128

// warnOfMany says once in a session that its list is long: clients leave out the
// rest without a word, or have each request refused by their model.
func (s *session) warnOfMany(tools int) {
	if tools > manyTools && !s.warned.Swap(true) {
		s.mu.Lock()
		client := nameOf(s.client)
		s.mu.Unlock()
		s.h.log.Warn("a long list of tools: some clients take no more than 128, or 40; have pages meet in channels, or leave their tools out of the list (--hide-page-tools)", "tools", tools, "pages", len(s.view.Pages()), "client", client)
	}
}

func (s *session) listPrompts(ctx context.Context, next mcp.MethodHandler, method string, r *mcp.ListPromptsRequest) (mcp.Result, error) {
	var cursor string
	if r.Params != nil { // they are this request's own
		cursor, r.Params.Cursor = r.Params.Cursor, ""
	}
	out, err := listResult[*mcp.ListPromptsResult](next(ctx, method, r))
	if err != nil {
		return nil, err
	}
	all, snap := s.catalog()
	out.Prompts, out.NextCursor, err = pageOf(all.prompts, cursor, 0, func(p *mcp.Prompt) string { return p.Name })
	if err == nil && cursor == "" {
		s.listed(tenant.Prompts, snap)
	}
	return out, err
}

func (s *session) listResources(ctx context.Context, next mcp.MethodHandler, method string, r *mcp.ListResourcesRequest) (mcp.Result, error) {
	var cursor string
	if r.Params != nil { // they are this request's own
		cursor, r.Params.Cursor = r.Params.Cursor, ""
	}
	out, err := listResult[*mcp.ListResourcesResult](next(ctx, method, r))
	if err != nil {
		return nil, err
	}
	all, _ := s.catalog() // not noted as read: the templates are told of with them
	out.Resources, out.NextCursor, err = pageOf(all.resources, cursor, 0, func(r *mcp.Resource) string { return r.URI })
	return out, err
}

func (s *session) listTemplates(ctx context.Context, next mcp.MethodHandler, method string, r *mcp.ListResourceTemplatesRequest) (mcp.Result, error) {
	var cursor string
	if r.Params != nil { // they are this request's own
		cursor, r.Params.Cursor = r.Params.Cursor, ""
	}
	out, err := listResult[*mcp.ListResourceTemplatesResult](next(ctx, method, r))
	if err != nil {
		return nil, err
	}
	all, _ := s.catalog()
	out.ResourceTemplates, out.NextCursor, err = pageOf(all.templates, cursor, 0, func(t *mcp.ResourceTemplate) string { return t.URITemplate })
	return out, err
}

// listResult is the SDK's own answer to a list request.
func listResult[R mcp.Result](res mcp.Result, err error) (R, error) {
	out, ok := res.(R)
	if err == nil && !ok {
		err = refusal(fmt.Errorf("unexpected list result %T", res))
	}
	return out, err
}

// pageOf gives the items after a cursor. Those behind the pinned ones are sorted
// by name, so that a cursor stays good while others come and go.
func pageOf[T any](all []T, cursor string, pinned int, name func(T) string) (items []T, nextCursor string, err error) {
	start := 0
	if cursor != "" {
		after, err := decodeCursor(cursor)
		if err != nil {
			return nil, "", err
		}
		start, _ = slices.BinarySearchFunc(all[pinned:], after, func(t T, after string) int { return strings.Compare(name(t), after) })
		start += pinned
		if start < len(all) && name(all[start]) == after {
			start++
		}
	}
	end := min(len(all), start+pageSize)
	if end < len(all) {
		nextCursor = encodeCursor(name(all[end-1]))
	}
	return all[start:end], nextCursor, nil
}

func encodeCursor(last string) string {
	return base64.RawURLEncoding.EncodeToString([]byte("after:" + last))
}

func decodeCursor(c string) (string, error) {
	b, err := base64.RawURLEncoding.DecodeString(c)
	last, ok := strings.CutPrefix(string(b), "after:")
	if err != nil || !ok || last == "" {
		return "", invalidParams("invalid cursor: use the nextCursor of an earlier answer as it is")
	}
	return last, nil
}

// toolOf is what an agent sees of a page's tool. The manifest has checked the
// shapes; what does not decode is left out.
func toolOf(e tenant.Entry) any {
	t := &mcp.Tool{
		Name:        e.Name,
		Title:       e.Tool.Title,
		Description: attributed(e.Tool.Description, "Described by and run in", e.Label, e.Origin),
		InputSchema: e.Tool.InputSchema,
		Icons:       iconsOf(e.Tool.Icons),
	}
	if e.Tool.OutputSchema != nil {
		t.OutputSchema = e.Tool.OutputSchema
	}
	if e.Tool.Annotations != nil {
		var a mcp.ToolAnnotations
		if json.Unmarshal(e.Tool.Annotations, &a) == nil {
			t.Annotations = &a
		}
	}
	return t
}

func promptOf(e tenant.PromptEntry) any {
	p := &mcp.Prompt{
		Name:        e.Name,
		Title:       e.Prompt.Title,
		Description: attributed(e.Prompt.Description, "Written by", e.Label, e.Origin),
		Icons:       iconsOf(e.Prompt.Icons),
	}
	for _, a := range e.Prompt.Arguments {
		p.Arguments = append(p.Arguments, &mcp.PromptArgument{Name: a.Name, Title: a.Title, Description: a.Description, Required: a.Required})
	}
	return p
}

func resourceOf(e tenant.ResourceEntry) any {
	r := &mcp.Resource{
		URI:         e.URI,
		Name:        e.Resource.Name,
		Title:       e.Resource.Title,
		Description: attributed(e.Resource.Description, "From", e.Label, e.Origin),
		MIMEType:    e.Resource.MIMEType,
		Icons:       iconsOf(e.Resource.Icons),
		Annotations: annotationsOf(e.Resource.Annotations),
	}
	if e.Resource.Size != nil {
		r.Size = *e.Resource.Size
	}
	return r
}

func templateOf(e tenant.ResourceEntry) any {
	return &mcp.ResourceTemplate{
		URITemplate: e.URI,
		Name:        e.Resource.Name,
		Title:       e.Resource.Title,
		Description: attributed(e.Resource.Description, "From", e.Label, e.Origin),
		MIMEType:    e.Resource.MIMEType,
		Icons:       iconsOf(e.Resource.Icons),
		Annotations: annotationsOf(e.Resource.Annotations),
	}
}

func iconsOf(raw json.RawMessage) (icons []mcp.Icon) {
	if raw == nil || json.Unmarshal(raw, &icons) != nil {
		return nil
	}
	return icons
}

func annotationsOf(raw json.RawMessage) *mcp.Annotations {
	var a mcp.Annotations
	if raw == nil || json.Unmarshal(raw, &a) != nil {
		return nil
	}
	return &a
}

// attributed adds to what the page says that it is the page who says it, so that an
// agent can tell it from jsbridge's own words.
func attributed(description, what, label, origin string) string {
	switch origin {
	case "":
		origin = "no web origin"
	case "null":
		origin = "an opaque origin (a file or sandboxed page)"
	}
	said := fmt.Sprintf("[%s the web page %q, %s]", what, label, origin)
	if description == "" {
		return said
	}
	return description + "\n\n" + said
}
