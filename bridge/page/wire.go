package page

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/segmentio/encoding/json"

	"jsbridge/manifest"
	"jsbridge/tenant"
)

// The messages of the page protocol, version 1. web/src/wire.ts is this file's
// other half; both are tested against testdata/wire.

// A frame is one decoded message: its type and its fields, by exact name.
type frame struct {
	typ    string
	fields map[string]json.RawMessage
}

// errNotObject closes the socket with 1003: the peer speaks something else.
var errNotObject = errors.New("not this protocol: a frame must be one JSON object in a text message")

// decodeFrame accepts any JSON object with a text "type".
func decodeFrame(data []byte) (frame, error) {
	// A frame that was not UTF-8 would pass encoding/json, mangled.
	if !utf8.Valid(data) {
		return frame{}, errors.New("not this protocol: a text frame must be valid UTF-8")
	}
	if b := bytes.TrimLeft(data, " \t\r\n"); len(b) == 0 || b[0] != '{' {
		return frame{}, errNotObject
	}
	if manifest.DeeperThan(data, maxFrameDepth) {
		return frame{}, errNotObject
	}
	f := frame{fields: make(map[string]json.RawMessage, 8)} // the decoder's own would be large
	// The frame is nobody else's: what it holds need not be copied.
	if rest, err := json.Parse(data, &f.fields, json.ZeroCopy); err != nil || len(rest) > 0 {
		return frame{}, errNotObject
	}
	if len(data) > smallFrame {
		for name, raw := range f.fields {
			if len(raw) < len(data)/2 { // what is kept of it must not keep all the rest
				f.fields[name] = bytes.Clone(raw)
			}
		}
	}
	return f, f.text("type", &f.typ)
}

// smallFrame is the size up to which whatever is kept may keep its whole frame.
const smallFrame = 1 << 10

// maxFrameDepth is how deep a frame may nest, as encoding/json has it: its decoder
// here has no limit.
const maxFrameDepth = 10_000

// text reads a required text field.
func (f frame) text(name string, into *string) error {
	raw, ok := f.fields[name]
	if !ok {
		return fmt.Errorf("%s: the field %q is missing", f.label(), name)
	}
	if !isText(raw) {
		return fmt.Errorf("%s: the field %q must be text", f.label(), name)
	}
	if bytes.IndexByte(raw, '\\') < 0 { // it stands for itself
		*into = string(raw[1 : len(raw)-1])
		return nil
	}
	if json.Unmarshal(raw, into) != nil {
		return fmt.Errorf("%s: the field %q must be text", f.label(), name)
	}
	return nil
}

// number reads an optional finite number.
func (f frame) number(name string, into *float64) error {
	raw, ok := f.fields[name]
	if !ok {
		return nil
	}
	if json.Unmarshal(raw, into) != nil || bytes.Equal(raw, []byte("null")) || math.IsInf(*into, 0) {
		return fmt.Errorf("%s: the field %q must be a number", f.label(), name)
	}
	return nil
}

func (f frame) optionalText(name string, into *string) error {
	if _, ok := f.fields[name]; !ok {
		return nil
	}
	return f.text(name, into)
}

func (f frame) label() string {
	if f.typ == "" {
		return "frame"
	}
	return f.typ
}

func isText(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '"' }

// tooDeep refuses a field that clients could not read.
func (f frame) tooDeep(name string) error {
	if manifest.TooDeep(f.fields[name]) {
		return fmt.Errorf("%s: the field %q nests deeper than %d levels", f.label(), name, manifest.MaxDepth)
	}
	return nil
}

// answer reads a call_result. Presence decides, not truth: an error with an
// empty message is an error.
func (f frame) answer() (id string, a tenant.Answer, err error) {
	if err := f.text("id", &id); err != nil {
		return "", a, err
	}
	raw, failed := f.fields["error"]
	if !failed {
		a.Result = f.fields["result"]
		return id, a, f.tooDeep("result")
	}
	a.Err = &tenant.PageError{}
	switch {
	case isText(raw):
		err = json.Unmarshal(raw, &a.Err.Message)
	case len(raw) > 0 && raw[0] == '{':
		e := frame{typ: "call_result error"}
		if err = json.Unmarshal(raw, &e.fields); err == nil {
			// A page error's name and code are hints; a wrong one is no reason
			// to lose the message.
			_ = e.optionalText("name", &a.Err.Name)
			_ = e.optionalText("code", &a.Err.Code)
			err = e.text("message", &a.Err.Message)
		}
	default:
		err = errors.New(`call_result: the field "error" must be text or an object with a "message"`)
	}
	return id, a, err
}

func (f frame) progress() (id string, p tenant.Progress, err error) {
	err = errors.Join(f.text("id", &id), f.number("progress", &p.Progress), f.number("total", &p.Total), f.optionalText("message", &p.Message))
	if _, ok := f.fields["progress"]; !ok && err == nil {
		err = errors.New(`progress: the field "progress" is missing`)
	}
	p.Message = manifest.Clean(p.Message, maxNote, false)
	return id, p, err
}

var logLevels = map[string]bool{"debug": true, "info": true, "notice": true, "warning": true, "error": true, "critical": true, "alert": true, "emergency": true}

