package manifest

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/yosida95/uritemplate/v3"
)

// Templates are matched in time proportional to parts × length, without a regular expression: a page has hundreds of them, and
// both sides may be hostile. Working back from the end, each part is asked from where it can lead to a place from which the
// rest fits; going forward again, each expression takes the longest way that does.

// part is a stretch of a template: a literal or an expression.
type part struct {
	literal string // percent-encoded
	own     string // the literal as the page wrote it
	expr    *expression
}

// split takes a template apart.
func (f *uriForm) split(own string) error {
	var plain, body strings.Builder
	f.parts = nil
	for rest := own; rest != ""; {
		literal, tail, _ := strings.Cut(rest, "{")
		p := part{own: literal, literal: literal}
		if len(f.parts) == 0 && !f.absolute {
			p.literal = strings.TrimLeft(literal, "/")
		}
		p.literal = escapeURI(p.literal, true)
		plain.WriteString(escapeURI(literal, false))
		body.WriteString(p.literal)
		if literal != "" {
			f.parts = append(f.parts, p)
		}
		if strings.Contains(literal, "}") {
			return errors.New("has a } without a {")
		}
		if rest = rest[len(literal):]; rest == "" {
			break
		}
		text, after, closed := strings.Cut(tail, "}")
		if !closed {
			return errors.New("has a { without a }")
		}
		rest = after
		plain.WriteString("{" + text + "}")
		body.WriteString("{" + text + "}")
		f.add(text)
	}
	if f.body = body.String(); f.absolute {
		f.plain = plain.String()
	}
	if _, err := uritemplate.New(f.body); err != nil { // braces within literals, names, operators, modifiers
		return fmt.Errorf("is not a valid URI template (%s)", Clean(err.Error(), 200, false))
	}
	f.separate()
	f.bound()
	return f.count()
}

// separate makes one expression of each variable of {/a,b}, so that it is never asked to hold more segments than it has
// variables. One with a list can hold any number.
func (f *uriForm) separate() {
	var parts []part
	for _, p := range f.parts {
		if e := p.expr; e == nil || e.op != '/' || e.list() >= 0 {
			parts = append(parts, p)
			continue
		}
		for _, v := range p.expr.vars {
			parts = append(parts, part{expr: &expression{op: '/', vars: []variable{v}}})
		}
	}
	f.parts = parts
}

// bound sets where expressions stop: in {+path}{?q} the first would take the second's part.
func (f *uriForm) bound() {
	var next *expression
	for _, p := range slices.Backward(f.parts) {
		if e := p.expr; e != nil {
			if next != nil {
				e.stops = next.stops
				if c := next.first(); c != 0 {
					e.stops += string(c)
				}
			}
			for c := range e.chars {
				e.chars[c] = e.allows(byte(c))
			}
		}
		next = p.expr
	}
}

// add appends the expression with that text. Whether it is a good one is not its concern.
func (f *uriForm) add(text string) {
	e := &expression{}
	if text != "" && strings.IndexByte("+#./;?&", text[0]) >= 0 {
		e.op, text = text[0], text[1:]
	}
	for spec := range strings.SplitSeq(text, ",") {
		v := variable{name: spec}
		if name, length, ok := strings.Cut(spec, ":"); ok {
			v.name = name
			v.prefix, _ = strconv.Atoi(length)
		} else {
			v.name, v.explode = strings.CutSuffix(spec, "*")
		}
		e.vars = append(e.vars, v)
	}
	if n := len(f.parts); n > 0 && f.parts[n-1].expr != nil {
		before := f.parts[n-1].expr
		if before.op == e.op && strings.IndexByte("./;&", e.op) >= 0 || before.op == '?' && e.op == '&' {
			before.vars = append(before.vars, e.vars...)
			return
		}
	}
	f.parts = append(f.parts, part{expr: e})
}

// count lists the variables and bounds them.
func (f *uriForm) count() error {
	uses := 0
	for _, p := range f.parts {
		if p.expr == nil {
			continue
		}
		for _, v := range p.expr.vars {
			if uses++; uses > maxVariables {
				return fmt.Errorf("has more than %d variables", maxVariables)
			}
			if !slices.Contains(f.variables, v.name) {
				f.variables = append(f.variables, v.name)
			}
		}
	}
	return nil
}

// match matches s, which escapeURI has been over and which is at most maxURIBytes long, with the parts.
func (f *uriForm) match(s string) (own string, variables map[string]string, ok bool) {
	if !f.mayMatch(s) {
		return "", nil, false
	}
	ends, ok := f.ways(s)
	if !ok {
		return "", nil, false
	}
	var b strings.Builder
	values := bindings{}
	at := 0
	for i, p := range f.parts {
		if p.expr == nil {
			b.WriteString(p.own)
			at += len(p.literal)
			continue
		}
		end := int(ends[i][at])
		b.WriteString(s[at:end])
		if !p.expr.assign(s[at:end], values) {
			return "", nil, false
		}
		at = end
	}
	return b.String(), values.plain(), true
}

// mayMatch looks at the literals at both ends, which tell most templates apart.
func (f *uriForm) mayMatch(s string) bool {
	if len(f.parts) == 0 {
		return s == ""
	}
	first, last := f.parts[0], f.parts[len(f.parts)-1]
	return strings.HasPrefix(s, first.literal) && strings.HasSuffix(s, last.literal)
}

// ways returns, for each expression and each place in s, the farthest end from which the rest of s fits the rest of the
// parts; -1 if there is none.
func (f *uriForm) ways(s string) (ends [][]int16, ok bool) {
	fits := make([]bool, len(s)+1) // from where the parts behind fit
	fits[len(s)] = true
	ends = make([][]int16, len(f.parts))
	for i := len(f.parts) - 1; i >= 0; i-- {
		p := f.parts[i]
		before := make([]bool, len(s)+1)
		if p.expr == nil {
			for at := 0; at+len(p.literal) <= len(s); at++ {
				before[at] = fits[at+len(p.literal)] && !withinTriplet(s, at) && strings.HasPrefix(s[at:], p.literal)
			}
		} else {
			ends[i] = p.expr.ends(s, fits)
			for at, end := range ends[i] {
				before[at] = end >= 0
			}
		}
		fits = before
	}
	return ends, fits[0]
}
