package dashboard

import (
	"net/http"

	"jsbridge/tenant"
)

// snippet gives the line that connects a page to any tenant.
func (h *Handler) snippet(w http.ResponseWriter, r *http.Request) {
	var args struct{ Form, Workspace, Connect, Session string }
	if !read(w, r, &args) {
		return
	}
	switch args.Form {
	case "", "import", "script", "inline":
	default:
		Problem(w, http.StatusBadRequest, "the form is import, script or inline")
		return
	}
	connect, err := h.connectString(args.Workspace, args.Connect, args.Session)
	if err != nil {
		h.refuse(w, err)
		return
	}
	snippet, err := h.opts.Snippet("http://"+r.Host, connect, args.Form)
	if err != nil {
		h.refuse(w, badRequest(err.Error()))
		return
	}
	reply(w, http.StatusOK, struct {
		Snippet string `json:"snippet"`
		Connect string `json:"connect"`
	}{snippet, connect})
}

// defaultWorkspace is that of stateless clients which name none.
const defaultWorkspace = "default"

// connectString is what leads to a place, of which one at most is named.
func (h *Handler) connectString(workspace, connect, session string) (string, error) {
	switch {
	case (workspace != "" && connect != "") || (workspace != "" && session != "") || (connect != "" && session != ""):
		return "", badRequest("name one of workspace, connect and session")
	case connect != "":
		c := tenant.ParseConnect(connect)
		if c == (tenant.Connect{}) {
			return "", badRequest(`this connect string names nothing: use "name" for a root connection or "channel:name" for a channel, of letters, digits, - and _`)
		}
		return c.String(), nil
	case session != "":
		for _, s := range h.opts.Sessions() {
			if s.ID == session {
				return s.View.Own().ID(), nil
			}
		}
		return "", tenant.ErrNoTenant
	case workspace == "":
		workspace = defaultWorkspace
	}
	for key, id := range h.opts.State.Workspaces() {
		if shortKey(key) == workspace {
			return id, nil
		}
	}
	id, err := h.opts.State.Workspace(workspace)
	if id == "" {
		return "", badRequest(err.Error())
	}
	if err != nil {
		h.log.Warn("a workspace will be forgotten when this server ends", "err", err)
	}
	h.opts.Registry.Note() // it is listed now
	return id, nil
}
