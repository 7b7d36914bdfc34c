package manifest

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// expression is {…} of a template, or several in a row that mean the same as one: {/a}{/b} is {/a,b}, {?a}{&b} is {?a,b}.
type expression struct {
	op   byte       // 0 for none
	vars []variable // at least one
	// stops are the characters with which the expressions right behind it start, so that it has none of them.
	stops string
	chars [256]bool // those that it may have
}

type variable struct {
	name    string
	explode bool
	prefix  int // the most characters of the value, 0 for all
}

// ends returns, for each place in s, the farthest end of what the expression can stand for there; -1 if there is none.
// fits tells where it may end.
func (e *expression) ends(s string, fits []bool) []int16 {
	run := make([]int16, len(s)+1) // the same for a run of characters without the operator
	out := make([]int16, len(s)+1)
	first := e.first()
	for at := len(s); at >= 0; at-- {
		run[at], out[at] = -1, -1
		if withinTriplet(s, at) {
			continue
		}
		here, far := int16(-1), int16(-1) // the end if it stops here, or goes on
		if fits[at] {
			here = int16(at)
		}
		if at < len(s) && e.chars[s[at]] {
			far = run[at+unit(s, at)]
		}
		run[at] = max(here, far)
		switch {
		case first == 0:
			out[at] = far
		case at < len(s) && s[at] == first:
			out[at] = max(here, run[at+1])
		default:
			out[at] = here
		}
	}
	return out
}

// unit is the length of the character at a place that is not within one.
func unit(s string, at int) int {
	if s[at] == '%' {
		return 3
	}
	return 1
}

// withinTriplet reports whether a place lies within a percent-encoding.
func withinTriplet(s string, at int) bool {
	return at >= 1 && at <= len(s) && s[at-1] == '%' || at >= 2 && at <= len(s) && s[at-2] == '%'
}

// first is the character with which a present expression starts, 0 if none.
func (e *expression) first() byte {
	if e.op == '+' {
		return 0
	}
	return e.op
}

// list is the index of the first variable with a *, -1 if there is none.
func (e *expression) list() int {
	return slices.IndexFunc(e.vars, func(v variable) bool { return v.explode })
}

// allows reports whether the values of e, and what separates them, may contain c.
func (e *expression) allows(c byte) bool {
	if strings.IndexByte(e.stops, c) >= 0 {
		return false
	}
	switch e.op {
	case '+', '#':
		return true
	case '?', '&':
		return c != '#'
	case '/':
		return c != '?' && c != '#' && (c != '/' || e.list() >= 0)
	}
	return c != '/' && c != '?' && c != '#'
}

// separator is what stands between values.
func (e *expression) separator() string {
	switch e.op {
	case '.', '/', ';':
		return string(e.op)
	case '?', '&':
		return "&"
	}
	return ","
}

// assign gives the variables of e their values in text. It fails where no values make that text.
func (e *expression) assign(text string, values bindings) bool {
	if e.first() != 0 {
		if text == "" {
			return true
		}
		text = text[1:]
	}
	if e.op == ';' || e.op == '?' || e.op == '&' {
		return e.assignNamed(text, values)
	}
	list := []string{text}
	if len(e.vars) > 1 || e.vars[0].explode {
		list = strings.Split(text, e.separator())
	}
	extra := len(list) - len(e.vars)
	takes := e.list() // which variable takes what is too much
	if takes < 0 {
		takes = len(e.vars) - 1
	}
	for i, v := range e.vars {
		if len(list) == 0 {
			break
		}
		n := 1
		if i == takes {
			n += max(extra, 0)
		}
		glue := ","
		if !v.explode {
			glue = e.separator()
		}
		for j := range list[:n] {
			list[j] = unescapeURI(list[j])
		}
		if !values.bind(v, strings.Join(list[:n], glue)) {
			return false
		}
		list = list[n:]
	}
	return true
}

// assignNamed is assign for name=value pairs. Pairs of other names belong to a variable that may be a map.
func (e *expression) assignNamed(text string, values bindings) bool {
	if text == "" {
		return true
	}
	lists := make([][]string, len(e.vars)) // of those with a *
	for pair := range strings.SplitSeq(text, e.separator()) {
		name, val, _ := strings.Cut(pair, "=")
		i := slices.IndexFunc(e.vars, func(v variable) bool { return v.name == name })
		if i < 0 {
			if i = e.list(); i < 0 {
				return false
			}
			val = pair
		}
		val = unescapeURI(val)
		if e.vars[i].explode {
			lists[i] = append(lists[i], val)
		} else if !values.bind(e.vars[i], val) {
			return false
		}
	}
	for i, list := range lists {
		if list != nil && !values.bind(e.vars[i], strings.Join(list, ",")) {
			return false
		}
	}
	return true
}

// bindings are the values of variables so far.
type bindings map[string]binding

type binding struct {
	val   string
	whole bool // not only its beginning
}

// bind gives v a value, which must agree with the one it has.
func (b bindings) bind(v variable, val string) bool {
	if v.prefix > 0 && utf8.RuneCountInString(val) > v.prefix {
		return false
	}
	have, known := b[v.name]
	whole := v.prefix == 0
	switch {
	case !known:
		b[v.name] = binding{val, whole}
	case have.whole && whole:
		return have.val == val
	case have.whole:
		return strings.HasPrefix(have.val, val)
	case !strings.HasPrefix(val, have.val):
		return !whole && strings.HasPrefix(have.val, val)
	default:
		b[v.name] = binding{val, whole}
	}
	return true
}

func (b bindings) plain() map[string]string {
	out := make(map[string]string, len(b))
	for name, v := range b {
		out[name] = v.val
	}
	return out
}
