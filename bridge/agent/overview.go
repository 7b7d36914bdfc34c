package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"time"

	"jsbridge/manifest"
	"jsbridge/tenant"
)

// What the dashboard asks of this side.

// Session describes a session, for people.
type Session struct {
	// ID is no secret: nothing but this description can be had by it.
	ID string
	// Client is who opened it. Of stateless clients, which share a session, it is
	// the last one.
	Client   tenant.Agent
	Protocol string // its version, "" if not known yet
	// Stateless clients share the session of their workspace.
	Stateless bool
	Workspace string // its key, "" for a tenant of its own
	Since     time.Time
	View      *tenant.View
}

// List describes the sessions that have a view, oldest first.
func (h *Handler) List() []Session {
	h.mu.Lock()
	all := slices.Concat(slices.Collect(maps.Values(h.sessions)), slices.Collect(maps.Values(h.shared)))
	h.mu.Unlock()
	list := make([]Session, 0, len(all))
	for _, s := range all {
		if d, ok := s.describe(); ok {
			list = append(list, d)
		}
	}
	slices.SortFunc(list, func(a, b Session) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.ID, b.ID)) })
	return list
}

func (s *session) describe() (Session, bool) {
	s.opening.Lock()
	view := s.view
	s.opening.Unlock()
	if view == nil {
		return Session{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return Session{ID: s.id, Client: s.client, Protocol: s.version, Stateless: s.shared, Workspace: s.key, Since: s.since, View: view}, true
}

// met notes who speaks, and in which version; what is empty is left as it was.
func (s *session) met(client tenant.Agent, protocol string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, version := s.client, s.version
	if client.Name != "" {
		s.client = tenant.Agent{Name: client.Name, Version: client.Version}
	}
	s.version = manifest.Clean(cmp.Or(protocol, s.version), 32, false)
	if s.version != version || s.client.Name != before.Name || s.client.Version != before.Version {
		s.h.registry.Note()
	}
}

func (h *Handler) nextID() string { return "s" + strconv.FormatUint(h.ids.Add(1), 10) }

// Run calls a tool for a human: there is no client that the page could ask
// anything. The result is MCP's of tools/call; whatever goes wrong is one with
// isError.
func (h *Handler) Run(ctx context.Context, p *tenant.Page, e tenant.Entry, args json.RawMessage) (json.RawMessage, error) {
	checked, err := e.Tool.CheckArguments(args)
	if err != nil {
		h.counts.wrongCalls.Add(1)
		return json.Marshal(failure(fmt.Sprintf("%s was not called: %v", e.Name, err)))
	}
	answer, err := p.Call(ctx, e.Tool, tenant.Call{Args: checked, Shown: e.Name, Agent: tenant.Agent{Name: "jsbridge dashboard", Version: h.opts.Version}, Progress: true})
	if err != nil {
		return json.Marshal(failure(err.Error()))
	}
	if answer.Err == nil {
		if q, err := h.questionsIn(answer.Result); q != nil || err != nil {
			return json.Marshal(failure(fmt.Sprintf("%s wants to ask an MCP client something before it answers, which can't be done from here", e.Name)))
		}
	}
	res, offence := h.result(e.Tool, answer)
	if offence != nil {
		e.Complain("tool %q: %v", e.Tool.Name, offence)
	}
	publicURIs(res.Content, func() func(string) string { return publicForm(p.Info()) })
	return json.Marshal(res)
}

// Snippet is the line that connects a page to where a connect string says: an
// import, a script tag ("script"), or all of the script ("inline"). base is the
// server's address.
func (h *Handler) Snippet(base, connect, form string) (string, error) {
	script := fmt.Sprintf("%s/main.js?server=%s&tenant=%s", base, url.QueryEscape(base), url.QueryEscape(connect))
	switch form {
	case "script":
		return fmt.Sprintf(`<script type="module" src="%s"></script>`, html.EscapeString(script)), nil
	case "inline":
		if h.opts.Inline == "" {
			return "", fmt.Errorf("this jsbridge has no inline form of its script: use the form import or script")
		}
		return fmt.Sprintf("%s(%q,%q);", h.opts.Inline, base, connect), nil
	}
	return fmt.Sprintf(`import("%s");`, script), nil
}
