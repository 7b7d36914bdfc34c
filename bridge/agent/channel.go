package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/adrg/strutil/metrics"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"jsbridge/tenant"
)

// addChannels adds the built-ins for channels and root connections.
func (m builtins) addChannels() {
	channel := func(description string) properties {
		return properties{required: []string{"channel"}, schemas: map[string]string{"channel": fmt.Sprintf(`{"type":"string","description":%q}`, description)}}
	}
	m.add("join_channel", "Join a channel",
		"Adds the pages of a channel to what this session sees, beside its own pages and the root connections. Several channels may be joined at once. A channel that no page is in yet may be joined too: its pages appear when they connect. The empty name leaves all channels.",
		changes, channel("the channel's name from list_channels or find_channel; empty: leave all channels"), with(joinChannel))
	m.add("leave_channel", "Leave a channel",
		"Takes the pages of a joined channel out of what this session sees.",
		changes, channel("the channel's name"), with(leaveChannel))
	m.add("list_channels", "List the channels",
		"Lists the channels that pages are in, with each page's label and number of tools, and whether this session has joined it.",
		reads, properties{}, plain(listChannels))
	m.add("find_channel", "Find a channel by a similar name",
		"Finds channels whose name is like the query, best first; typing errors are forgiven.",
		reads, properties{required: []string{"query"}, schemas: map[string]string{"query": `{"type":"string","description":"what the user calls the channel"}`}}, with(findChannel))
	m.add("describe_channel", "Describe a channel's pages",
		"Describes the pages of a channel and their tools as describe_tools does, whether or not this session has joined it. To call their tools, join it first.",
		reads, channel("the channel's name"), with(describeChannel))
	m.add("describe_connection", "Describe a root connection",
		"Describes one root connection (a page that connected under a name of its own, for all sessions) and its tools, as describe_tools does.",
		reads, properties{required: []string{"name"}, schemas: map[string]string{"name": `{"type":"string","description":"the connection's label or tool prefix"}`}}, with(describeConnection))
}

type channelArgs struct {
	Channel string `json:"channel"`
}

// name is the channel meant, mended as pages' connect strings are; "" for none.
func (a channelArgs) name() string {
	channel, _, _ := strings.Cut(a.Channel, ":")
	return tenant.ParseConnect(channel + ":").Channel
}

func (a channelArgs) refused() *mcp.CallToolResult {
	return failure(fmt.Sprintf("%.80q is no channel name: use letters, digits, - and _", a.Channel))
}

type listedChannel struct {
	Channel     string             `json:"channel"`
	Joined      bool               `json:"joined"`
	Connections []listedConnection `json:"connections"`
}

type listedConnection struct {
	Label     string `json:"label"`
	ToolCount int    `json:"toolCount"`
}

func (s *session) channel(name string) listedChannel {
	out := listedChannel{Channel: name, Joined: slices.Contains(s.view.Joined(), name), Connections: []listedConnection{}}
	if t, ok := s.h.registry.Channel(name); ok {
		for _, p := range t.Pages() {
			i := p.Info()
			out.Connections = append(out.Connections, listedConnection{i.Label, len(i.Tools)})
		}
	}
	return out
}

func joinChannel(_ context.Context, s *session, _ *mcp.CallToolRequest, args channelArgs) *mcp.CallToolResult {
	if strings.TrimSpace(args.Channel) == "" {
		left := s.view.LeaveAll()
		s.changed()
		return jsonResult(struct {
			Left   []string `json:"left"`
			Joined []string `json:"joined"`
		}{append([]string{}, left...), []string{}})
	}
	name := args.name()
	if name == "" {
		return args.refused()
	}
	if err := s.view.Join(name); err != nil {
		return failure(err.Error())
	}
	s.changed()
	return jsonResult(struct {
		listedChannel
		All []string `json:"allJoined"`
	}{s.channel(name), s.view.Joined()})
}

