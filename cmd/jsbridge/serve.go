package main

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"jsbridge/bridge"
	"jsbridge/bridge/agent"
	"jsbridge/bridge/page"
	"jsbridge/bridge/state"
	"jsbridge/manifest"
	"jsbridge/tenant"
	"jsbridge/web"
)

// serveCommand serves. The flags share their defaults with the packages they
// configure.
func serveCommand() *cobra.Command {
	opts := bridge.Options{Version: buildVersion()}
	var level, format, pageCode string
	c := &cobra.Command{
		Use:   "serve",
		Short: "serves pages and MCP clients (the default)",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			log, err := newLogger(c.ErrOrStderr(), level, format)
			if err != nil {
				return err
			}
			opts.Logger = log
			if opts.State == "" {
				log.Warn("no state file: approved origins are forgotten when this server ends (--state names one)")
			}
			opts.Files = web.Files()
			s, err := bridge.New(c.Context(), opts)
			if err != nil {
				return err
			}
			s.Start()
			go giveBack(c.Context())
			if err := greet(c.OutOrStdout(), s.Port()); err != nil {
				return err
			}
			return s.Run(c.Context())
		},
	}
	f := c.Flags()
	f.IntVar(&opts.Port, "port", bridge.DefaultPort, "port to listen on; 0 takes a free one (also: PORT)")
	also := func(flag string, variables ...string) {
		_ = f.SetAnnotation(flag, "ENV", variables) // fails for unknown flags only
	}
	also("port", "JSBRIDGE_PORT", "PORT")
	f.StringVar(&opts.Host, "host", "", "address to listen on instead of 127.0.0.1 and ::1; one that other machines reach needs --token")
	f.StringVar(&opts.Token, "token", "", "what MCP clients must send as Authorization: Bearer <token>")
	f.StringSliceVar(&opts.AllowHosts, "allow-host", nil, "further names this server answers to, such as host.docker.internal")
	f.StringSliceVar(&opts.AllowOrigins, "allow-origin", nil, "origins whose pages may connect under a name of their own without approval; null for file:// and sandboxed pages")
	f.StringVar(&opts.Tenant.Bare, "bare", "", "name of the connection whose tools and prompts are published without its prefix")
	f.StringVar(&pageCode, "page-code", string(tenant.AllowCode), "what becomes of code that an agent registers in a page: allow, ask (the user, in the tab) or off")
	f.BoolVar(&opts.Redact, "redact", false, "keeps arguments and results of calls out of the dashboard's log")
	stateFlag(f, &opts.State)
	f.BoolVar(&opts.Metrics, "metrics", false, "serves /metrics for Prometheus")
	f.BoolVar(&opts.Debug, "debug", false, "serves Go's profiles under /debug/pprof/, to programs on this machine")
	f.StringVar(&level, "log-level", "info", "debug, info, warn or error; debug has a line for each call's begin and end")
	f.StringVar(&format, "log-format", "text", "text, or json: one object a line")
	f.DurationVar(&opts.Tenant.CallTimeout, "call-timeout", tenant.DefaultCallTimeout, "limit of a call whose tool sets no timeoutMs")
	f.DurationVar(&opts.Agent.AskTimeout, "ask-timeout", agent.DefaultAskTimeout, "how long a page's question to the agent's user or model may stay unanswered")
	f.DurationVar(&opts.Tenant.ReconnectGrace, "reconnect-grace", tenant.DefaultReconnectGrace, "how long a page that lost its connection keeps its place")
	f.DurationVar(&opts.Tenant.EmptyTimeout, "empty-timeout", tenant.DefaultEmptyTimeout, "ends a channel that has had no page for so long (also: TENANT_EMPTY_TIMEOUT_MS)")
	also("empty-timeout", "JSBRIDGE_EMPTY_TIMEOUT", "TENANT_EMPTY_TIMEOUT_MS")
	f.DurationVar(&opts.Tenant.IdleTimeout, "idle-timeout", tenant.DefaultIdleTimeout, "ends a channel that nobody has used for so long (also: TENANT_IDLE_TIMEOUT_MS)")
	also("idle-timeout", "JSBRIDGE_IDLE_TIMEOUT", "TENANT_IDLE_TIMEOUT_MS")
	f.DurationVar(&opts.Agent.SessionIdle, "session-idle", agent.DefaultSessionIdle, "ends an MCP session without a request or an open stream")
	f.DurationVar(&opts.Drain, "drain", bridge.DefaultDrain, "how long running calls may take when the server stops")
	f.IntVar(&opts.Tenant.MaxName, "max-name", manifest.DefaultMaxName, fmt.Sprintf("longest published tool name, at least %d", manifest.MinMaxName))
	f.IntVar(&opts.Tenant.MaxTenants, "max-tenants", tenant.DefaultMaxTenants, "most tenants")
	f.IntVar(&opts.Tenant.MaxPages, "max-pages", tenant.DefaultMaxPages, "most connected pages")
	f.IntVar(&opts.Tenant.MaxCallsPerPage, "max-calls", tenant.DefaultMaxCallsPerPage, "most calls in flight to one page")
	f.IntVar(&opts.Page.MaxTools, "max-tools", manifest.DefaultTools, "most tools of one page")
	f.IntVar(&opts.Page.MaxQueue, "max-queue", page.DefaultMaxQueue, "most messages waiting for one page")
	f.Int64Var(&opts.Page.MaxFrame, "max-frame", page.DefaultMaxFrame, "largest message of a page, in bytes")
	f.IntVar(&opts.Agent.MaxSessions, "max-sessions", agent.DefaultMaxSessions, "most MCP sessions")
	f.IntVar(&opts.Agent.MaxResult, "max-result", agent.DefaultMaxResult, "longest result given to a client, in bytes; more is cut with a note")
	f.Int64Var(&opts.Agent.MaxBody, "max-body", agent.DefaultMaxBody, "largest request of an MCP client, in bytes")
	f.BoolVar(&opts.Agent.NoShortcut, "no-shortcut", false, "has the MCP SDK answer every call, for comparison")
	_ = f.MarkHidden("no-shortcut") // fails for unknown flags only
	c.PreRunE = func(*cobra.Command, []string) error {
		positive := map[string]int64{
			"--max-tenants": int64(opts.Tenant.MaxTenants), "--max-pages": int64(opts.Tenant.MaxPages), "--max-calls": int64(opts.Tenant.MaxCallsPerPage),
			"--max-tools": int64(opts.Page.MaxTools), "--max-queue": int64(opts.Page.MaxQueue), "--max-frame": opts.Page.MaxFrame,
			"--max-sessions": int64(opts.Agent.MaxSessions), "--max-result": int64(opts.Agent.MaxResult), "--max-body": opts.Agent.MaxBody,
			"--call-timeout": int64(opts.Tenant.CallTimeout / time.Millisecond), "--reconnect-grace": int64(opts.Tenant.ReconnectGrace / time.Millisecond),
			"--empty-timeout": int64(opts.Tenant.EmptyTimeout / time.Millisecond), "--idle-timeout": int64(opts.Tenant.IdleTimeout / time.Millisecond),
			"--session-idle": int64(opts.Agent.SessionIdle / time.Millisecond), "--drain": int64(opts.Drain / time.Millisecond),
			"--ask-timeout": int64(opts.Agent.AskTimeout / time.Millisecond),
		}
		for name, v := range positive {
			if v <= 0 {
				return usageError{fmt.Errorf("%s must be more than 0", name)}
			}
		}
		if opts.Port < 0 || opts.Port > 65535 {
			return usageError{fmt.Errorf("--port must be 0 to 65535, not %d", opts.Port)}
		}
		if opts.Tenant.Bare != "" && !strings.ContainsFunc(opts.Tenant.Bare, isLetterOrDigit) {
			return usageError{fmt.Errorf("--bare must be the name of a connection, which has letters or digits; %q has none", opts.Tenant.Bare)}
		}
		for _, o := range opts.AllowOrigins {
			if _, err := state.ParseOrigin(o); err != nil && o != "null" {
				return usageError{fmt.Errorf("--allow-origin: %w", err)}
			}
		}
		switch opts.Tenant.PageCode = tenant.PageCode(pageCode); opts.Tenant.PageCode {
		case tenant.AllowCode, tenant.AskCode, tenant.RefuseCode:
		default:
			return usageError{fmt.Errorf("--page-code must be allow, ask or off, not %q", pageCode)}
		}
		return nil
	}
	return c
}

func isLetterOrDigit(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// greet says where everything is and what to do next.
func greet(w io.Writer, port int) error {
	base := fmt.Sprintf("http://localhost:%d", port)
	_, err := fmt.Fprintf(w, `jsbridge is running.

  MCP endpoint  %[1]s/mcp
  Dashboard     %[1]s/

Add it to your MCP client, for example:

  claude mcp add --transport http jsbridge %[1]s/mcp

Then ask your agent for the jsbridge embed snippet, paste that line into the
DevTools console of a page that declares window.__mcpTools, and ask the agent
what the page can do. No such page at hand? "jsbridge demo" serves one, and one
that connects by itself. Ctrl-C stops.
`, base)
	return err
}
