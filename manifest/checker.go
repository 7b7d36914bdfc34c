package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
)

// checker is a tool's input schema made ready for checking arguments, at the first call.
type checker struct {
	once     sync.Once
	shape    *shape // nil if the schema cannot even be looked at
	resolved *jsonschema.Resolved
	plan     *plan  // of the root; set together with resolved
	problem  string // why resolved is nil
}

// compiled returns the tool's checker.
func (t *Tool) compiled() *checker {
	t.checker.once.Do(func() { t.checker.compile(t.InputSchema) })
	return &t.checker
}

func (c *checker) compile(schema json.RawMessage) {
	if len(schema) == 0 { // a Tool that was not made by Parse
		c.problem = "there is no input schema"
		return
	}
	if depthOf(schema) > 4*maxDepthLimit || !json.Valid(schema) {
		c.problem = "the input schema is not valid JSON, or nests too deep"
		return
	}
	c.shape = newShape(schema)
	if err := c.resolve(schema); err != nil {
		c.resolved, c.plan = nil, nil
		c.problem = Clean(err.Error(), maxReasonBytes, false)
	}
}

// resolve fills resolved and plan. The library asserts by panicking here and there, so a panic is an error too. That would
// not catch a stack overflow, which the plan rules out.
func (c *checker) resolve(schema json.RawMessage) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the validator failed: %v", r)
		}
	}()
	var s jsonschema.Schema
	if err := json.Unmarshal(schema, &s); err != nil {
		return fmt.Errorf("the input schema cannot be read: %w", err)
	}
	s.Schema = dialect(s.Schema)
	s.ID = "" // only references within the schema are followed, and those need no base
	if c.plan, err = newPlan(&s); err != nil {
		return err
	}
	if c.resolved, err = s.Resolve(nil); err != nil {
		return fmt.Errorf("the input schema cannot be compiled: %w", err)
	}
	return nil
}

// dialect maps $schema to one of the two that the validator has.
func dialect(uri string) string {
	for _, old := range []string{"draft-07", "draft-06", "draft-04"} {
		if strings.Contains(uri, old) {
			return "http://json-schema.org/draft-07/schema#"
		}
	}
	return ""
}

// validate checks arguments, given as text and as tree. checked is false if that is impossible or would cost too much.
func (c *checker) validate(raw json.RawMessage, tree *value) (checked bool, err error) {
	if c.resolved == nil || !affordable(c.plan, tree) {
		return false, nil
	}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		var typ *json.UnmarshalTypeError
		return errors.As(err, &typ), err // a number that no float64 holds; nothing else is left
	}
	defer func() {
		if recover() != nil {
			checked, err = false, nil
		}
	}()
	return true, c.resolved.Validate(v)
}
