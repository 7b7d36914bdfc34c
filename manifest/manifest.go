package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Manifest is what one page declares, checked. All texts are cleaned (see [Clean]) and bounded.
type Manifest struct {
	// Label is the page's own name for itself, from appLabel; "" if it gave none.
	Label string
	// Summary tells agents what the page is for; it may have several lines.
	Summary string
	// URL and Title are those of the page's document, as it says.
	URL, Title string
	// Tools are those fit to publish, in the page's order, no two with the same name.
	Tools []*Tool
	// Prompts are those fit to publish, in the page's order, no two with the same name.
	Prompts []*Prompt
	// Resources are those fit to publish: first those with a URI, then the templates, each in the page's order. No two of
	// either are published as the same.
	Resources []*Resource
	// Problems are the tools, prompts and resources that were refused, or accepted without a part, and why. At most 100; the
	// last one then says how many more there were.
	Problems []Problem
}

// Problem is one thing that a page should mend in what it declares.
type Problem struct {
	// Kind tells what it is about: "prompt", "resource" (templates among them), or "" for a tool.
	Kind string `json:"kind,omitempty"`
	// Name is the name of the tool or prompt, or the URI of the resource, cleaned; "" if it has none.
	Name string `json:"name"`
	// Index is its place in the page's list, from 0; -1 if the page's own script reported none. Resources and templates are
	// two lists.
	Index int `json:"index"`
	// Reason is one sentence for the page's developer.
	Reason string `json:"reason"`
}

// Parse reads a register_tools frame: one JSON object with tools, and optionally prompts, resources, resourceTemplates,
// summary, appLabel, url, title and problems (what the page's own script had to skip). Other members are ignored, names are
// matched exactly.
//
// It fails, with a sentence for the page, only if the frame is no JSON object or has no array of tools. A tool, prompt or
// resource that cannot be published is skipped and listed in Problems; so are parts of one that had to be dropped.
func Parse(frame []byte, l Limits) (*Manifest, error) {
	l = l.withDefaults()
	if !utf8.Valid(frame) {
		frame = bytes.ToValidUTF8(frame, []byte("\uFFFD"))
	}
	// encoding/json also refuses what nests too deep, which is the fault of one tool and not of the frame.
	if err := json.Unmarshal(frame, new(json.RawMessage)); err != nil && depthOf(frame) <= decoderDepth {
		return nil, fmt.Errorf("register_tools is not valid JSON (%s): send one JSON object with a tools array", Clean(err.Error(), 120, false))
	}
	if kindOf(frame) != "an object" {
		return nil, fmt.Errorf("register_tools must be a JSON object with a tools array, not %s", kindOf(frame))
	}
	top, ok := pick(frame, "tools", "prompts", "resources", "resourceTemplates", "summary", "appLabel",
		"url", "title", "problems")
	if !ok {
		return nil, errors.New("register_tools is not a well-formed object: send valid JSON")
	}
	switch tools := top["tools"]; {
	case tools == nil:
		return nil, errors.New("register_tools has no tools: send an array, which may be empty")
	case kindOf(tools) != "an array":
		return nil, fmt.Errorf("tools in register_tools must be an array, not %s", kindOf(tools))
	}
	m := &Manifest{
		Label:   textField(top["appLabel"], l.NameBytes, false),
		Summary: textField(top["summary"], l.SummaryBytes, true),
		URL:     textField(top["url"], maxURLBytes, false),
		Title:   textField(top["title"], l.NameBytes, false),
	}
	var problems problemList
	if !m.parseTools(top["tools"], top["problems"], l, &problems) {
		return nil, errors.New("tools in register_tools is not a well-formed array: send valid JSON")
	}
	m.parsePrompts(top["prompts"], top["problems"], l, &problems)
	m.parseResources(top["resources"], top["resourceTemplates"], l, &problems)
	problems.addReported(top["problems"], l)
	m.Problems = problems.done()
	return m, nil
}

// textField decodes a text; anything else counts as absent.
func textField(raw json.RawMessage, maxBytes int, multiline bool) string {
	s, _ := unquote(raw)
	return Clean(s, maxBytes, multiline)
}

