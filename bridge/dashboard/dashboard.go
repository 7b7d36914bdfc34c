// Package dashboard is the JSON API behind the web UI. So far it is about the
// origins whose pages may connect by a name of their own:
//
//	GET    /api/origins                       what is approved, and what waits
//	POST   /api/origins {"origin": "https://…"}   approves one
//	DELETE /api/origins {"origin": "https://…"}   refuses one that waits, or takes its approval back
//
// Errors are JSON problems (RFC 9457). Who may call it is for the guard in front.
package dashboard

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"jsbridge/bridge/state"
	"jsbridge/manifest"
	"jsbridge/tenant"
)

// maxBody bounds a request's body, in bytes.
const maxBody = 16 << 10

// Handler serves the API. Use [New].
type Handler struct {
	registry *tenant.Registry
	state    *state.File
	flags    []string // origins that were approved by flag
	log      *slog.Logger
	mux      *http.ServeMux
}

// New returns the API for a registry whose approved origins are in f; flags are
// those that the command line approved.
func New(r *tenant.Registry, f *state.File, flags []string, log *slog.Logger) *Handler {
	h := &Handler{registry: r, state: f, flags: flags, log: log, mux: http.NewServeMux()}
	h.mux.HandleFunc("GET /api/origins", h.list)
	h.mux.HandleFunc("POST /api/origins", h.approve)
	h.mux.HandleFunc("DELETE /api/origins", h.remove)
	h.mux.HandleFunc("/api/origins", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Allow", "GET, POST, DELETE")
		Problem(w, http.StatusMethodNotAllowed, "use GET, POST or DELETE")
	})
	h.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		Problem(w, http.StatusNotFound, fmt.Sprintf("there is nothing at %.100q", manifest.Clean(r.URL.Path, 256, false)))
	})
	return h
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.mux.ServeHTTP(w, r) }

type approvedOrigin struct {
	Origin string     `json:"origin"`
	At     *time.Time `json:"at,omitempty"`
	// By is "flag" for one of the command line, which can't be removed here.
	By string `json:"by"`
}

type waitingOrigin struct {
	Origin string    `json:"origin"`
	Pages  int       `json:"pages"`
	Since  time.Time `json:"since"`
	// Approvable is false for pages without an origin of their own.
	Approvable bool `json:"approvable"`
}

func (h *Handler) list(w http.ResponseWriter, _ *http.Request) {
	out := struct {
		Approved []approvedOrigin `json:"approved"`
		Waiting  []waitingOrigin  `json:"waiting"`
	}{[]approvedOrigin{}, []waitingOrigin{}}
	for _, o := range h.flags {
		out.Approved = append(out.Approved, approvedOrigin{Origin: o, By: "flag"})
	}
	for _, o := range h.state.Origins() {
		a := approvedOrigin{Origin: o.Origin, By: "user"}
		if !o.At.IsZero() {
			a.At = &o.At
		}
		out.Approved = append(out.Approved, a)
	}
	for _, o := range h.registry.Waiting() {
		out.Waiting = append(out.Waiting, waitingOrigin{o.Origin, o.Pages, o.Since, o.Origin != "null"})
	}
	reply(w, http.StatusOK, out)
}

func (h *Handler) approve(w http.ResponseWriter, r *http.Request) {
	origin, err := originOf(w, r)
	if err != nil {
		Problem(w, http.StatusBadRequest, err.Error())
		return
	}
	if state.IsLoopback(origin) {
		Problem(w, http.StatusBadRequest, fmt.Sprintf("%s is on this machine, so its pages need no approval", origin))
		return
	}
	added, err := h.state.Allow(origin)
	if err != nil {
		h.log.Error("approving an origin failed", "origin", origin, "err", err)
		Problem(w, http.StatusInternalServerError, err.Error())
		return
	}
	h.log.Info("origin approved", "origin", origin)
	h.registry.Recheck()
	reply(w, http.StatusOK, struct {
		Origin string `json:"origin"`
		Added  bool   `json:"added"`
	}{origin, added})
}

func (h *Handler) remove(w http.ResponseWriter, r *http.Request) {
	given, err := readOrigin(w, r)
	if err != nil {
		Problem(w, http.StatusBadRequest, err.Error())
		return
	}
	if given == "null" { // never approved here, but it may be sent away
		reply(w, http.StatusOK, removal{given, false, h.registry.Refuse(given)})
		return
	}
	origin, err := state.ParseOrigin(given)
	if err != nil {
		Problem(w, http.StatusBadRequest, err.Error())
		return
	}
	if slices.Contains(h.flags, origin) {
		Problem(w, http.StatusConflict, fmt.Sprintf("%s was approved by --allow-origin: start jsbridge without it", origin))
		return
	}
	removed, err := h.state.Remove(origin)
	if err != nil {
		h.log.Error("removing an origin failed", "origin", origin, "err", err)
		Problem(w, http.StatusInternalServerError, err.Error())
		return
	}
	refused := h.registry.Refuse(origin)
	if !removed && refused == 0 {
		Problem(w, http.StatusNotFound, fmt.Sprintf("%s is neither approved nor waiting", origin))
		return
	}
	h.log.Info("origin refused", "origin", origin)
	h.registry.Recheck()
	reply(w, http.StatusOK, removal{origin, removed, refused})
}

// removal is what became of an origin: whether it was approved, and how many of
// its pages waited.
type removal struct {
	Origin  string `json:"origin"`
	Removed bool   `json:"removed"`
	Refused int    `json:"refused"`
}

// originOf reads the origin of a request, in the form that browsers send.
func originOf(w http.ResponseWriter, r *http.Request) (string, error) {
	origin, err := readOrigin(w, r)
	if err != nil {
		return "", err
	}
	return state.ParseOrigin(origin)
}

// readOrigin reads the request's only member.
func readOrigin(w http.ResponseWriter, r *http.Request) (string, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return "", fmt.Errorf("the body can't be read: %w", err)
	}
	var in struct {
		Origin string `json:"origin"`
	}
	if json.Unmarshal(body, &in) != nil {
		return "", errors.New(`the body must be a JSON object like {"origin": "https://app.example"}`)
	}
	return in.Origin, nil
}

func reply(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		Problem(w, http.StatusInternalServerError, err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/json")
	write(w, status, body)
}

// Problem answers with a JSON problem (RFC 9457).
func Problem(w http.ResponseWriter, status int, detail string) {
	body, _ := json.Marshal(map[string]any{"title": http.StatusText(status), "status": status, "detail": detail}) // texts and a number
	w.Header().Set("Content-Type", "application/problem+json")
	write(w, status, body)
}

func write(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}
