package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"jsbridge/manifest"
	"jsbridge/tenant"
)

// maxLabel bounds a label that a human gives, in bytes.
const maxLabel = 256

// page finds the connection that a request is about, or answers that there is
// none.
func (h *Handler) page(w http.ResponseWriter, r *http.Request) *tenant.Page {
	p, ok := h.opts.Registry.Page(r.PathValue("id"))
	if !ok {
		Problem(w, http.StatusNotFound, "there is no such connection; its tab was closed, or has moved")
		return nil
	}
	return p
}

// act is for what takes a page and a body of the type A.
func act[A any](h *Handler, w http.ResponseWriter, r *http.Request, do func(*tenant.Page, A) error) {
	p := h.page(w, r)
	var args A
	if p == nil || !read(w, r, &args) {
		return
	}
	if err := do(p, args); err != nil {
		h.refuse(w, err)
		return
	}
	done(w)
}

// badRequest is an error that the request's own words are at fault for.
type badRequest string

func (e badRequest) Error() string { return string(e) }

// refuse answers with why something was not done.
func (h *Handler) refuse(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	var bad badRequest
	var te *tenant.ToolError
	var ce *tenant.CallError
	switch {
	case errors.As(err, &bad):
		status = http.StatusBadRequest
	case errors.Is(err, tenant.ErrAway):
		status = http.StatusConflict
	case errors.Is(err, tenant.ErrNoTenant), errors.Is(err, tenant.ErrReplaced):
		status = http.StatusNotFound
	case errors.As(err, &te):
		status = toolStatus[te.Kind]
	case errors.As(err, &ce):
		status = callStatus[ce.Kind]
	}
	Problem(w, status, err.Error())
}

var toolStatus = map[tenant.ToolErrorKind]int{
	tenant.BadTool: http.StatusBadRequest, tenant.ToolExists: http.StatusConflict, tenant.NoSuchTool: http.StatusNotFound, tenant.HostTool: http.StatusConflict,
	tenant.CodeRefused: http.StatusForbidden, tenant.PageRefused: http.StatusUnprocessableEntity,
}

var callStatus = map[tenant.CallErrorKind]int{
	tenant.PageGone: http.StatusNotFound, tenant.PageSuspended: http.StatusGatewayTimeout, tenant.TimedOut: http.StatusGatewayTimeout, tenant.NotOffered: http.StatusNotFound,
	tenant.TooBusy: http.StatusTooManyRequests, tenant.NotSent: http.StatusBadGateway, tenant.ServerStopping: http.StatusServiceUnavailable, tenant.Cancelled: http.StatusConflict,
}

func (h *Handler) identify(w http.ResponseWriter, r *http.Request) {
	act(h, w, r, func(p *tenant.Page, _ struct{}) error {
		if p.Identify() != nil { // whatever it says, it says it to agents
			return tenant.ErrAway
		}
		return nil
	})
}

func (h *Handler) rename(w http.ResponseWriter, r *http.Request) {
	act(h, w, r, func(p *tenant.Page, args struct{ Label string }) error {
		label := manifest.Clean(args.Label, maxLabel, false)
		if label == "" {
			return badRequest("the label is empty")
		}
		if err := p.Rename(label); err != nil {
			return err
		}
		h.log.Info("page renamed in the dashboard", "connection", p.ID())
		return nil
	})
}

func (h *Handler) move(w http.ResponseWriter, r *http.Request) {
	act(h, w, r, func(p *tenant.Page, args struct{ To string }) error {
		to := tenant.ParseConnect(args.To)
		if to == (tenant.Connect{}) {
			return badRequest(`this connect string names nothing: use "name" for a root connection or "channel:name" for a channel, of letters, digits, - and _`)
		}
		if err := p.Move(to); err != nil {
			return err
		}
		h.log.Info("page moved in the dashboard", "connection", p.ID())
		return nil
	})
}

func (h *Handler) disconnect(w http.ResponseWriter, r *http.Request) {
	act(h, w, r, func(p *tenant.Page, _ struct{}) error {
		p.Disconnect()
		h.log.Info("page disconnected in the dashboard", "connection", p.ID())
		return nil
	})
}

