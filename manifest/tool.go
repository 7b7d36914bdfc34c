package manifest

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Tool is one tool of a page, fit to be published. It must not be changed or copied once made.
type Tool struct {
	// Name is the page's own name, verbatim: the key by which a call is routed back. Not fit to be shown uncleaned.
	Name string
	// Title is a cleaned single line, "" if the page gave none. Description is cleaned and may have several lines; it is
	// never "".
	Title, Description string
	// InputSchema is always a JSON object with "type":"object" and "properties". The others are nil when absent:
	// OutputSchema has "type":"object" too, Example is any JSON value, Annotations holds MCP's known hints only, Icons is
	// an array of MCP icons. All are compact JSON.
	InputSchema, OutputSchema, Example, Annotations, Icons json.RawMessage
	// Timeout is the page's own limit for a call; 0 means the server's default. At most 24 hours.
	Timeout time.Duration
	// Dynamic tells that the tool was added at run time, Origin from what; Origin may be nil.
	Dynamic bool
	Origin  *Origin
	// Digest is a hash over all that is published: every field above but Timeout. Tools with equal digests are the same
	// to a client.
	Digest string

	input, output lazyChecker
}

// Origin is what a dynamic tool was made from.
type Origin struct {
	// Kind is "code" or "path".
	Kind string `json:"kind"`
	// Code is the function's body, verbatim, for kind "code".
	Code string `json:"code,omitempty"`
	// Path is where the function is found on window, for kind "path".
	Path string `json:"path,omitempty"`
}

// reservedName reports whether a call of that name is answered by the page's own script.
func reservedName(name string) bool {
	return name == "__register_tool_by_path__" || name == "__register_tool_by_code__" || name == "__unregister_tool__"
}

// draft is what is known of a tool while it is parsed.
type draft struct {
	name  string   // as far as it is text
	notes []string // what was dropped from a tool that is kept
	err   error    // why the tool is refused
}

func (d *draft) notef(format string, args ...any) {
	d.notes = append(d.notes, fmt.Sprintf(format, args...))
}

// parseTool reads one element of tools. The tool is nil if d.err is set.
func parseTool(raw json.RawMessage, l Limits) (*Tool, *draft) {
	d := &draft{}
	f, ok := pick(raw, "name", "description", "params", "inputSchema", "example", "outputSchema", "annotations", "title",
		"icons", "timeoutMs", "source", "origin")
	if !ok {
		d.err = fmt.Errorf("a tool must be an object, not %s", kindOf(raw))
		return nil, d
	}
	t := &Tool{}
	for _, parse := range []func(map[string]json.RawMessage, Limits, *draft) error{
		t.parseName, t.parseDescription, t.parseInput, t.parseTimeout,
	} {
		if d.err = parse(f, l, d); d.err != nil {
			d.notes = nil
			return nil, d
		}
	}
	t.parseOptional(f, l, d)
	t.Digest = t.digest()
	return t, d
}

func (t *Tool) parseName(f map[string]json.RawMessage, l Limits, d *draft) error {
	name, err := ownName(f["name"], l, d)
	if err != nil {
		return err
	}
	if reservedName(name) {
		return fmt.Errorf("the name %s is reserved", name)
	}
	t.Name = name
	return nil
}

// ownName reads a page's own name for something.
func ownName(raw json.RawMessage, l Limits, d *draft) (string, error) {
	if !present(raw) {
		return "", errors.New("the name is missing")
	}
	name, ok := unquote(raw)
	if !ok {
		return "", fmt.Errorf("the name must be text, not %s", kindOf(raw))
	}
	d.name = name
	switch {
	case Clean(name, 0, false) == "":
		return "", errors.New("the name is empty")
	case len(name) > l.NameBytes:
		return "", fmt.Errorf("the name is %d bytes long, the limit is %d", len(name), l.NameBytes)
	case strings.ContainsRune(name, '\uFFFD'):
		// Half a surrogate pair decodes to this, and then no call would find its way back.
		return "", errors.New("the name is not valid Unicode text")
	}
	return name, nil
}

// parseTexts reads the optional title and description.
func parseTexts(f map[string]json.RawMessage, l Limits, d *draft) (title, description string) {
	for _, key := range []string{"title", "description"} {
		if raw := f[key]; present(raw) && kindOf(raw) != "text" {
			d.notef("%s was dropped: it must be text, not %s", key, kindOf(raw))
		}
	}
	return textField(f["title"], l.NameBytes, false), textField(f["description"], l.DescriptionBytes, true)
}

func (t *Tool) parseDescription(f map[string]json.RawMessage, l Limits, d *draft) error {
	if raw := f["description"]; present(raw) {
		s, ok := unquote(raw)
		if !ok {
			return fmt.Errorf("the description must be text, not %s", kindOf(raw))
		}
		t.Description = Clean(s, l.DescriptionBytes, true)
	}
	if t.Description == "" {
		t.Description = fmt.Sprintf("Runs %s in the page.", Clean(d.name, 100, false))
	}
	return nil
}

