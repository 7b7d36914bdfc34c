package page

import (
	"fmt"

	"jsbridge/tenant"
)

// How a socket is a [tenant.Transport].

func (s *socket) Call(c tenant.CallFrame) error { return s.send(encodeCall(c, s.v1)) }

func (s *socket) Cancel(id, reason string) {
	if s.v1 {
		s.sendJSON(cancelMsg{"cancel", id, reason})
	}
}

func (s *socket) Probe() {
	if s.v1 {
		s.sendJSON(probeMsg{"probe", fmt.Sprint(s.probes.Add(1))})
	}
}

func (s *socket) Answer(askID string, a tenant.Answer) {
	if s.v1 {
		s.sendJSON(answerMsg{"answer", askID, a.Result, a.Err})
	}
}

func (s *socket) Watch(uri string, on bool) {
	if !s.v1 {
		return
	}
	msg := watchMsg{"unsubscribe", uri}
	if on {
		msg.Type = "subscribe"
	}
	s.sendJSON(msg)
}

func (s *socket) Complain(message string) {
	if s.v1 {
		s.sendJSON(errorMsg{Type: "error", Message: message})
	}
}

func (s *socket) Identify(label string) { s.sendJSON(identifyMsg{"identify", label}) }

func (s *socket) Approved(reg *tenant.Registration) {
	s.greeting.Lock()
	defer s.greeting.Unlock()
	if !s.greeted { // the welcome will say it
		return
	}
	s.log().Info("page approved", "origin", clip(s.origin))
	s.ws.SetReadLimit(s.h.opts.MaxFrame)
	if s.v1 {
		s.sendJSON(approvedMsg{"approved"})
	}
	if reg != nil {
		s.tellRegistered(*reg)
	}
}

func (s *socket) Registered(reg tenant.Registration) { s.tellRegistered(reg) }

func (s *socket) Move(to tenant.Connect) { s.sendJSON(moveMsg{"move_channel", to.String()}) }

func (s *socket) Close(r tenant.Reason) { s.close(closingFor(r)) }
