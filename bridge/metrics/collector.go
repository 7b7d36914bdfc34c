package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"jsbridge/bridge/agent"
	"jsbridge/bridge/page"
	"jsbridge/tenant"
)

// Sources are asked at each scrape, so that counting costs nothing in between.
// All must be given.
type Sources struct {
	Census func() tenant.Census
	Agents func() agent.Stats
	Pages  func() page.Stats
	// DashboardStreams is how many of the dashboard's event streams are open.
	DashboardStreams func() int
}

// collector asks the sources.
type collector struct{ from Sources }

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("jsbridge_"+name, help, labels, nil)
}

var (
	pagesDesc       = desc("pages", "Pages by state. All but reconnecting ones are connected.", "state")
	tenantsDesc     = desc("tenants", "Tenants by kind.", "kind")
	sessionsDesc    = desc("sessions", "MCP sessions by era: of clients that have one, or of a workspace that stateless clients share.", "era")
	streamsDesc     = desc("streams", "Open event streams by kind: standalone of a session, listen of a stateless client, dashboard.", "kind")
	inFlightDesc    = desc("calls_in_flight", "Calls to pages that have not ended.")
	notCalledDesc   = desc("calls_refused_total", "Calls that no page was asked for, by reason: what is called is unknown, or its arguments are wrong.", "reason")
	reconnectsDesc  = desc("page_reconnects_total", "How often a page got a new socket in place of one that was lost or given up.")
	messagesDesc    = desc("page_messages_refused_total", "Messages of pages that were answered with an error, or dropped.")
	turnedAwayDesc  = desc("page_connections_refused_total", "Sockets of pages that were not let in, by reason.", "reason")
	closedDesc      = desc("page_disconnects_total", "Sockets of pages that ended, by close code.", "code")
	requestsDesc    = desc("mcp_requests_refused_total", "HTTP requests to the MCP endpoint that were answered with an error of the transport, by reason.", "reason")
	questionsDesc   = desc("questions_total", "Questions of pages to MCP clients, by kind and by what became of them.", "kind", "outcome")
	listChangedDesc = desc("list_changed_total", "Notifications sent to MCP clients that a list has changed, by list.", "list")
	updatesDesc     = desc("resource_updates_total", "Notifications sent to MCP clients that a watched resource has changed.")
	itemsCutDesc    = desc("result_items_cut_total", "Items of results that were longer than --max-result allows.")
	bytesCutDesc    = desc("result_cut_bytes_total", "Bytes of results that were left out for --max-result.")
)

// Describe implements [prometheus.Collector].
func (c collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{pagesDesc, tenantsDesc, sessionsDesc, streamsDesc, inFlightDesc, notCalledDesc, reconnectsDesc, messagesDesc,
		turnedAwayDesc, closedDesc, requestsDesc, questionsDesc, listChangedDesc, updatesDesc, itemsCutDesc, bytesCutDesc} {
		to <- d
	}
}

// Collect implements [prometheus.Collector].
func (c collector) Collect(to chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v int, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(v), labels...)
	}
	counter := func(d *prometheus.Desc, v uint64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	counters := func(d *prometheus.Desc, all map[string]uint64) {
		for label, v := range all {
			counter(d, v, label)
		}
	}

	census := c.from.Census()
	for _, state := range []tenant.State{tenant.Joined, tenant.Ready, tenant.Reconnecting, tenant.Suspended, tenant.Pending} {
		gauge(pagesDesc, census.Pages[state], string(state))
	}
	for kind, name := range map[tenant.Kind]string{tenant.Session: "session", tenant.Channel: "channel", tenant.Roots: "roots", tenant.Workspace: "workspace"} {
		gauge(tenantsDesc, census.Tenants[kind], name)
	}
	gauge(inFlightDesc, census.Calls)
	counter(reconnectsDesc, census.Reconnects)

	agents := c.from.Agents()
	for era, n := range agents.Sessions {
		gauge(sessionsDesc, n, era)
	}
	for kind, n := range agents.Streams {
		gauge(streamsDesc, n, kind)
	}
	gauge(streamsDesc, c.from.DashboardStreams(), "dashboard")
	counters(requestsDesc, agents.RequestsRefused)
	counters(notCalledDesc, agents.CallsRefused)
	counters(listChangedDesc, agents.ListChanged)
	for q, n := range agents.Questions {
		counter(questionsDesc, n, q.Kind, q.Outcome)
	}
	counter(updatesDesc, agents.ResourceUpdates)
	counter(itemsCutDesc, agents.ItemsCut)
	counter(bytesCutDesc, agents.BytesCut)

	pages := c.from.Pages()
	counter(messagesDesc, pages.MessagesRefused)
	counters(turnedAwayDesc, pages.Refused)
	counters(closedDesc, pages.Closed)
}
