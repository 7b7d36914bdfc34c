package tenant

import (
	"encoding/json"
	"errors"
	"fmt"
)

// What the script of a model's page does with its calls.

func planTake(m *model, s *step) (string, func()) {
	sock := m.socketWith(s, func(s *modelSocket) bool { return !s.frozen && len(s.inbox) > 0 })
	if sock == nil {
		return "", nil
	}
	then := make([]string, min(len(sock.inbox), 4))
	for i := range then {
		then[i] = []string{"keeps it", "answers", "answers", "throws"}[s.choose(1+i%3, 4)]
	}
	return fmt.Sprintf("%s takes %d calls: %q", sock.tab, len(then), then), func() {
		for _, then := range then {
			h, ok := sock.take()
			switch {
			case !ok:
			case then == "keeps it":
				m.mu.Lock()
				sock.held = append(sock.held, h)
				m.mu.Unlock()
			default:
				sock.answer(h, then == "throws")
			}
		}
	}
}

// take is the script's turn: it runs one call.
func (s *modelSocket) take() (held, bool) {
	m := s.m
	m.mu.Lock()
	if s.dead || len(s.inbox) == 0 {
		m.mu.Unlock()
		return held{}, false
	}
	f := s.inbox[0]
	s.inbox = s.inbox[1:]
	s.seen = f.ID
	c := m.calls[callOf(f)]
	if c.taken++; c.taken > 1 {
		m.failLocked("call %d ran twice", c.n)
	}
	m.mu.Unlock()
	s.link.Heard()
	return held{f.ID, c}, true
}

func (s *modelSocket) answer(h held, throws bool) {
	text := h.call.mark() + " answers"
	a := Answer{Result: fmt.Appendf(nil, "%q", text)}
	if throws {
		text = h.call.mark() + " throws"
		a = Answer{Err: &PageError{Message: text}}
	} else {
		text = string(a.Result)
	}
	err := s.link.Answer(h.id, a)
	m := s.m
	m.mu.Lock()
	defer m.mu.Unlock()
	s.done = append(s.done, h.id)
	switch {
	case err == nil && h.call.answer != "":
		m.failLocked("two answers to call %d were taken", h.call.n)
	case err == nil:
		h.call.answer = text
	case errors.Is(err, ErrLateAnswer):
		h.call.late = true
	default:
		m.failLocked("the answer to call %d was refused: %v", h.call.n, err)
	}
}

// hold picks a call that a script has taken and not answered; take it out if it is to
// be answered.
func (m *model) hold(s *step, out bool) (*modelSocket, held) {
	sock := m.socketWith(s, func(s *modelSocket) bool { return !s.frozen && len(s.held) > 0 })
	if sock == nil {
		return nil, held{}
	}
	i := s.choose(1, len(sock.held))
	h := sock.held[i]
	if out {
		sock.held = append(sock.held[:i:i], sock.held[i+1:]...)
	}
	return sock, h
}

func planAnswer(m *model, s *step) (string, func()) {
	sock, h := m.hold(s, true)
	if sock == nil {
		return "", nil
	}
	throws := s.choose(2, 4) == 0
	return fmt.Sprintf("%s answers call %d, throws: %v", sock.tab, h.call.n, throws), func() { sock.answer(h, throws) }
}

func planSay(m *model, s *step) (string, func()) {
	sock, h := m.hold(s, false)
	if sock == nil {
		return "", nil
	}
	e := Event{Progress: &Progress{Progress: 1, Message: h.call.mark()}}
	if s.choose(2, 2) == 0 {
		e = Event{Log: &Log{Level: "info", Logger: h.call.mark()}}
	}
	return fmt.Sprintf("%s speaks of call %d", sock.tab, h.call.n), func() {
		if err := sock.link.Say(h.id, e); err != nil && !errors.Is(err, ErrLateAnswer) {
			m.failf("what %s said of call %d was refused: %v", sock.tab, h.call.n, err)
		}
	}
}

func planAsk(m *model, s *step) (string, func()) {
	sock, h := m.hold(s, false)
	if sock == nil {
		return "", nil
	}
	id := fmt.Sprintf("question %d", m.done["ask"])
	sock.asked[id] = h.call.n
	h.call.asked += modelAsk
	return fmt.Sprintf("%s asks during call %d", sock.tab, h.call.n), func() {
		if err := sock.link.Ask(h.id, id, Elicit, json.RawMessage(h.call.mark())); err != nil && !errors.Is(err, ErrLateAnswer) {
			m.failf("what %s asked in call %d was refused: %v", sock.tab, h.call.n, err)
		}
	}
}

// planForeign has a page meddle with a call of another, or of nobody.
func planForeign(m *model, s *step) (string, func()) {
	sock := m.socket(s)
	if sock == nil {
		return "", nil
	}
	id := []string{"", "1", "1-0", "-", "0-1", "999-1", "x-y"}[s.choose(1, 7)]
	var others []*modelCall
	for _, c := range m.calls {
		if !c.over && c.sock != nil && c.sock != sock {
			others = append(others, c)
		}
	}
	if len(others) > 0 {
		id = others[s.choose(1, len(others))].id
	}
	stolen := "stolen by " + sock.tab.String()
	return fmt.Sprintf("%s answers the call %q, of another", sock.tab, id), func() {
		for what, err := range map[string]error{
			"speak of":   sock.link.Say(id, Event{Progress: &Progress{Message: stolen}}),
			"ask during": sock.link.Ask(id, "stolen", Elicit, json.RawMessage(stolen)),
			"answer":     sock.link.Answer(id, Answer{Result: fmt.Appendf(nil, "%q", stolen)}),
		} {
			if !errors.Is(err, ErrForeignCall) {
				m.failf("%s may %s the call %q of another: %v", sock.tab, what, id, err)
			}
		}
	}
}

// callOf is the number of the model's call that a frame is.
func callOf(f CallFrame) int {
	var args struct{ Call int }
	_ = json.Unmarshal(f.Args, &args) // as run made it
	return args.Call
}

func planAgain(m *model, s *step) (string, func()) {
	sock := m.socketWith(s, func(s *modelSocket) bool { return len(s.done) > 0 })
	if sock == nil {
		return "", nil
	}
	id := sock.done[s.choose(1, len(sock.done))]
	return fmt.Sprintf("%s answers the call %q again", sock.tab, id), func() {
		if err := sock.link.Answer(id, Answer{Result: json.RawMessage(`"again"`)}); !errors.Is(err, ErrLateAnswer) {
			m.failf("%s may answer %q twice: %v", sock.tab, id, err)
		}
	}
}
