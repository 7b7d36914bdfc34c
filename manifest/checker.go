package manifest

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"weak"

	"github.com/google/jsonschema-go/jsonschema"
	fastjson "github.com/segmentio/encoding/json"
)

// checker is a schema made ready for checking values, at the first call. It is never changed after that.
type checker struct {
	once     sync.Once
	shape    *shape // nil if the schema cannot even be looked at
	resolved *jsonschema.Resolved
	plan     *plan   // of the root; set together with resolved
	simple   *simple // nil for a schema that is not
	problem  string  // why resolved is nil, a sentence about "it"
}

// lazyChecker finds the checker of a schema once.
type lazyChecker struct {
	once sync.Once
	c    *checker
}

// of returns the checker of the schema, which is the same at each call.
func (l *lazyChecker) of(schema json.RawMessage) *checker {
	l.once.Do(func() { l.c = checkers.get(schema) })
	l.c.once.Do(func() { l.c.compile(schema) })
	return l.c
}

// compiled returns the checker of the tool's arguments.
func (t *Tool) compiled() *checker { return t.input.of(t.InputSchema) }

// checkers are those of all tools that have been called, so that the tabs of one app share theirs. The tools hold them: an
// entry goes with its last tool, so there are never more than tools.
var checkers = checkerCache{entries: map[[sha256.Size]byte]weak.Pointer[checker]{}}

type checkerCache struct {
	mu      sync.Mutex
	entries map[[sha256.Size]byte]weak.Pointer[checker]
}

// get returns the checker of the schema, compiled or not.
func (cc *checkerCache) get(schema json.RawMessage) *checker {
	key := sha256.Sum256(schema)
	cc.mu.Lock()
	defer cc.mu.Unlock()
	if c := cc.entries[key].Value(); c != nil {
		return c
	}
	c := &checker{}
	cc.entries[key] = weak.Make(c)
	runtime.AddCleanup(c, cc.drop, key)
	return c
}

// drop forgets a checker that is gone, unless another has taken its place.
func (cc *checkerCache) drop(key [sha256.Size]byte) {
	cc.mu.Lock()
	defer cc.mu.Unlock()
	if cc.entries[key].Value() == nil {
		delete(cc.entries, key)
	}
}

func (c *checker) compile(schema json.RawMessage) {
	if len(schema) == 0 { // a Tool that was not made by Parse
		c.problem = "there is none"
		return
	}
	if depthOf(schema) > 4*maxDepthLimit || !json.Valid(schema) {
		c.problem = "it is not valid JSON, or nests too deep"
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
			err = fmt.Errorf("it makes the validator fail: %v", r)
		}
	}()
	var s jsonschema.Schema
	if err := json.Unmarshal(schema, &s); err != nil {
		return unreadable(err)
	}
	s.Schema = dialect(s.Schema)
	s.ID = "" // only references within the schema are followed, and those need no base
	if c.plan, err = newPlan(&s); err != nil {
		return err
	}
	if c.resolved, err = s.Resolve(nil); err != nil {
		return fmt.Errorf("it cannot be compiled: %w", err)
	}
	c.simple = newSimple(&s)
	return nil
}

// unreadable words why a schema is none, without the types of Go that the decoder names.
func unreadable(err error) error {
	var typ *json.UnmarshalTypeError
	if !errors.As(err, &typ) {
		return fmt.Errorf("it cannot be read: %w", err)
	}
	if keyword := typ.Field[strings.LastIndexByte(typ.Field, '.')+1:]; keyword != "" {
		return fmt.Errorf("it cannot be read: %q has a %s, which it cannot have", keyword, typ.Value)
	}
	return fmt.Errorf("it cannot be read: it is a %s", typ.Value)
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

// decode decodes a value. What it gives may be part of raw.
func decode(raw json.RawMessage) (v any, err error) {
	if rest, err := fastjson.Parse(raw, &v, fastjson.ZeroCopy); err == nil && len(rest) == 0 {
		return v, nil
	}
	err = json.Unmarshal(raw, &v) // for its error
	return v, err
}

// validate checks a value, given as text and as tree. checked is false if that is impossible or would cost too much.
func (c *checker) validate(raw json.RawMessage, tree *value) (checked bool, err error) {
	switch {
	case c.resolved == nil:
		return false, nil
	case c.simple.surelyFits(tree):
		return true, nil
	case !affordable(c.plan, tree):
		return false, nil
	}
	v, err := decode(raw)
	if err != nil {
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
