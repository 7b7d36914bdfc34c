package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	fastjson "github.com/segmentio/encoding/json"
)

// maxArgumentDepth is how deep the arguments of a call may nest.
const maxArgumentDepth = 1000

// ArgumentError tells an agent what is wrong with the arguments of a call.
type ArgumentError struct {
	// Param is the parameter, as a path for nested ones: filter.rows[2].name. It is "" if the arguments are wrong as a
	// whole.
	Param string
	// Reason is a whole sentence which names the parameter, its value and what was expected.
	Reason string
}

// Error returns the reason.
func (e *ArgumentError) Error() string { return e.Reason }

func argumentErrorf(param, format string, args ...any) *ArgumentError {
	return &ArgumentError{Param: cut(param, 200), Reason: fmt.Sprintf(format, args...)}
}

// CheckArguments returns the arguments of a call as the page shall see them: always one JSON object that fits the input
// schema. Errors are [*ArgumentError].
//
// Absent arguments (nil, white space, null) are {}, JSON text of an object is that object. Arguments that fit are
// returned as they are, byte for byte. Otherwise clear slips are mended, and nothing but them is changed: text that spells
// a number, boolean, object or array where one is wanted; null for an optional parameter, or the word "null" for one that
// takes no text, counts as absent.
//
// The work is bounded: where the schema cannot be checked (see [Tool.SchemaProblem]), or checking
// these arguments against it would cost too much, they are mended as far as possible and never refused.
func (t *Tool) CheckArguments(raw json.RawMessage) (json.RawMessage, error) {
	raw, bad := argumentsObject(raw)
	if bad != nil {
		return nil, bad
	}
	tree := parseValue(raw)
	if tree == nil {
		return raw, nil
	}
	c := t.compiled()
	checked, failure := c.validate(raw, tree)
	if checked && failure == nil || c.shape == nil {
		return raw, nil
	}
	if mend(tree, c.shape) {
		raw = tree.encode(nil)
		if depthOf(raw) > maxArgumentDepth {
			return nil, tooDeep()
		}
		if tree = parseValue(raw); tree == nil {
			return raw, nil
		}
		_, failure = c.validate(raw, tree)
	}
	if failure != nil {
		return nil, argumentWords.explain(failure, tree, c.shape)
	}
	return raw, nil
}

// SchemaProblem returns why arguments are not checked against the input schema, or results against the output schema, or ""
// if they are. Such a schema is published all the same: it may be good for the client and merely beyond the validator, such
// as one with a regular expression that only JavaScript knows, or one with references that never end.
func (t *Tool) SchemaProblem() string {
	var problems []string
	add := func(what, p string) {
		if p != "" {
			problems = append(problems, Clean(what+p, maxReasonBytes, false))
		}
	}
	add("arguments are not checked against the input schema: ", t.compiled().problem)
	if t.OutputSchema != nil {
		add("results are not checked against the output schema: ", t.output.of(t.OutputSchema).problem)
	}
	return strings.Join(problems, "; ")
}

func tooDeep() *ArgumentError {
	return argumentErrorf("", "the arguments nest deeper than %d levels", maxArgumentDepth)
}

// argumentsObject returns the JSON object that raw is or stands for.
func argumentsObject(raw json.RawMessage) (json.RawMessage, *ArgumentError) {
	if !utf8.Valid(raw) {
		raw = bytes.ToValidUTF8(raw, []byte("\uFFFD"))
	}
	trimmed := bytes.Trim(raw, " \t\r\n")
	if len(trimmed) == 0 || string(trimmed) == "null" {
		return json.RawMessage("{}"), nil
	}
	if s, ok := unquote(trimmed); ok {
		if inner := bytes.Trim([]byte(s), " \t\r\n"); len(inner) > 0 && inner[0] == '{' {
			raw, trimmed = inner, inner
		}
	}
	switch {
	case trimmed[0] != '{':
		return nil, argumentErrorf("", "the arguments must be an object with the parameters as members, got %s", show(trimmed))
	case depthOf(trimmed) > maxArgumentDepth:
		return nil, tooDeep()
	case !fastjson.Valid(trimmed):
		return nil, argumentErrorf("", "the arguments are not valid JSON, got %q", quotable(string(trimmed)))
	}
	return raw, nil
}
