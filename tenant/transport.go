package tenant

import (
	"encoding/json"
	"time"
)

// Transport is the sending side of one page's socket. Every method queues and
// returns at once; none may call back into this package.
type Transport interface {
	// Call asks the page to run a tool. An error means it was not sent.
	Call(CallFrame) error
	// Cancel fires the call's AbortSignal; no answer is awaited any more.
	Cancel(id, reason string)
	// Probe asks the page's JavaScript, not its network stack, for a sign of
	// life.
	Probe()
	// Answer gives the answer to a question that the page asked during a call.
	Answer(askID string, a Answer)
	// Watch tells that a resource, by its own URI, is watched, or not any more.
	Watch(uri string, on bool)
	// Complain shows the page's developer a sentence.
	Complain(message string)
	// Identify lets the tab show who it is.
	Identify(label string)
	// Approved tells a page that waited that it is in, and, if it has declared
	// something, what that was published as.
	Approved(*Registration)
	// Registered tells what the page's declarations are published as now.
	Registered(Registration)
	// Move asks the tab to join elsewhere.
	Move(Connect)
	// Close ends the socket.
	Close(Reason)
}

// Method is what a page is asked for, by the page protocol's name of it.
type Method string

const (
	// RunTool calls a tool's function.
	RunTool Method = "call"
	// GetPrompt fills a prompt in.
	GetPrompt Method = "get_prompt"
	// ReadResource reads a resource.
	ReadResource Method = "read_resource"
	// Complete suggests values of a prompt's argument or a template's variable.
	Complete Method = "complete"
)

// CallFrame is what a page is told of a call.
type CallFrame struct {
	ID     string
	Method Method
	Tool   string // the page's own name of it, for RunTool
	// Args are a tool's arguments; for the other methods an object whose
	// members are the frame's own.
	Args     json.RawMessage
	Timeout  time.Duration
	Progress bool // somebody listens to progress
	Agent    Agent
	Retry    Retry
}

// Agent describes the MCP client that calls, for the page's information.
type Agent struct {
	Name, Version string
	Capabilities  json.RawMessage // what of MCP it can do, an object; nil for none
}

// Retry is what the client gives in a call that repeats one which the page answered
// with questions.
type Retry struct {
	Responses json.RawMessage // by the page's keys; nil for none
	State     string          // as the page gave it
}

// Reason is why this package ends a socket.
type Reason int

const (
	// Replaced by a newer socket of the same tab.
	Replaced Reason = iota + 1
	// TenantEnded since its MCP session did.
	TenantEnded
	// Stopping is the whole server's end.
	Stopping
	// Refused: a human refused the page's origin, or took the approval back.
	Refused
	// NotApproved: nobody approved the page's origin in time.
	NotApproved
	// Unused: nobody has used the channel for long.
	Unused
	// Disconnected by a human.
	Disconnected
)

// Departure is how a socket ended, as its owner tells [Link.Closed].
type Departure struct {
	// MayReturn keeps the page's place through the reconnect grace.
	MayReturn bool
	// Seen is the id of the last call that the page's script took, "" for
	// none. It counts only with SeenKnown: later calls certainly did not run.
	Seen      string
	SeenKnown bool
}

// Answer is a page's answer to a call. Err decides; a nil Result is a function
// that returned nothing.
type Answer struct {
	Result json.RawMessage
	Err    *PageError
}

// PageError is what the page's function threw.
type PageError struct {
	Message string `json:"message"`
	Name    string `json:"name,omitempty"`
	Code    string `json:"code,omitempty"`
}

// Event is what a page says of a running call; exactly one field is set.
type Event struct {
	Progress *Progress
	Log      *Log
}

// Progress is a page's own report. Total 0 means unknown.
type Progress struct {
	Progress, Total float64
	Message         string
}

// Log is one message of a page to the calling client.
type Log struct {
	Level  string // an MCP (RFC 5424) level, checked by the caller
	Logger string
	Data   json.RawMessage
}
