package dashboard

import (
	"encoding/json"
	"net/http"
)

const noCall = "there is no such call: jsbridge keeps the last 1000, of this start"

func (h *Handler) callDetails(w http.ResponseWriter, r *http.Request) {
	c, ok := h.opts.Journal.find(r.PathValue("id"))
	if !ok {
		Problem(w, http.StatusNotFound, noCall)
		return
	}
	reply(w, http.StatusOK, c)
}

func (h *Handler) cancel(w http.ResponseWriter, r *http.Request) {
	var none struct{}
	if !read(w, r, &none) {
		return
	}
	names := h.opts.Journal.names(r.PathValue("id"))
	known, ran := h.opts.Journal.cancel(r.PathValue("id"))
	switch {
	case !known:
		Problem(w, http.StatusNotFound, noCall)
	case !ran:
		Problem(w, http.StatusConflict, "this call has ended already")
	default:
		h.log.Info("call cancelled in the dashboard", names...)
		done(w)
	}
}

// callLog is every call as a line of JSON, oldest first.
func (h *Handler) callLog(w http.ResponseWriter, _ *http.Request) {
	secure(w)
	w.Header().Set("Content-Type", "application/jsonl")
	w.Header().Set("Content-Disposition", `attachment; filename="jsbridge-calls.jsonl"`)
	s := stream{w, http.NewResponseController(w)}
	for _, c := range h.opts.Journal.all() {
		line, err := json.Marshal(c)
		if err != nil {
			h.log.Error("encoding a call failed", "entry", c.ID, "err", err)
			continue
		}
		if s.write(append(line, '\n')) != nil {
			return
		}
	}
}
