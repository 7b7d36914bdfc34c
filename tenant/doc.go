// Package tenant is the state machine between MCP sessions and web pages. It
// knows who is connected, under which prefix, which tools that makes, and which
// calls are running. It does no I/O: a page's socket is a [Transport], an MCP
// session a [Tenant.Subscribe] callback.
//
//	Registry ──▶ Tenant ──▶ Page ──▶ Link ──▶ pending calls
//	 (process)   (session)   (tab)    (socket)
//
// # Words
//
// A [Tenant] is where sessions and pages meet; its id is a capability. A [Page]
// is one browser tab: it keeps its id, label and prefix over reloads. A [Link]
// is one socket of a page; a page has at most one, and none while it reloads. A
// call belongs to the link it was sent on: the link's end ends it, and only
// that link may answer it.
//
// # Life of a page
//
//	Join ──▶ ready ──socket ends──▶ reconnecting ──same instance──▶ ready
//	           │                         └──grace over──▶ gone
//	           ├──no sign of life──▶ suspended ──it speaks──▶ ready
//	           └──Leave──▶ gone
//
// # Locks
//
// Order: Registry.mu, then Tenant.mu, then Link.mu. Transports and subscribers
// are called with none of them held. Nothing waits while holding one.
//
// # Goroutines
//
// The package starts none of its own; the reconnect grace is a timer whose
// function takes Tenant.mu and returns.
package tenant
