package dashboard

import (
	"encoding/json"
	"time"

	"jsbridge/manifest"
	"jsbridge/tenant"
)

// What the API says, as docs/dashboard-api.md describes it.

// State is all there is.
type State struct {
	Server      Server       `json:"server"`
	Sessions    []SessionRow `json:"sessions"`
	Connections []Connection `json:"connections"`
	Channels    []Channel    `json:"channels"`
	Workspaces  []Workspace  `json:"workspaces"`
	Origins     Origins      `json:"origins"`
	Counters    Counters     `json:"counters"`
	Calls       []Call       `json:"calls"`
}

// Change is what differs. What is nil does not.
type Change struct {
	Sessions    *Diff[SessionRow] `json:"sessions,omitempty"`
	Connections *Diff[Connection] `json:"connections,omitempty"`
	Channels    *Diff[Channel]    `json:"channels,omitempty"`
	Workspaces  *Diff[Workspace]  `json:"workspaces,omitempty"`
	Origins     *Origins          `json:"origins,omitempty"`
	Counters    *Counters         `json:"counters,omitempty"`
	Calls       *Diff[Call]       `json:"calls,omitempty"`
	Notices     []Notice          `json:"notices,omitempty"`
}

// Diff is what differs in a list: items that are new or have changed, and the ids
// of those that are gone.
type Diff[T any] struct {
	Set  []T      `json:"set,omitempty"`
	Gone []string `json:"gone,omitempty"`
}

// Server describes this start of jsbridge, by the address that the dashboard was
// opened at.
type Server struct {
	Epoch    string          `json:"epoch"`
	Version  string          `json:"version"`
	Started  time.Time       `json:"started"`
	MCP      string          `json:"mcp"`
	Base     string          `json:"base"`
	PageCode tenant.PageCode `json:"pageCode"`
	Redacted bool            `json:"redacted"`
}

// Client is an MCP client, "" where it did not say.
type Client struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// SessionRow is an MCP session, or all stateless clients of a workspace.
type SessionRow struct {
	ID          string    `json:"id"`
	Client      Client    `json:"client"`
	Protocol    string    `json:"protocol"`
	Era         string    `json:"era"` // "session" or "stateless"
	Workspace   string    `json:"workspace,omitempty"`
	Since       time.Time `json:"since"`
	Channels    []string  `json:"channels"`
	Connections int       `json:"connections"` // that it sees
	Running     int       `json:"running"`
}

// Connection is a page.
type Connection struct {
	ID        string       `json:"id"`
	Label     string       `json:"label"`
	Prefix    string       `json:"prefix"`
	Kind      string       `json:"kind"` // "session", "workspace", "channel" or "root"
	Channel   string       `json:"channel,omitempty"`
	Workspace string       `json:"workspace,omitempty"`
	Session   string       `json:"session,omitempty"` // whose own tenant it is in
	Origin    string       `json:"origin"`
	URL       string       `json:"url"`
	Title     string       `json:"title"`
	Summary   string       `json:"summary"`
	State     tenant.State `json:"state"`
	Since     time.Time    `json:"since"`
	Tools     int          `json:"tools"`
	Prompts   int          `json:"prompts"`
	Resources int          `json:"resources"`
	Problems  int          `json:"problems"`
	Bare      bool         `json:"bare"`
	Current   bool         `json:"current"`
	Rev       uint64       `json:"rev"`
}

// Channel is one that has pages, or that a session has joined.
type Channel struct {
	ID          string `json:"id"`
	Connections int    `json:"connections"`
	Sessions    int    `json:"sessions"`
}

// Workspace is a named one, or one of a bearer token that is in use.
type Workspace struct {
	ID          string `json:"id"`
	Connections int    `json:"connections"`
	Sessions    int    `json:"sessions"`
}

// Origins are those whose pages may connect by a name, and those that wait.
type Origins struct {
	Allowed []AllowedOrigin `json:"allowed"`
	Waiting []WaitingOrigin `json:"waiting"`
}

// AllowedOrigin was let in by a flag, or by a human.
type AllowedOrigin struct {
	Origin string `json:"origin"`
	By     string `json:"by"` // "flag" or "state"
}