func (f frame) log() (id string, l tenant.Log, err error) {
	err = errors.Join(f.optionalText("id", &id), f.text("level", &l.Level), f.optionalText("logger", &l.Logger))
	if err == nil && !logLevels[l.Level] {
		err = fmt.Errorf("log: %.20q is no level; use debug, info, notice, warning, error, critical, alert or emergency", l.Level)
	}
	l.Logger = manifest.Clean(l.Logger, maxNote, false)
	err = cmp.Or(err, f.tooDeep("data"))
	l.Data = f.fields["data"]
	if l.Data == nil {
		l.Data = json.RawMessage("null")
	}
	return id, l, err
}

// ask gives the id as soon as it is known, so that a bad question can be
// answered.
func (f frame) ask() (id, callID string, kind tenant.AskKind, err error) {
	var text string
	if err = f.text("id", &id); err != nil || len(id) > maxNote {
		return "", "", "", cmp.Or(err, errors.New("ask: the id is too long"))
	}
	if err = errors.Join(f.text("callId", &callID), f.text("kind", &text)); err != nil {
		return id, "", "", err
	}
	switch kind = tenant.AskKind(text); kind {
	case tenant.Elicit, tenant.Sample, tenant.ListRoots:
		return id, callID, kind, f.tooDeep("params")
	}
	return id, "", "", fmt.Errorf("ask: %.20q can't be asked; the kinds are elicit, sample and roots", text)
}

// Server to page. Optional fields are left out when empty, so that an older
// page gets just what it knows.

type welcomeMsg struct {
	Type         string    `json:"type"`
	ConnectionID string    `json:"connectionId"`
	State        string    `json:"state"`
	Reason       string    `json:"reason,omitempty"` // why it is pending
	Channel      string    `json:"channel,omitempty"`
	Limits       limitsMsg `json:"limits"`
}

type limitsMsg struct {
	FrameBytes int64 `json:"frameBytes"`
	Tools      int   `json:"tools"`
}

type initMsg struct {
	Type         string `json:"type"`
	ResolvedName string `json:"resolvedName"`
	Recreated    bool   `json:"recreated"`
}

type registeredMsg struct {
	Type     string             `json:"type"`
	Prefix   string             `json:"prefix"`
	Tools    []publishedMsg     `json:"tools"`
	Problems []manifest.Problem `json:"problems"`
	// Left out when empty.
	Prompts   []publishedMsg `json:"prompts,omitempty"`
	Resources []publishedMsg `json:"resources,omitempty"`
	Templates []publishedMsg `json:"resourceTemplates,omitempty"`
}

// publishedMsg has a name, a URI or a template.
type publishedMsg struct {
	Name      string `json:"name,omitempty"`
	URI       string `json:"uri,omitempty"`
	Template  string `json:"uriTemplate,omitempty"`
	Published string `json:"published"`
}

type watchMsg struct {
	Type string `json:"type"`
	URI  string `json:"uri"`
}

type answerMsg struct {
	Type   string            `json:"type"`
	ID     string            `json:"id"`
	Result json.RawMessage   `json:"result,omitempty"`
	Error  *tenant.PageError `json:"error,omitempty"`
}

type cancelMsg struct {
	Type   string `json:"type"`
	ID     string `json:"id"`
	Reason string `json:"reason"`
}

type identifyMsg struct {
	Type  string `json:"type"`
	Label string `json:"label,omitempty"`
}

type moveMsg struct {
	Type    string `json:"type"`
	Channel string `json:"channel"` // a connect string
}

type approvedMsg struct {
	Type string `json:"type"`
}

type probeMsg struct {
	Type string `json:"type"`
	ID   string `json:"id"`
}

type errorMsg struct {
	Type    string `json:"type"`
	Message string `json:"message"`
	Of      string `json:"of,omitempty"`
}

// encodeCall writes a call frame around the arguments, which pass untouched.
func encodeCall(c tenant.CallFrame, v1 bool) []byte {
	b := make([]byte, 0, len(c.Args)+len(c.Tool)+len(c.Agent.Name)+len(c.Agent.Capabilities)+len(c.Retry.Responses)+len(c.Retry.State)+256)
	b = append(b, `{"type":`...)
	b = appendJSON(b, c.Method)
	b = append(b, `,"id":`...)
	b = appendJSON(b, c.ID)
	if c.Method == tenant.RunTool {
		b = append(b, `,"name":`...)
		b = appendJSON(b, c.Tool)
		b = append(b, `,"args":`...)
		b = append(b, c.Args...)
	} else {
		b = append(b, ',')
		b = append(b, c.Args[1:len(c.Args)-1]...) // an object's members, of which it has some
	}
	if v1 {
		b = append(b, `,"timeoutMs":`...)
		b = strconv.AppendInt(b, max(c.Timeout, time.Millisecond).Milliseconds(), 10)
		b = append(b, `,"progress":`...)
		b = strconv.AppendBool(b, c.Progress)
		b = append(b, `,"agent":{"name":`...)
		b = appendJSON(b, c.Agent.Name)
		b = append(b, `,"version":`...)
		b = appendJSON(b, c.Agent.Version)
		if len(c.Agent.Capabilities) > 0 {
			b = append(b, `,"capabilities":`...)
			b = append(b, c.Agent.Capabilities...)
		}
		b = append(b, '}')
		if c.Retry.Responses != nil {
			b = append(b, `,"inputResponses":`...)
			b = append(b, c.Retry.Responses...)
		}
		if c.Retry.State != "" {
			b = append(b, `,"requestState":`...)
			b = appendJSON(b, c.Retry.State)
		}
	}
	return append(b, '}')
}

func appendJSON[T ~string](b []byte, text T) []byte { return json.AppendEscape(b, string(text), 0) }