func (t *Tool) parseInput(f map[string]json.RawMessage, l Limits, _ *draft) (err error) {
	if raw := f["inputSchema"]; present(raw) {
		t.InputSchema, err = objectSchema(raw, "inputSchema", l)
		return err
	}
	raw, ok := f["params"]
	if !ok {
		t.InputSchema = json.RawMessage(`{"type":"object","properties":{}}`)
		return nil
	}
	if kindOf(raw) != "an object" {
		return fmt.Errorf("params must be an object of name → {type, …}, not %s", kindOf(raw))
	}
	if err := checkJSON(raw, "params", l); err != nil {
		return err
	}
	schema, err := fromParams(raw)
	if err != nil {
		return err
	}
	// The shorthand may be a level or two shallower than the schema made from it.
	l.Depth = 3*l.Depth + 3
	t.InputSchema, err = objectSchema(schema, "the schema made from params", l)
	return err
}

func (t *Tool) parseTimeout(f map[string]json.RawMessage, _ Limits, _ *draft) (err error) {
	t.Timeout, err = parseTimeout(f["timeoutMs"])
	return err
}

// parseTimeout reads timeoutMs; 0 means that there is none.
func parseTimeout(raw json.RawMessage) (time.Duration, error) {
	if !present(raw) {
		return 0, nil
	}
	ms, ok := number(raw)
	if !ok || ms <= 0 {
		return 0, fmt.Errorf("timeoutMs must be a positive number of milliseconds, got %q", quotable(string(raw)))
	}
	if ms > float64(maxTimeout.Milliseconds()) {
		return 0, fmt.Errorf("timeoutMs must be at most 24 hours, got %q", quotable(string(raw)))
	}
	// Never 0, which would mean the default.
	return max(time.Duration(ms*float64(time.Millisecond)), 1), nil
}

// parseOptional reads what can be dropped without harm to the tool.
func (t *Tool) parseOptional(f map[string]json.RawMessage, l Limits, d *draft) {
	if raw := f["title"]; present(raw) {
		if s, ok := unquote(raw); ok {
			t.Title = Clean(s, l.NameBytes, false)
		} else {
			d.notef("title was dropped: it must be text, not %s", kindOf(raw))
		}
	}
	if raw := f["outputSchema"]; present(raw) {
		schema, err := objectSchema(raw, "outputSchema", l)
		if err != nil {
			d.notef("outputSchema was dropped: %v", err)
		}
		t.OutputSchema = schema
	}
	if raw := f["example"]; present(raw) {
		example, err := boundedJSON(raw, "example", l)
		if err != nil {
			d.notef("example was dropped: %v", err)
		}
		t.Example = example
	}
	if raw := f["annotations"]; present(raw) {
		t.Annotations = parseAnnotations(raw, l, d)
	}
	if raw := f["icons"]; present(raw) {
		t.Icons = parseIcons(raw, l, d)
	}
	source, _ := unquote(f["source"])
	t.Dynamic = source == "dynamic"
	if raw := f["origin"]; t.Dynamic && present(raw) {
		t.Origin = parseOrigin(raw, l, d)
	}
}

// checkJSON refuses JSON that is too large, nests too deep or is malformed.
func checkJSON(raw json.RawMessage, what string, l Limits) error {
	if depthOf(raw) > l.Depth {
		return fmt.Errorf("%s nests deeper than %d levels", what, l.Depth)
	}
	if !json.Valid(raw) {
		return fmt.Errorf("%s is not valid JSON", what)
	}
	return nil
}

// boundedJSON returns a compact copy of raw if it is within the limits, those of float64 included.
func boundedJSON(raw json.RawMessage, what string, l Limits) (json.RawMessage, error) {
	if err := checkJSON(raw, what, l); err != nil {
		return nil, err
	}
	out, err := compact(raw)
	if err != nil {
		return nil, fmt.Errorf("%s is not valid JSON", what)
	}
	if len(out) > l.SchemaBytes {
		return nil, fmt.Errorf("%s is %d bytes large, the limit is %d", what, len(out), l.SchemaBytes)
	}
	if json.Unmarshal(out, new(any)) != nil { // MCP libraries fail on it, in a place where that costs more than one tool
		return nil, fmt.Errorf("%s has a number out of range", what)
	}
	return slices.Clip(out), nil
}

func (t *Tool) digest() string {
	parts := []string{t.Name, t.Title, t.Description, string(t.InputSchema), string(t.OutputSchema), string(t.Example),
		string(t.Annotations), string(t.Icons)}
	if t.Dynamic {
		parts = append(parts, "dynamic")
	}
	if o := t.Origin; o != nil {
		parts = append(parts, o.Kind, o.Code, o.Path)
	}
	return digestOf(parts)
}

// digestOf hashes what is published. Each part goes in with its length, so that no two lists read the same.
func digestOf(parts []string) string {
	h := sha256.New()
	for _, p := range parts {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(p)))
		h.Write(n[:])
		h.Write([]byte(p))
	}
	return hex.EncodeToString(h.Sum(nil))
}