// parseTools fills m.Tools and reports whether raw is an array. reported is what the page's own script had to skip, here and
// in parsePrompts.
func (m *Manifest) parseTools(raw, reported json.RawMessage, l Limits, problems *problemList) bool {
	list := lister[*Tool]{what: "tool", key: "name", limit: l.Tools, skipped: reportedPlaces(reported, "")}
	list.parse = func(raw json.RawMessage) (*Tool, string, *draft) {
		t, d := parseTool(raw, l)
		return t, d.name, d
	}
	total, ok := list.read(raw, problems)
	m.Tools = list.items
	if total > l.Tools {
		problems.first(Problem{Index: l.Tools, Reason: fmt.Sprintf(
			"the page declares %d tools and the limit is %d: the first %[2]d are kept", total, l.Tools)})
	}
	return ok
}

// parsePrompts fills m.Prompts. Unlike tools they may be absent, and what is no array is only a problem.
func (m *Manifest) parsePrompts(raw, reported json.RawMessage, l Limits, problems *problemList) {
	if !present(raw) {
		return
	}
	list := lister[*Prompt]{what: "prompt", kind: "prompt", key: "name", limit: l.Prompts, skipped: reportedPlaces(reported, "prompt")}
	list.parse = func(raw json.RawMessage) (*Prompt, string, *draft) {
		p, d := parsePrompt(raw, l)
		return p, d.name, d
	}
	total, ok := list.read(raw, problems)
	if !ok {
		problems.add("prompt", "", -1, "prompts must be an array, not "+kindOf(raw))
	}
	m.Prompts = list.items
	if total > l.Prompts {
		problems.first(Problem{Kind: "prompt", Index: l.Prompts, Reason: fmt.Sprintf(
			"the page declares %d prompts and the limit is %d: the first %[2]d are kept", total, l.Prompts)})
	}
}

// parseResources fills m.Resources.
func (m *Manifest) parseResources(static, templates json.RawMessage, l Limits, problems *problemList) {
	sum, left := 0, l.Resources
	for _, from := range []struct {
		raw      json.RawMessage
		member   string
		key      string
		template bool
	}{{static, "resources", "URI", false}, {templates, "resourceTemplates", "URI template", true}} {
		if !present(from.raw) {
			continue
		}
		list := lister[*Resource]{what: "resource", kind: "resource", key: from.key, limit: left}
		list.parse = func(raw json.RawMessage) (*Resource, string, *draft) {
			r, d := parseResource(raw, from.template, l)
			if d.err != nil {
				return nil, "", d
			}
			// What is published the same way is the same: cart and /cart.
			return r, r.Fallback(""), d
		}
		total, ok := list.read(from.raw, problems)
		if !ok {
			problems.add("resource", "", -1, from.member+" must be an array, not "+kindOf(from.raw))
		}
		m.Resources = append(m.Resources, list.items...)
		sum += total
		left -= min(total, left)
	}
	if sum > l.Resources {
		problems.first(Problem{Kind: "resource", Index: -1, Reason: fmt.Sprintf(
			"the page declares %d resources and templates and the limit is %d: the first %[2]d are kept", sum, l.Resources)})
	}
}

// lister reads one array of the frame.
type lister[T any] struct {
	what  string // for messages
	kind  string // of problems
	key   string // what no two items may share, for messages
	limit int
	// skipped are the places, in order, of what the page's own script left out of the array.
	skipped []int
	// parse reads one item and returns its key. The item counts only if d.err is nil.
	parse func(raw json.RawMessage) (item T, key string, d *draft)
	items []T
}