// details is all that a page declares.
func (h *Handler) details(w http.ResponseWriter, r *http.Request) {
	p := h.page(w, r)
	if p == nil {
		return
	}
	d := h.opts.directory()
	info := p.Info()
	out := ConnectionDetails{Connection: d.connection(p.Tenant(), info.Outline), Tools: []Tool{}, Prompts: []Prompt{}, Resources: []Resource{},
		ProblemList: append([]manifest.Problem{}, info.Problems...)}
	for _, e := range info.Tools {
		t := Tool{Name: e.Name, PageName: e.Tool.Name, Title: e.Tool.Title, Description: e.Tool.Description, InputSchema: e.Tool.InputSchema, OutputSchema: e.Tool.OutputSchema,
			Annotations: e.Tool.Annotations, Example: e.Tool.Example, Source: "host", Origin: e.Tool.Origin, TimeoutMS: e.Tool.Timeout.Milliseconds()}
		if e.Tool.Dynamic {
			t.Source = "dynamic"
		}
		if why := e.Tool.SchemaProblem(); why != "" {
			out.ProblemList = append(out.ProblemList, manifest.Problem{Name: manifest.Clean(e.Tool.Name, 256, false), Index: -1, Reason: why})
		}
		out.Tools = append(out.Tools, t)
	}
	for _, e := range info.Prompts {
		prompt := Prompt{Name: e.Name, PageName: e.Prompt.Name, Title: e.Prompt.Title, Description: e.Prompt.Description, Arguments: []PromptArgument{}}
		for _, a := range e.Prompt.Arguments {
			prompt.Arguments = append(prompt.Arguments, PromptArgument{a.Name, a.Title, a.Description, a.Required})
		}
		out.Prompts = append(out.Prompts, prompt)
	}
	for _, e := range info.Resources {
		resource := Resource{URI: e.URI, Name: e.Resource.Name, Title: e.Resource.Title, Description: e.Resource.Description, MIMEType: e.Resource.MIMEType}
		if e.Resource.Template {
			resource.URI, resource.URITemplate = "", e.URI
		}
		out.Resources = append(out.Resources, resource)
	}
	reply(w, http.StatusOK, out)
}

// The names of the agents' built-ins that do the same: the journal knows one name
// of it.
const (
	byPath     = "register_page_tool_by_path"
	byCode     = "register_page_tool_by_code"
	unregister = "unregister_page_tool"
)

// asDashboard is the context of what the dashboard asks of a page. The call's id
// is in the ticket once it has begun.
func (h *Handler) asDashboard(r *http.Request, shown string) (context.Context, *ticket, tenant.Call) {
	t := new(ticket)
	return context.WithValue(r.Context(), ticketKey{}, t), t, tenant.Call{Agent: tenant.Agent{Name: "jsbridge dashboard", Version: h.opts.Version}, Name: shown, Shown: shown}
}

func (h *Handler) addTool(w http.ResponseWriter, r *http.Request) {
	p := h.page(w, r)
	var args struct {
		Name, Description, Path, Code string
		Params                        json.RawMessage
	}
	if p == nil || !read(w, r, &args) {
		return
	}
	shown, origin := byPath, manifest.Origin{Kind: "path", Path: args.Path}
	switch {
	case args.Path != "" && args.Code != "":
		Problem(w, http.StatusBadRequest, "give a path or code, not both")
		return
	case args.Code != "":
		shown, origin = byCode, manifest.Origin{Kind: "code", Code: args.Code}
	}
	ctx, _, call := h.asDashboard(r, shown)
	said, err := p.AddTool(ctx, tenant.NewTool{Name: args.Name, Description: args.Description, Params: args.Params, Origin: origin}, call)
	if err != nil {
		h.refuse(w, err)
		return
	}
	published := ""
	if e, ok := find(p, args.Name); ok {
		published = e.Name
	}
	h.log.Info("tool registered in the dashboard", "connection", p.ID(), "tool", published, "kind", origin.Kind)
	reply(w, http.StatusOK, struct {
		Published    string `json:"published"`
		Name         string `json:"name"`
		Confirmation string `json:"confirmation"`
	}{published, args.Name, said})
}

func (h *Handler) removeTool(w http.ResponseWriter, r *http.Request) {
	p := h.page(w, r)
	if p == nil {
		return
	}
	ctx, _, call := h.asDashboard(r, unregister)
	if _, err := p.RemoveTool(ctx, r.PathValue("name"), call); err != nil {
		h.refuse(w, err)
		return
	}
	h.log.Info("tool unregistered in the dashboard", "connection", p.ID())
	done(w)
}

// find looks a tool up by the page's own name of it.
func find(p *tenant.Page, name string) (tenant.Entry, bool) {
	tools := p.Info().Tools
	i := slices.IndexFunc(tools, func(e tenant.Entry) bool { return e.Tool.Name == name })
	if i < 0 {
		return tenant.Entry{}, false
	}
	return tools[i], true
}

func (h *Handler) call(w http.ResponseWriter, r *http.Request) {
	p := h.page(w, r)
	var args struct {
		Tool      string
		Arguments json.RawMessage
	}
	if p == nil || !read(w, r, &args) {
		return
	}
	e, ok := find(p, args.Tool)
	if !ok {
		Problem(w, http.StatusNotFound, "this page has no such tool")
		return
	}
	ctx, t, _ := h.asDashboard(r, e.Name)
	begun := time.Now()
	result, err := h.opts.Run(ctx, p, e, args.Arguments)
	if err != nil {
		h.refuse(w, err)
		return
	}
	reply(w, http.StatusOK, struct {
		Call   string          `json:"call"`
		MS     float64         `json:"ms"`
		Result json.RawMessage `json:"result"`
	}{t.call, float64(time.Since(begun).Microseconds()) / 1000, result})
}
