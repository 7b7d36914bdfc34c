package dashboard

import (
	"net/http"
	"time"
)

// streamWrite bounds each write to a stream: a tab that stopped reading is cut.
const streamWrite = 10 * time.Second

// events is the stream of events: GET /api/events.
func (h *Handler) events(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodHead {
		startStream(w)
		return
	}
	at, first, err := h.hub.join(r.Header.Get("Last-Event-ID"), h.server(r))
	if err != nil {
		w.Header().Set("Retry-After", "5")
		Problem(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	defer h.hub.leave()
	startStream(w)
	s := stream{w, http.NewResponseController(w)}
	if first == nil {
		first = []byte(": resumed\n\n") // so that the headers go out
	}
	if s.write(first) != nil {
		return
	}
	heartbeat := time.NewTicker(h.opts.Heartbeat)
	defer heartbeat.Stop()
	for {
		events, more, ok := h.hub.after(at)
		if !ok {
			return
		}
		if len(events) > 0 {
			if s.write(events...) != nil {
				return
			}
			at += uint64(len(events))
			heartbeat.Reset(h.opts.Heartbeat)
			continue
		}
		select {
		case <-more:
		case <-heartbeat.C:
			if s.write([]byte(": heartbeat\n\n")) != nil {
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}

func startStream(w http.ResponseWriter) {
	secure(w)
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
}

// stream is a response that stays open.
type stream struct {
	w  http.ResponseWriter
	rc *http.ResponseController
}

func (s stream) write(parts ...[]byte) error {
	for _, b := range parts {
		// A writer that knows no deadlines has nobody behind it who stalls.
		_ = s.rc.SetWriteDeadline(time.Now().Add(streamWrite))
		if _, err := s.w.Write(b); err != nil {
			return err
		}
	}
	return s.rc.Flush()
}
