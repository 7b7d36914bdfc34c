// Package tenant is the state machine between MCP sessions and web pages. It
// knows who is connected, under which prefix, which tools that makes, who sees
// them, and which calls are running. It does no I/O: a page's socket is a
// [Transport], an MCP session a [View].
//
//	                                ┌▶ own tenant ─┐
//	Registry ──▶ View (session) ────┼▶ channels ───┼──▶ Page ──▶ Link ──▶ pending calls
//	 (process)                      └▶ roots ──────┘    (tab)    (socket)
//
// # Words
//
// A [Tenant] is where sessions and pages meet: one for each session, whose id
// is a capability; one for each channel, known by its name; and one for all root
// connections. A [Connect] says which one a page wants. A [Page] is one browser
// tab: it keeps its id, label and prefix over reloads. A [Link] is one socket of
// a page; a page has at most one, and none while it reloads. A call belongs to
// the link it was sent on: the link's end ends it, and only that link may answer
// it.
//
// A [Snapshot] is what a tenant publishes, made anew at each change. A [View]
// shares its tenant's snapshot where it sees the pages of one tenant only, so
// that a change of the roots costs a thousand sessions no copying; else it
// merges them, when asked.
//
// # Life of a page
//
//	Join ──▶ ready ──socket ends──▶ reconnecting ──same tab──▶ ready
//	  │        │                         ├──grace over──▶ gone
//	  │        │                         └──the tab is elsewhere──▶ gone
//	  │        ├──no sign of life──▶ suspended ──it speaks──▶ ready
//	  │        └──Leave──▶ gone
//	  └─(origin not allowed)─▶ pending ──approved──▶ ready
//	                              └──refused, or ten minutes──▶ gone
//
// # Locks
//
// Order: View.mu, then Registry.mu, then Tenant.mu, then Link.mu, Registry.waitMu
// or audience.mu, which are leaves. Transports, views' functions,
// [Options.Allow] and the [Observer] are called with none of them held. Nothing waits while holding
// one. Before all of them come Registry.recheck and Link.watching, which put what is
// done outside the locks in order.
//
// # Goroutines
//
// The package starts none of its own; the reconnect grace, the wait for approval
// and a channel's end are timers whose functions take locks and return.
package tenant