// WaitingOrigin has pages that wait for approval.
type WaitingOrigin struct {
	Origin     string    `json:"origin"`
	Pages      int       `json:"pages"`
	Since      time.Time `json:"since"`
	Approvable bool      `json:"approvable"`
}

// Counters count since the server's start, but for Running.
type Counters struct {
	Calls   uint64 `json:"calls"`
	Failed  uint64 `json:"failed"`
	Running int    `json:"running"`
	Refused uint64 `json:"refused"` // frames of pages
	Dropped uint64 `json:"dropped"` // calls that left the journal
}

// Call is one call, running or ended.
type Call struct {
	ID          string    `json:"id"`
	At          time.Time `json:"at"`
	Client      Client    `json:"client"`
	Session     string    `json:"session,omitempty"`
	By          string    `json:"by"` // "agent" or "dashboard"
	Connection  string    `json:"connection"`
	Label       string    `json:"label"`
	Method      string    `json:"method"` // "tool", "prompt", "resource" or "completion"
	Name        string    `json:"name"`
	State       string    `json:"state"` // "running", "done", "failed" or "cancelled"
	MS          *float64  `json:"ms,omitempty"`
	Progress    *Progress `json:"progress,omitempty"`
	ArgBytes    int       `json:"argBytes"`
	ResultBytes *int      `json:"resultBytes,omitempty"`
	Error       string    `json:"error,omitempty"`
}

// Progress is what a page says of a running call.
type Progress struct {
	Progress float64 `json:"progress"`
	Total    float64 `json:"total,omitempty"`
	Message  string  `json:"message,omitempty"`
}

// DetailedCall is a call with what went in and what came out.
type DetailedCall struct {
	Call
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	Omitted   string          `json:"omitted,omitempty"` // "redacted" or "size"
}

// Notice tells of a tool that an agent added to a page, or took away.
type Notice struct {
	ID          string           `json:"id"`
	At          time.Time        `json:"at"`
	Kind        string           `json:"kind"` // "registered" or "unregistered"
	Connection  string           `json:"connection"`
	Label       string           `json:"label"`
	Published   string           `json:"published"`
	Name        string           `json:"name"` // the page's own, verbatim
	Description string           `json:"description"`
	Origin      *manifest.Origin `json:"origin,omitempty"`
	Client      Client           `json:"client"`
}

// ConnectionDetails is a page with all that it declares.
type ConnectionDetails struct {
	Connection
	Tools       []Tool             `json:"tools"`
	Prompts     []Prompt           `json:"prompts"`
	Resources   []Resource         `json:"resources"`
	ProblemList []manifest.Problem `json:"problemList"`
}

// Tool is one of a page, by its published and its own name, which is verbatim.
type Tool struct {
	Name         string           `json:"name"`
	PageName     string           `json:"pageName"`
	Title        string           `json:"title"`
	Description  string           `json:"description"`
	InputSchema  json.RawMessage  `json:"inputSchema"`
	OutputSchema json.RawMessage  `json:"outputSchema,omitempty"`
	Annotations  json.RawMessage  `json:"annotations,omitempty"`
	Example      json.RawMessage  `json:"example,omitempty"`
	Source       string           `json:"source"` // "host" or "dynamic"
	Origin       *manifest.Origin `json:"origin,omitempty"`
	TimeoutMS    int64            `json:"timeoutMs,omitempty"`
}

// Prompt is one of a page.
type Prompt struct {
	Name        string           `json:"name"`
	PageName    string           `json:"pageName"`
	Title       string           `json:"title"`
	Description string           `json:"description"`
	Arguments   []PromptArgument `json:"arguments"`
}

// PromptArgument is one of a prompt.
type PromptArgument struct {
	Name        string `json:"name"`
	Title       string `json:"title"`
	Description string `json:"description"`
	Required    bool   `json:"required"`
}

// Resource has a URI, or a template of one.
type Resource struct {
	URI         string `json:"uri,omitempty"`
	URITemplate string `json:"uriTemplate,omitempty"`
	Name        string `json:"name"`
	Title       string `json:"title"`
	Description string `json:"description"`
	MIMEType    string `json:"mimeType"`
}
