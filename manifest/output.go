package manifest

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// CheckOutput returns nil if the structured content of a result fits the output schema, or if there is nothing to check it
// with: no output schema, one that cannot be checked (see [Tool.SchemaProblem]), or content for which that would cost too
// much. Otherwise the error is an [*ArgumentError] that names the first field which does not fit, what it is and what was
// expected. Absent content (nil, white space) fits no schema. Nothing is mended.
func (t *Tool) CheckOutput(structured json.RawMessage) error {
	if t.OutputSchema == nil {
		return nil
	}
	c := t.output.of(t.OutputSchema)
	if c.resolved == nil {
		return nil
	}
	raw := bytes.Trim(structured, " \t\r\n")
	if len(raw) == 0 {
		return argumentErrorf("", "%s is missing: the tool has an output schema, so it must return an object that fits it", outputWords.whole)
	}
	if !utf8.Valid(raw) {
		raw = bytes.ToValidUTF8(raw, []byte("\uFFFD"))
	}
	if depthOf(raw) > maxArgumentDepth {
		return nil
	}
	if !json.Valid(raw) {
		return argumentErrorf("", "%s is not valid JSON, got %q", outputWords.whole, quotable(string(raw)))
	}
	tree := parseValue(raw)
	if tree == nil {
		return nil
	}
	if _, failure := c.validate(raw, tree); failure != nil {
		return outputWords.explain(failure, tree, c.shape)
	}
	return nil
}