// read fills items with the good ones; of those with the same key the last one, in its place. It returns how many there are in
// all, and whether raw is an array.
func (li *lister[T]) read(raw json.RawMessage, problems *problemList) (total int, ok bool) {
	type place struct {
		index int
		item  T
		name  string
	}
	at := map[string][]place{}
	var order []string // of keys, by each place
	skipped := 0
	ok = eachItem(raw, func(raw json.RawMessage) bool {
		if total++; total > li.limit {
			return true
		}
		for skipped < len(li.skipped) && li.skipped[skipped] < total+skipped {
			skipped++
		}
		index := total - 1 + skipped
		item, key, d := li.parse(raw)
		for _, note := range d.notes {
			problems.add(li.kind, d.name, index, note+"; the "+li.what+" itself is kept")
		}
		if d.err != nil {
			problems.add(li.kind, d.name, index, d.err.Error())
			return true
		}
		at[key] = append(at[key], place{index, item, d.name})
		order = append(order, key)
		return true
	})
	seen := map[string]int{}
	for _, key := range order {
		places := at[key]
		if seen[key]++; seen[key] == len(places) {
			li.items = append(li.items, places[len(places)-1].item)
		}
		if len(places) > 1 && seen[key] == 1 {
			var indexes []int
			for _, p := range places {
				indexes = append(indexes, p.index)
			}
			problems.add(li.kind, places[0].name, indexes[0], duplicateReason(li.key, indexes))
		}
	}
	return total, ok
}

// duplicateReason says which of the items at those places, which share a key, is used.
func duplicateReason(key string, places []int) string {
	final := places[len(places)-1]
	earlier := places[:len(places)-1]
	more := ""
	if len(earlier) > 5 {
		more = fmt.Sprintf(" (and %d more)", len(earlier)-5)
		earlier = earlier[:5]
	}
	list := strings.Trim(fmt.Sprint(earlier), "[]")
	return fmt.Sprintf("the same %s is declared at positions %s%s and %d (from 0): the last one, at %[4]d, is used",
		key, strings.ReplaceAll(list, " ", ", "), more, final)
}

// problemList gathers problems up to a bound.
type problemList struct {
	list    []Problem
	dropped int
}

func (p *problemList) add(kind, name string, index int, reason string) {
	// One place is kept for the closing remark.
	if len(p.list) >= maxProblems-1 {
		p.dropped++
		return
	}
	p.list = append(p.list, Problem{kind, Clean(name, 256, false), index, Clean(reason, maxReasonBytes, false)})
}

// first puts a problem in front, where no bound drops it.
func (p *problemList) first(problem Problem) {
	if len(p.list) >= maxProblems-1 {
		p.list = p.list[:len(p.list)-1]
		p.dropped++
	}
	p.list = append([]Problem{problem}, p.list...)
}

// maxReported bounds the places of what a page's own script skipped.
const maxReported = 10_000

// reportedPlaces are the places of what the page's own script skipped of one kind, in order.
func reportedPlaces(raw json.RawMessage, kind string) []int {
	var places []int
	eachItem(raw, func(raw json.RawMessage) bool {
		if f, ok := pick(raw, "kind", "index"); ok && reportedKind(f["kind"]) == kind {
			if index := reportedIndex(f["index"]); index >= 0 {
				places = append(places, index)
			}
		}
		return len(places) < maxReported
	})
	slices.Sort(places)
	return slices.Compact(places)
}

// reportedIndex is -1 for none.
func reportedIndex(raw json.RawMessage) int {
	if n, ok := number(raw); ok && n >= 0 && n <= 1e9 {
		return int(n)
	}
	return -1
}

func reportedKind(raw json.RawMessage) string {
	if kind, _ := unquote(raw); kind == "prompt" || kind == "resource" {
		return kind
	}
	return ""
}

// addReported merges what the page's own script reported. It is foreign text like everything else.
func (p *problemList) addReported(raw json.RawMessage, l Limits) {
	eachItem(raw, func(raw json.RawMessage) bool {
		f, ok := pick(raw, "kind", "name", "index", "reason")
		if !ok {
			return true
		}
		reason := textField(f["reason"], maxReasonBytes, false)
		if reason == "" {
			reason = "refused by the page's own script"
		}
		p.add(reportedKind(f["kind"]), textField(f["name"], l.NameBytes, false), reportedIndex(f["index"]), reason)
		return true
	})
}

// done returns the list.
func (p *problemList) done() []Problem {
	if p.dropped > 0 {
		p.list = append(p.list, Problem{Index: -1, Reason: fmt.Sprintf("and %d more problems", p.dropped)})
	}
	return p.list
}

// number decodes a JSON number.
func number(raw json.RawMessage) (float64, bool) {
	var n float64
	if kindOf(raw) != "a number" || json.Unmarshal(raw, &n) != nil {
		return 0, false
	}
	return n, true
}
