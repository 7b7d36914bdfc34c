package manifest

import (
	"encoding/json"
	"fmt"
	"math"
	"mime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Resource is one resource or resource template of a page, fit to be published. It must not be changed or copied once
// made.
type Resource struct {
	// URI is the page's own form, verbatim: relative (cart, /cart) or absolute (https://…), and a URI template if
	// Template is set. It is the key by which a request is routed back; [Resource.Published] is what clients see.
	URI      string
	Template bool
	// Name and Title are cleaned single lines, Description may have several. Name is never "".
	Name, Title, Description string
	// MIMEType is that of the content, "" if the page gave none.
	MIMEType string
	// Size is the length of the content in bytes, nil if the page gave none. Templates have none.
	Size *int64
	// Annotations holds MCP's audience, priority and lastModified only, Icons is an array of MCP icons. Both are compact
	// JSON, nil when absent.
	Annotations, Icons json.RawMessage
	// Completes are the variables of a template whose values the page can complete, in the page's order.
	Completes []string
	// Timeout is the page's own limit for a request; 0 means the server's default. At most 24 hours.
	Timeout time.Duration
	// Dynamic tells that the resource came by the tool bus.
	Dynamic bool
	// Digest is a hash over all that is published: every field above but Timeout.
	Digest string

	compile sync.Once
	form    *uriForm // set by compile
}

// compiled returns the resource's URI taken apart.
func (r *Resource) compiled() *uriForm {
	r.compile.Do(func() {
		form, err := newURIForm(r.URI, r.Template)
		if err != nil { // a Resource that was not made by Parse
			form = literalForm(r.URI)
		}
		r.form = form
	})
	return r.form
}

// parseResource reads one element of resources, or of resourceTemplates if template is set. The resource is nil if d.err
// is set.
func parseResource(raw json.RawMessage, template bool, l Limits) (*Resource, *draft) {
	d := &draft{}
	r := &Resource{Template: template}
	key := "uri"
	if template {
		key = "uriTemplate"
	}
	f, ok := pick(raw, key, "name", "title", "description", "mimeType", "size", "annotations", "icons", "timeoutMs",
		"complete", "source")
	if !ok {
		d.err = fmt.Errorf("a resource must be an object, not %s", kindOf(raw))
		return nil, d
	}
	if d.err = r.parseURI(f[key], key, d); d.err != nil {
		return nil, d
	}
	if r.Timeout, d.err = parseTimeout(f["timeoutMs"]); d.err != nil {
		return nil, d
	}
	r.parseOptional(f, l, d)
	r.Digest = r.digest()
	return r, d
}

func (r *Resource) parseURI(raw json.RawMessage, key string, d *draft) error {
	if !present(raw) {
		return fmt.Errorf("the %s is missing", key)
	}
	own, ok := unquote(raw)
	if !ok {
		return fmt.Errorf("the %s must be text, not %s", key, kindOf(raw))
	}
	d.name = own
	form, err := newURIForm(own, r.Template)
	if err != nil {
		return fmt.Errorf("the %s %w", key, err)
	}
	r.URI = own
	r.compile.Do(func() { r.form = form })
	return nil
}

// parseOptional reads what can be dropped without harm to the resource.
func (r *Resource) parseOptional(f map[string]json.RawMessage, l Limits, d *draft) {
	if raw := f["name"]; present(raw) && kindOf(raw) != "text" {
		d.notef("name was dropped: it must be text, not %s", kindOf(raw))
	}
	if r.Name = textField(f["name"], l.NameBytes, false); r.Name == "" {
		r.Name = Clean(r.URI, l.NameBytes, false)
	}
	r.Title, r.Description = parseTexts(f, l, d)
	if raw := f["mimeType"]; present(raw) {
		r.MIMEType = parseMIMEType(raw, d)
	}
	if raw := f["size"]; present(raw) && !r.Template {
		r.Size = parseSize(raw, d)
	}
	if raw := f["annotations"]; present(raw) {
		r.Annotations = parseContentAnnotations(raw, l, d)
	}
	if raw := f["icons"]; present(raw) {
		r.Icons = parseIcons(raw, l, d)
	}
	if raw := f["complete"]; present(raw) && r.Template {
		r.Completes = r.parseCompletes(raw, d)
	}
	source, _ := unquote(f["source"])
	r.Dynamic = source == "dynamic"
}

func (r *Resource) parseCompletes(raw json.RawMessage, d *draft) (out []string) {
	ok := eachItem(raw, func(raw json.RawMessage) bool {
		name, _ := unquote(raw)
		switch {
		case slices.Contains(out, name):
		case slices.Contains(r.form.variables, name):
			out = append(out, name)
		default:
			d.notef("complete names %s, which is no variable of the template", show(raw))
			return len(d.notes) < maxIcons // one list of slips is enough
		}
		return true
	})
	if !ok {
		d.notef("complete was dropped: it must be an array of variables, not %s", kindOf(raw))
	}
	return out
}

func parseMIMEType(raw json.RawMessage, d *draft) string {
	s, _ := unquote(raw)
	if s = strings.TrimSpace(s); len(s) <= maxMIMEBytes && Clean(s, 0, false) == s {
		if typ, _, err := mime.ParseMediaType(s); err == nil && strings.Contains(typ, "/") {
			return s
		}
	}
	d.notef("mimeType was dropped: it must be text like text/plain, got %s", show(raw))
	return ""
}

func parseSize(raw json.RawMessage, d *draft) *int64 {
	n, ok := number(raw)
	if !ok || n < 0 || n > 1<<53 || n != math.Trunc(n) {
		d.notef("size was dropped: it must be a whole number of bytes, got %s", show(raw))
		return nil
	}
	size := int64(n)
	return &size
}

// parseContentAnnotations keeps what MCP knows of a resource's annotations, where it has the right type, in MCP's order.
func parseContentAnnotations(raw json.RawMessage, l Limits, d *draft) json.RawMessage {
	if kindOf(raw) != "an object" {
		d.notef("annotations was dropped: it must be an object, not %s", kindOf(raw))
		return nil
	}
	if err := checkJSON(raw, "annotations", l); err != nil {
		d.notef("annotations was dropped: %v", err)
		return nil
	}
	f, _ := pick(raw, "audience", "priority", "lastModified")
	var out []field
	if raw := f["audience"]; present(raw) {
		if audience := parseAudience(raw); audience != nil {
			out = append(out, field{"audience", audience})
		} else {
			d.notef(`annotations.audience was dropped: it must be an array of "user" and "assistant"`)
		}
	}
	if raw := f["priority"]; present(raw) {
		if n, ok := number(raw); ok && n >= 0 && n <= 1 {
			out = append(out, field{"priority", json.RawMessage(strconv.FormatFloat(n, 'g', -1, 64))})
		} else {
			d.notef("annotations.priority was dropped: it must be a number from 0 to 1, got %s", show(raw))
		}
	}
	if raw := f["lastModified"]; present(raw) {
		if s, _ := unquote(raw); isTime(s) {
			out = append(out, field{"lastModified", appendString(nil, s)})
		} else {
			d.notef("annotations.lastModified was dropped: it must be text like 2025-01-12T15:00:58Z, got %s", show(raw))
		}
	}
	if len(out) == 0 {
		return nil
	}
	return encodeObject(out)
}

// parseAudience returns the roles in raw, each once, or nil if it is anything else.
func parseAudience(raw json.RawMessage) json.RawMessage {
	var roles []json.RawMessage
	seen := map[string]bool{}
	good := true
	ok := eachItem(raw, func(raw json.RawMessage) bool {
		role, _ := unquote(raw)
		if good = role == "user" || role == "assistant"; good && !seen[role] {
			seen[role] = true
			roles = append(roles, appendString(nil, role))
		}
		return good
	})
	if !ok || !good || len(roles) == 0 {
		return nil
	}
	return encodeArray(roles)
}

// isTime reports whether s is a point in time, or a date, as ISO 8601 writes it.
func isTime(s string) bool {
	if len(s) > 40 {
		return false
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", time.DateOnly} {
		if _, err := time.Parse(layout, s); err == nil {
			return true
		}
	}
	return false
}

func (r *Resource) digest() string {
	size := ""
	if r.Size != nil {
		size = strconv.FormatInt(*r.Size, 10)
	}
	return digestOf(append([]string{r.URI, flags(r.Template, r.Dynamic), r.Name, r.Title, r.Description, r.MIMEType, size,
		string(r.Annotations), string(r.Icons)}, r.Completes...))
}