func leaveChannel(_ context.Context, s *session, _ *mcp.CallToolRequest, args channelArgs) *mcp.CallToolResult {
	name := args.name()
	if name == "" {
		return args.refused()
	}
	if err := s.view.Leave(name); err != nil {
		return failure(fmt.Sprintf("this session has not joined the channel %q; joined are: %s", name, list(s.view.Joined())))
	}
	s.changed()
	return jsonResult(struct {
		Left   string   `json:"left"`
		Joined []string `json:"joined"`
	}{name, append([]string{}, s.view.Joined()...)})
}

func list(names []string) string {
	const most = 50
	if len(names) == 0 {
		return "none"
	}
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

func listChannels(_ context.Context, s *session, _ *mcp.CallToolRequest, _ json.RawMessage) *mcp.CallToolResult {
	out := []listedChannel{}
	for _, t := range s.h.registry.Channels() {
		out = append(out, s.channel(t.ID()))
	}
	return jsonResult(out)
}

type foundChannel struct {
	Name  string  `json:"name"`
	Score float64 `json:"score"` // 0 to 1
}

func findChannel(_ context.Context, s *session, _ *mcp.CallToolRequest, args struct {
	Query string `json:"query"`
}) *mcp.CallToolResult {
	var names []string
	for _, t := range s.h.registry.Channels() {
		names = append(names, t.ID())
	}
	return jsonResult(rank(args.Query, names))
}

// rank sorts the names that are like the query, best first.
func rank(query string, names []string) []foundChannel {
	found := []foundChannel{}
	for _, n := range names {
		if score := likeness(strings.ToLower(query), strings.ToLower(n)); score >= 0.5 {
			found = append(found, foundChannel{n, score})
		}
	}
	slices.SortFunc(found, func(a, b foundChannel) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Name, b.Name))
	})
	return found
}

// likeness compares the whole and each word of the name. Equal is 1; the start
// or a part of the name is nearly as good; else the edit distance counts.
func likeness(query, name string) float64 {
	const maxQuery = 200 // the edit distance takes time for both lengths
	query = strings.TrimSpace(query)
	if query == "" || len(query) > maxQuery {
		return 0
	}
	edit := metrics.NewLevenshtein()
	best := edit.Compare(query, name)
	for _, word := range strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == '_' }) {
		best = max(best, 0.95*edit.Compare(query, word))
	}
	switch {
	case strings.HasPrefix(name, query):
		best = max(best, 0.9)
	case len(query) >= 3 && strings.Contains(name, query):
		best = max(best, 0.8)
	}
	return float64(int(best*100+0.5)) / 100
}

func describeChannel(_ context.Context, s *session, _ *mcp.CallToolRequest, args channelArgs) *mcp.CallToolResult {
	t, ok := s.h.registry.Channel(args.name())
	if !ok {
		var names []string
		for _, t := range s.h.registry.Channels() {
			names = append(names, t.ID())
		}
		return failure(fmt.Sprintf("no page is in a channel %.80q; channels with pages are: %s", args.Channel, list(names)))
	}
	out := struct {
		Channel string `json:"channel"`
		Joined  bool   `json:"joined"`
		description
	}{t.ID(), slices.Contains(s.view.Joined(), t.ID()), description{[]describedConnection{}}}
	for _, p := range t.Pages() {
		info := p.Info()
		if out.Joined {
			info = s.view.Info(p)
		}
		out.Connections = append(out.Connections, describePage(info))
	}
	return jsonResult(out)
}

func describeConnection(_ context.Context, s *session, _ *mcp.CallToolRequest, args struct {
	Name string `json:"name"`
}) *mcp.CallToolResult {
	var names []string
	var byPrefix *tenant.Info
	for _, p := range s.h.registry.Roots().Pages() {
		info := s.view.Info(p)
		if info.Label == args.Name {
			return jsonResult(description{[]describedConnection{describePage(info)}})
		}
		if info.Prefix == args.Name {
			byPrefix = &info
		}
		names = append(names, info.Label)
	}
	if byPrefix != nil {
		return jsonResult(description{[]describedConnection{describePage(*byPrefix)}})
	}
	return failure(fmt.Sprintf("there is no root connection %.80q; there are: %s", args.Name, list(names)))
}
