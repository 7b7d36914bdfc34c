package manifest

import (
	"encoding/json"
	"net/url"
	"strings"
)

// parseAnnotations keeps MCP's own hints, where they have the right type, in MCP's order.
func parseAnnotations(raw json.RawMessage, l Limits, d *draft) json.RawMessage {
	if kindOf(raw) != "an object" {
		d.notef("annotations was dropped: it must be an object, not %s", kindOf(raw))
		return nil
	}
	if err := checkJSON(raw, "annotations", l); err != nil {
		d.notef("annotations was dropped: %v", err)
		return nil
	}
	hints := []string{"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}
	f, _ := pick(raw, append(hints, "title")...)
	var out []field
	if raw := f["title"]; present(raw) {
		if s, ok := unquote(raw); ok {
			out = append(out, field{"title", appendString(nil, Clean(s, l.NameBytes, false))})
		} else {
			d.notef("annotations.title was dropped: it must be text, not %s", kindOf(raw))
		}
	}
	for _, key := range hints {
		raw := f[key]
		if !present(raw) {
			continue
		}
		if v, ok := boolean(raw); ok {
			out = append(out, field{key, encodeBool(v)})
		} else {
			d.notef("annotations.%s was dropped: it must be true or false, not %s", key, kindOf(raw))
		}
	}
	if len(out) == 0 {
		return nil
	}
	return encodeObject(out)
}

// parseIcons keeps the icons that a client can show, up to a number.
func parseIcons(raw json.RawMessage, l Limits, d *draft) json.RawMessage {
	if kindOf(raw) != "an array" {
		d.notef("icons was dropped: it must be an array, not %s", kindOf(raw))
		return nil
	}
	if err := checkJSON(raw, "icons", l); err != nil {
		d.notef("icons was dropped: %v", err)
		return nil
	}
	var out []json.RawMessage
	bad, extra := 0, 0
	eachItem(raw, func(raw json.RawMessage) bool {
		icon := parseIcon(raw)
		switch {
		case icon == nil:
			bad++
		case len(out) >= maxIcons:
			extra++
		default:
			out = append(out, icon)
		}
		return true
	})
	if bad > 0 {
		d.notef("%d of its icons dropped: an icon is {src, mimeType?, sizes?} with an https:, http: or data:image/ src", bad)
	}
	if extra > 0 {
		d.notef("%d of its icons dropped: the limit is %d", extra, maxIcons)
	}
	if len(out) == 0 {
		return nil
	}
	icons := encodeArray(out)
	if len(icons) > l.SchemaBytes {
		d.notef("icons was dropped: it is %d bytes large, the limit is %d", len(icons), l.SchemaBytes)
		return nil
	}
	return icons
}

// parseIcon returns one icon with the fields that MCP knows, or nil.
func parseIcon(raw json.RawMessage) json.RawMessage {
	f, ok := pick(raw, "src", "mimeType", "sizes", "theme")
	if !ok {
		return nil
	}
	src, ok := unquote(f["src"])
	if !ok || !iconSource(src) {
		return nil
	}
	out := []field{{"src", appendString(nil, src)}}
	if s := textField(f["mimeType"], 100, false); s != "" {
		out = append(out, field{"mimeType", appendString(nil, s)})
	}
	var sizes []json.RawMessage
	eachItem(f["sizes"], func(raw json.RawMessage) bool {
		if s := textField(raw, 20, false); s != "" {
			sizes = append(sizes, appendString(nil, s))
		}
		return len(sizes) < maxIcons
	})
	if len(sizes) > 0 {
		out = append(out, field{"sizes", encodeArray(sizes)})
	}
	if s, _ := unquote(f["theme"]); s == "light" || s == "dark" {
		out = append(out, field{"theme", appendString(nil, s)})
	}
	return encodeObject(out)
}

// iconSource reports whether a client may be told to load src: no file:, no javascript:, no data: but images.
func iconSource(src string) bool {
	if strings.IndexFunc(src, func(r rune) bool { return r <= ' ' || hidden(r) }) >= 0 {
		return false
	}
	if len(src) >= len("data:image/") && strings.EqualFold(src[:len("data:image/")], "data:image/") {
		return true
	}
	u, err := url.Parse(src)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != ""
}

// parseOrigin reads what a dynamic tool was made from.
func parseOrigin(raw json.RawMessage, l Limits, d *draft) *Origin {
	f, _ := pick(raw, "kind", "code", "path")
	kind, _ := unquote(f["kind"])
	if kind != "code" && kind != "path" {
		d.notef(`origin was dropped: it must be {kind: "code", code} or {kind: "path", path}`)
		return nil
	}
	text, ok := unquote(f[kind])
	if !ok || len(text) > l.SchemaBytes {
		d.notef("origin was dropped: its %s must be text of at most %d bytes", kind, l.SchemaBytes)
		return nil
	}
	if kind == "path" {
		return &Origin{Kind: kind, Path: text}
	}
	return &Origin{Kind: kind, Code: text}
}

func boolean(raw json.RawMessage) (value, ok bool) {
	switch strings.TrimSpace(string(raw[:min(len(raw), 8)])) {
	case "true":
		return true, true
	case "false":
		return false, true
	}
	return false, false
}

func encodeBool(v bool) json.RawMessage {
	if v {
		return json.RawMessage("true")
	}
	return json.RawMessage("false")
}
