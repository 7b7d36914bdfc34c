package dashboard

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"jsbridge/bridge/state"
)

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
	for _, o := range h.opts.Flags {
		out.Approved = append(out.Approved, approvedOrigin{Origin: o, By: "flag"})
	}
	for _, o := range h.opts.State.Origins() {
		a := approvedOrigin{Origin: o.Origin, By: "user"}
		if !o.At.IsZero() {
			a.At = &o.At
		}
		out.Approved = append(out.Approved, a)
	}
	for _, o := range h.opts.Registry.Waiting() {
		out.Waiting = append(out.Waiting, waitingOrigin{o.Origin, o.Pages, o.Since, o.Origin != "null"})
	}
	reply(w, http.StatusOK, out)
}

func (h *Handler) approve(w http.ResponseWriter, r *http.Request) {
	given, ok := readOrigin(w, r)
	if !ok {
		return
	}
	origin, err := state.ParseOrigin(given)
	if err != nil {
		Problem(w, http.StatusBadRequest, err.Error())
		return
	}
	if state.IsLoopback(origin) {
		Problem(w, http.StatusBadRequest, fmt.Sprintf("%s is on this machine, so its pages need no approval", origin))
		return
	}
	added, err := h.opts.State.Allow(origin)
	if err != nil {
		h.log.Error("approving an origin failed", "origin", origin, "err", err)
		Problem(w, http.StatusInternalServerError, err.Error())
		return
	}
	h.log.Info("origin approved", "origin", origin)
	h.opts.Registry.Recheck()
	reply(w, http.StatusOK, struct {
		Origin string `json:"origin"`
		Added  bool   `json:"added"`
	}{origin, added})
}

func (h *Handler) remove(w http.ResponseWriter, r *http.Request) {
	given, ok := readOrigin(w, r)
	if !ok {
		return
	}
	if given == "null" { // never approved here, but it may be sent away
		reply(w, http.StatusOK, removal{given, false, h.opts.Registry.Refuse(given)})
		return
	}
	origin, err := state.ParseOrigin(given)
	if err != nil {
		Problem(w, http.StatusBadRequest, err.Error())
		return
	}
	if slices.Contains(h.opts.Flags, origin) {
		Problem(w, http.StatusConflict, fmt.Sprintf("%s was approved by --allow-origin: start jsbridge without it", origin))
		return
	}
	removed, err := h.opts.State.Remove(origin)
	if err != nil {
		h.log.Error("removing an origin failed", "origin", origin, "err", err)
		Problem(w, http.StatusInternalServerError, err.Error())
		return
	}
	refused := h.opts.Registry.Refuse(origin)
	if !removed && refused == 0 {
		Problem(w, http.StatusNotFound, fmt.Sprintf("%s is neither approved nor waiting", origin))
		return
	}
	h.log.Info("origin refused", "origin", origin)
	h.opts.Registry.Recheck()
	reply(w, http.StatusOK, removal{origin, removed, refused})
}

// removal is what became of an origin: whether it was approved, and how many of
// its pages waited.
type removal struct {
	Origin  string `json:"origin"`
	Removed bool   `json:"removed"`
	Refused int    `json:"refused"`
}

// readOrigin reads the request's only member, or answers that it can't.
func readOrigin(w http.ResponseWriter, r *http.Request) (string, bool) {
	var in struct {
		Origin string `json:"origin"`
	}
	ok := read(w, r, &in)
	return in.Origin, ok
}
