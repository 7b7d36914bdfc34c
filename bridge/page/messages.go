package page

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/coder/websocket"

	"jsbridge/manifest"
	"jsbridge/tenant"
)

// message handles one text message of the page. Nothing in it ends anything but
// this page's own socket.
func (s *socket) message(data []byte) {
	f, err := decodeFrame(data)
	if f.fields == nil {
		s.refuse(closing{websocket.StatusUnsupportedData, err.Error()})
		return
	}
	s.link.Heard()
	if err == nil {
		err = s.handle(f, data)
	}
	if err != nil {
		s.complain(f, err)
	}
}

// complain tells the page, and the log, that a message was refused.
func (s *socket) complain(f frame, err error) {
	s.h.refused.Add(1)
	of := manifest.Clean(f.typ, 64, false)
	s.warn("page message refused", "type", of, "err", err)
	if s.v1 {
		s.sendJSON(errorMsg{"error", err.Error(), of})
	}
}

// warn logs a refusal. A page can earn any number of them.
func (s *socket) warn(what string, args ...any) {
	switch s.logged++; {
	case s.logged <= maxLogged:
		s.log().Warn(what, append(args, "origin", clip(s.origin))...)
	case s.logged == maxLogged+1:
		s.log().Warn("further refusals of this page are not logged", "origin", clip(s.origin))
	}
}

func (s *socket) handle(f frame, data []byte) error {
	switch f.typ {
	case "register_tools":
		return s.register(data)
	case "call_result":
		id, a, err := f.answer()
		if err != nil {
			return s.badAnswer(id, err)
		}
		return s.count(id, s.link.Answer(id, a))
	case "progress":
		id, p, err := f.progress()
		if err != nil {
			return err
		}
		return s.count(id, s.link.Say(id, tenant.Event{Progress: &p}))
	case "log":
		id, l, err := f.log()
		if err != nil {
			return err
		}
		if id == "" {
			s.log().Debug("page log", "page_level", l.Level, "data", manifest.Clean(string(l.Data), maxNote, false))
			return nil
		}
		return s.count(id, s.link.Say(id, tenant.Event{Log: &l}))
	case "ask":
		return s.ask(f)
	case "resource_updated":
		var uri string
		if err := f.text("uri", &uri); err != nil {
			return err
		}
		s.link.Updated(uri)
		return nil
	case "rename_connection":
		return s.rename(f)
	case "leave_channel":
		s.link.Leave()
		s.close(closing{websocket.StatusNormalClosure, "left"})
		return nil
	case "alive":
		return nil // that it spoke is all there is to it
	}
	return fmt.Errorf("unknown message type %.40q", manifest.Clean(f.typ, 64, false))
}

// count passes an answer to a foreign call on as an error. A late one is
// ordinary, since a cancellation and an answer may cross: it is only counted.
func (s *socket) count(call string, err error) error {
	if errors.Is(err, tenant.ErrLateAnswer) {
		s.h.refused.Add(1)
		s.log().Debug("late answer dropped", "call", clip(call))
		return nil
	}
	return err
}

// badAnswer ends the call whose answer could not be read, so that its caller
// does not wait for nothing.
func (s *socket) badAnswer(id string, err error) error {
	if id != "" {
		_ = s.link.Answer(id, tenant.Answer{Err: &tenant.PageError{Message: "the page's answer could not be read: " + err.Error()}})
	}
	return err
}

func (s *socket) register(data []byte) error {
	m, err := manifest.Parse(data, manifest.Limits{Tools: s.h.opts.MaxTools})
	if err != nil {
		return err
	}
	if s.h.opts.RefuseCode {
		leaveOutCode(m)
	}
	reg, err := s.link.Register(m)
	if err != nil {
		return err
	}
	s.joined()
	for _, p := range m.Problems {
		s.warn("page "+cmp.Or(p.Kind, "tool")+" refused", "name", p.Name, "index", p.Index, "reason", p.Reason)
	}
	s.log().Info("page registered", "prefix", reg.Prefix, "tools", len(m.Tools), "prompts", len(m.Prompts), "resources", len(m.Resources), "pending", reg.Pending)
	s.tellRegistered(reg)
	s.link.Watched()
	return nil
}

func leaveOutCode(m *manifest.Manifest) {
	m.Tools = slices.DeleteFunc(m.Tools, func(t *manifest.Tool) bool {
		made := t.Origin != nil && t.Origin.Kind == "code"
		if made {
			m.Problems = append(m.Problems, manifest.Problem{Name: manifest.Clean(t.Name, 256, false), Index: -1, Reason: "it was made from an agent's code, and jsbridge was started with --page-code off"})
		}
		return made
	})
}

func (s *socket) rename(f frame) error {
	var label string
	if err := f.text("appLabel", &label); err != nil {
		return err
	}
	label = manifest.Clean(label, maxLabel, false)
	if label == "" {
		return errors.New("rename_connection: the new name is empty")
	}
	reg, err := s.link.Rename(label)
	if err != nil {
		return err
	}
	s.log().Info("page renamed", "prefix", reg.Prefix)
	s.tellRegistered(reg)
	return nil
}

func (s *socket) tellRegistered(reg tenant.Registration) {
	if !s.v1 || reg.Pending { // it is told once it is approved
		return
	}
	m := reg.Declared
	msg := registeredMsg{Type: "registered", Prefix: reg.Prefix, Tools: []publishedMsg{}, Problems: m.Problems}
	if msg.Problems == nil {
		msg.Problems = []manifest.Problem{}
	}
	for i, t := range m.Tools {
		msg.Tools = append(msg.Tools, publishedMsg{Name: t.Name, Published: reg.ToolNames[i]})
	}
	for i, p := range m.Prompts {
		msg.Prompts = append(msg.Prompts, publishedMsg{Name: p.Name, Published: reg.PromptNames[i]})
	}
	for i, r := range m.Resources {
		if r.Template {
			msg.Templates = append(msg.Templates, publishedMsg{Template: r.URI, Published: reg.ResourceURIs[i]})
		} else {
			msg.Resources = append(msg.Resources, publishedMsg{URI: r.URI, Published: reg.ResourceURIs[i]})
		}
	}
	s.sendJSON(msg)
}

// ask passes a question of the page on. One that can't be is answered at once.
func (s *socket) ask(f frame) error {
	id, callID, kind, err := f.ask()
	if err == nil {
		err = s.link.Ask(callID, id, kind, f.fields["params"])
	}
	if err != nil && id != "" {
		s.Answer(id, tenant.Answer{Err: &tenant.PageError{Message: err.Error()}})
	}
	return s.count(callID, err)
}
