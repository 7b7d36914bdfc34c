package page

import (
	"slices"
	"sync/atomic"

	"github.com/coder/websocket"
)

// Stats is what was counted since the start. The maps have an entry for each of
// their keys, also where nothing was counted.
type Stats struct {
	// MessagesRefused were answered with an error, or dropped.
	MessagesRefused uint64
	// Refused counts sockets that were not let in, by reason: "unknown" connect
	// strings, a "limit" that was reached, the "handshake", too many that are being
	// refused ("busy"), or the server's end ("stopping").
	Refused map[string]uint64
	// Closed counts the ends of sockets that were in, by close code: one of those
	// that the page protocol uses, or "other".
	Closed map[string]uint64
}

// refusal is why a socket was not let in.
type refusal int

const (
	unknownRefusal refusal = iota
	limitRefusal
	handshakeRefusal
	busyRefusal
	stoppingRefusal
	refusals
)

var refusalNames = [refusals]string{"unknown", "limit", "handshake", "busy", "stopping"}

// A page may send any close code, so that the others share an entry, the last.
var (
	codes = [...]websocket.StatusCode{websocket.StatusNormalClosure, websocket.StatusGoingAway, websocket.StatusUnsupportedData, websocket.StatusNoStatusRcvd,
		websocket.StatusAbnormalClosure, websocket.StatusPolicyViolation, websocket.StatusMessageTooBig, websocket.StatusInternalError, websocket.StatusTryAgainLater,
		codePageHide, codeUnknownTenant, codeTooSlow, codeReplaced, 0}
	codeNames = [...]string{"1000", "1001", "1003", "1005", "1006", "1008", "1009", "1011", "1013", "4000", "4404", "4408", "4409", "other"}
)

type counts struct {
	refused [refusals]atomic.Uint64
	closed  [len(codes)]atomic.Uint64
}

// Stats counts.
func (h *Handler) Stats() Stats {
	s := Stats{MessagesRefused: uint64(h.refused.Load()), Refused: make(map[string]uint64, refusals), Closed: make(map[string]uint64, len(codes))}
	for i, name := range refusalNames {
		s.Refused[name] = h.counts.refused[i].Load()
	}
	for i, name := range codeNames {
		s.Closed[name] = h.counts.closed[i].Load()
	}
	return s
}

func (c *counts) refuse(r refusal) { c.refused[r].Add(1) }

func (c *counts) close(code websocket.StatusCode) {
	i := slices.Index(codes[:], code)
	if i < 0 {
		i = len(codes) - 1
	}
	c.closed[i].Add(1)
}

// refusalFor is the reason that a close code tells.
func refusalFor(code websocket.StatusCode) refusal {
	switch code {
	case websocket.StatusGoingAway:
		return stoppingRefusal
	case websocket.StatusTryAgainLater:
		return limitRefusal
	}
	return unknownRefusal
}
