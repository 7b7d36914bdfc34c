package dashboard

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"jsbridge/tenant"
)

// directory says which session or workspace a tenant is of: tenants' own ids are
// capabilities, which are shown to nobody.
type directory struct {
	sessions   []Session
	own        map[*tenant.Tenant]string // ids of sessions with a tenant of their own
	workspaces map[string]string         // shown keys by tenant id
}

func (o *Options) directory() directory {
	d := directory{sessions: o.Sessions(), own: make(map[*tenant.Tenant]string), workspaces: make(map[string]string)}
	for _, s := range d.sessions {
		if t := s.View.Own(); t.Kind() == tenant.Session {
			d.own[t] = s.ID
		}
	}
	for key, id := range o.State.Workspaces() {
		d.workspaces[id] = shortKey(key)
	}
	return d
}

// shortKey shows enough of the hash of a bearer token to tell it from others.
func shortKey(key string) string {
	if hash, ok := strings.CutPrefix(key, bearer); ok {
		return bearer + hash[:min(len(hash), 12)]
	}
	return key
}

const bearer = "bearer:"

// connection describes a page.
func (d *directory) connection(t *tenant.Tenant, p tenant.Outline) Connection {
	c := Connection{ID: p.ID, Label: p.Label, Prefix: p.Prefix, Channel: p.Channel, Origin: p.Origin, URL: p.URL, Title: p.Title, Summary: p.Summary,
		State: p.State, Since: p.Since.UTC(), Tools: p.ToolCount, Prompts: p.PromptCount, Resources: p.ResourceCount, Problems: p.ProblemCount,
		Bare: p.Bare, Current: p.Current, Rev: p.Rev}
	switch p.Kind {
	case tenant.Session:
		c.Kind, c.Session = "session", d.own[t]
	case tenant.Workspace:
		c.Kind, c.Workspace = "workspace", d.workspaces[t.ID()]
	case tenant.Channel:
		c.Kind = "channel"
	case tenant.Roots:
		c.Kind = "root"
	}
	return c
}

// look describes all there is, but for calls.
func (o *Options) look(read reading) State {
	d := o.directory()
	s := State{Sessions: []SessionRow{}, Connections: []Connection{}, Channels: []Channel{}, Workspaces: []Workspace{}, Origins: o.origins(), Counters: read.count}
	s.Counters.Refused = uint64(o.Refused())
	published := make(map[*tenant.Tenant]int) // pages that sessions see
	channels, workspaces := make(map[string]Channel), make(map[string]Workspace)
	inChannel := make(map[string]int)
	for _, t := range o.Registry.Tenants() {
		pages := t.Outlines()
		for _, p := range pages {
			s.Connections = append(s.Connections, d.connection(t, p))
			if p.State != tenant.Pending {
				published[t]++
			}
		}
		switch t.Kind() {
		case tenant.Channel:
			channels[t.ID()] = Channel{ID: t.ID(), Connections: len(pages)}
			inChannel[t.ID()] = published[t]
		case tenant.Workspace:
			if key := d.workspaces[t.ID()]; key != "" {
				workspaces[key] = Workspace{ID: key, Connections: len(pages)}
			}
		}
	}
	for _, key := range d.workspaces { // named ones are there for pages also when nobody is in
		if _, lives := workspaces[key]; !lives && !strings.HasPrefix(key, bearer) {
			workspaces[key] = Workspace{ID: key}
		}
	}
	for _, from := range d.sessions {
		row := SessionRow{ID: from.ID, Client: Client{from.Client.Name, from.Client.Version}, Protocol: from.Protocol, Era: "session", Workspace: shortKey(from.Workspace),
			Since: from.Since.UTC(), Channels: append([]string{}, from.View.Joined()...), Running: read.running[from.ID],
			Connections: published[from.View.Own()] + published[o.Registry.Roots()]}
		if from.Stateless {
			row.Era = "stateless"
		}
		for _, name := range row.Channels {
			c := channels[name]
			c.ID = name
			c.Sessions++
			channels[name] = c
			row.Connections += inChannel[name]
		}
		if row.Workspace != "" {
			w := workspaces[row.Workspace]
			w.ID = row.Workspace
			w.Sessions++
			workspaces[row.Workspace] = w
		}
		s.Sessions = append(s.Sessions, row)
	}
	s.Channels = slices.AppendSeq(s.Channels, maps.Values(channels))
	slices.SortFunc(s.Channels, func(a, b Channel) int { return cmp.Compare(a.ID, b.ID) })
	s.Workspaces = slices.AppendSeq(s.Workspaces, maps.Values(workspaces))
	slices.SortFunc(s.Workspaces, func(a, b Workspace) int { return cmp.Compare(a.ID, b.ID) })
	return s
}

func (o *Options) origins() Origins {
	out := Origins{Allowed: []AllowedOrigin{}, Waiting: []WaitingOrigin{}}
	for _, origin := range o.Flags {
		out.Allowed = append(out.Allowed, AllowedOrigin{origin, "flag"})
	}
	for _, allowed := range o.State.Origins() {
		out.Allowed = append(out.Allowed, AllowedOrigin{allowed.Origin, "state"})
	}
	for _, w := range o.Registry.Waiting() {
		out.Waiting = append(out.Waiting, WaitingOrigin{w.Origin, w.Pages, w.Since.UTC(), w.Origin != "null"})
	}
	return out
}
