package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
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
	// Problems are the tools that were refused, or accepted without a part, and why. At most 100; the last one then says
	// how many more there were.
	Problems []Problem
}

// Problem is one thing that a page should mend in its tools.
type Problem struct {
	// Name is the tool's name, cleaned; "" if it has none.
	Name string `json:"name"`
	// Index is the tool's place in the page's list, from 0; -1 if the page's own script reported none.
	Index int `json:"index"`
	// Reason is one sentence for the page's developer.
	Reason string `json:"reason"`
}

// Parse reads a register_tools frame: one JSON object with tools, and optionally summary, appLabel, url, title and
// problems (tools that the page's own script had to skip). Other members are ignored, names are matched exactly.
//
// It fails, with a sentence for the page, only if the frame is no JSON object or has no array of tools. A tool that
// cannot be published is skipped and listed in Problems; so are parts of a tool that had to be dropped.
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
	top, ok := pick(frame, "tools", "summary", "appLabel", "url", "title", "problems")
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
	if !m.parseTools(top["tools"], l, &problems) {
		return nil, errors.New("tools in register_tools is not a well-formed array: send valid JSON")
	}
	problems.addReported(top["problems"], l)
	m.Problems = problems.done()
	return m, nil
}

// textField decodes a text; anything else counts as absent.
func textField(raw json.RawMessage, maxBytes int, multiline bool) string {
	s, _ := unquote(raw)
	return Clean(s, maxBytes, multiline)
}

// parseTools fills m.Tools and reports whether raw is an array.
func (m *Manifest) parseTools(raw json.RawMessage, l Limits, problems *problemList) bool {
	total := 0
	at := map[string][]int{} // name → indexes of the good tools that have it
	last := map[string]*Tool{}
	var order []string // of names, by their last place
	ok := eachItem(raw, func(raw json.RawMessage) bool {
		index := total
		if total++; index >= l.Tools {
			return true
		}
		t, d := parseTool(raw, l)
		for _, note := range d.notes {
			problems.add(d.name, index, note+"; the tool itself is kept")
		}
		if d.err != nil {
			problems.add(d.name, index, d.err.Error())
			return true
		}
		at[t.Name] = append(at[t.Name], index)
		last[t.Name] = t
		order = append(order, t.Name)
		return true
	})
	seen := map[string]int{}
	for _, name := range order {
		places := at[name]
		if seen[name]++; seen[name] == len(places) {
			m.Tools = append(m.Tools, last[name])
		}
		if len(places) > 1 && seen[name] == 1 {
			problems.add(name, places[0], duplicateReason(places))
		}
	}
	if total > l.Tools {
		problems.first(Problem{Index: l.Tools, Reason: fmt.Sprintf(
			"the page declares %d tools and the limit is %d: the first %[2]d are kept", total, l.Tools)})
	}
	return ok
}

// duplicateReason says which of the tools at those places, which share a name, is used.
func duplicateReason(places []int) string {
	final := places[len(places)-1]
	earlier := places[:len(places)-1]
	more := ""
	if len(earlier) > 5 {
		more = fmt.Sprintf(" (and %d more)", len(earlier)-5)
		earlier = earlier[:5]
	}
	list := strings.Trim(fmt.Sprint(earlier), "[]")
	return fmt.Sprintf("the same name is declared at positions %s%s and %d (from 0): the last one, at %[3]d, is used",
		strings.ReplaceAll(list, " ", ", "), more, final)
}

// problemList gathers problems up to a bound.
type problemList struct {
	list    []Problem
	dropped int
}

func (p *problemList) add(name string, index int, reason string) {
	// One place is kept for the closing remark.
	if len(p.list) >= maxProblems-1 {
		p.dropped++
		return
	}
	p.list = append(p.list, Problem{Clean(name, 256, false), index, Clean(reason, maxReasonBytes, false)})
}

// first puts a problem in front, where no bound drops it.
func (p *problemList) first(problem Problem) {
	if len(p.list) >= maxProblems-1 {
		p.list = p.list[:len(p.list)-1]
		p.dropped++
	}
	p.list = append([]Problem{problem}, p.list...)
}

// addReported merges what the page's own script reported. It is foreign text like everything else.
func (p *problemList) addReported(raw json.RawMessage, l Limits) {
	eachItem(raw, func(raw json.RawMessage) bool {
		f, ok := pick(raw, "name", "index", "reason")
		if !ok {
			return true
		}
		index := -1
		if n, ok := number(f["index"]); ok && n >= 0 && n <= 1e9 {
			index = int(n)
		}
		reason := textField(f["reason"], maxReasonBytes, false)
		if reason == "" {
			reason = "refused by the page's own script"
		}
		p.add(textField(f["name"], l.NameBytes, false), index, reason)
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
