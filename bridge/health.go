package bridge

import (
	"encoding/json"
	"net/http"

	"jsbridge/tenant"
)

// health is what GET /healthz answers, always with 200: the process lives and
// serves. It also tells jsbridge from whatever else may have the port.
type health struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// readiness is what GET /readyz answers: 200 if pages and clients are taken, else
// 503 and the reason.
type readiness struct {
	Ready  bool   `json:"ready"`
	Reason string `json:"reason,omitempty"`
	Calls  int    `json:"calls"` // that have not ended
}

func (s *Server) healthz(w http.ResponseWriter, _ *http.Request) {
	tell(w, http.StatusOK, health{"jsbridge", s.opts.Version})
}

func (s *Server) readyz(w http.ResponseWriter, _ *http.Request) {
	r := readiness{Ready: true, Calls: s.registry.Running()}
	switch {
	case s.stopping.Load():
		r.Ready, r.Reason = false, tenant.ErrStopping.Error()
	case !s.started.Load():
		r.Ready, r.Reason = false, "jsbridge is starting"
	}
	status := http.StatusOK
	if !r.Ready {
		status = http.StatusServiceUnavailable
	}
	tell(w, status, r)
}

func tell(w http.ResponseWriter, status int, v any) {
	body, _ := json.Marshal(v) // texts, a number and a truth
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}
