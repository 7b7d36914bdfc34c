package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp/syntax"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// The validator trusts its schema: it follows references for ever if they lead back to the same value, tries every branch
// of every branch, and copies whole values into error texts at each level. A page's schema is not to be trusted. So each
// schema gets a plan: a graph of what the validator would visit. Schemas that can never be checked are found when the plan
// is made (newPlan); for the others the cost is counted for the arguments at hand, before they are checked (affordable).

const (
	maxSubschemas  = 2000    // schemas within one schema
	maxPathBytes   = 1 << 20 // sum of the lengths of the JSON pointers to them, which the validator keeps
	maxPatternSize = 20_000  // rough number of instructions of all regular expressions
	maxInPlace     = 10_000  // visits for one value, without what is inside of it
)

// plan is what the validator does for one schema.
type plan struct {
	schema *jsonschema.Schema
	path   string // JSON pointer
	edges  []edge
	target bool  // a reference leads here
	leaf   int64 // bytes that an error text can have, apart from the value
	work   int64 // steps apart from visits, per 16 bytes of the value
	size   int64 // visits for one value: 0 is not yet known, -1 being found out
}

// planner builds the plan of one schema.
type planner struct {
	plans    map[string]*plan // by path
	order    []*plan
	paths    int
	patterns int
}

// newPlan returns the plan of root. It drops fractional multipleOf from root, for which floating point would refuse good
// values.
func newPlan(root *jsonschema.Schema) (*plan, error) {
	b := planner{plans: map[string]*plan{}}
	p, err := b.add(root, "")
	if err != nil {
		return nil, err
	}
	for _, q := range b.order {
		if err := b.link(q); err != nil {
			return nil, err
		}
	}
	for _, q := range b.order {
		if err := q.measure(); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// add plans s and the schemas inside of it.
func (b *planner) add(s *jsonschema.Schema, path string) (*plan, error) {
	if s == nil {
		return nil, fmt.Errorf("it has null instead of a schema at %q", quotable("#"+path))
	}
	b.paths += len(path)
	if len(b.plans) >= maxSubschemas || b.paths > maxPathBytes {
		return nil, errors.New("it has too many parts")
	}
	p := &plan{schema: s, path: path}
	b.plans[path] = p
	b.order = append(b.order, p)
	if err := b.local(p); err != nil {
		return nil, err
	}
	for _, sub := range subschemas(s) {
		to, err := b.add(sub.schema, path+"/"+sub.at)
		if err != nil {
			return nil, err
		}
		p.leaf += int64(20 + len(sub.schema.Anchor) + len(sub.schema.DynamicAnchor)) // error texts list branches by anchor
		if sub.relation != elsewhere {
			sub.to = to
			p.edges = append(p.edges, sub.edge)
		}
	}
	return p, nil
}

// local looks at the keywords of p itself.
func (b *planner) local(p *plan) error {
	s := p.schema
	switch {
	case s.DynamicRef != "":
		return errors.New("it uses $dynamicRef, which is not checked")
	case s.ID != "":
		return errors.New("it has an $id below the top, which is not checked")
	}
	if m := s.MultipleOf; m != nil && (*m != math.Trunc(*m) || *m == 0) {
		s.MultipleOf = nil
	}
	data := encodedSize(s.Enum) + encodedSize(s.Const)
	names := encodedSize(s.Required) + encodedSize(s.DependentRequired) + encodedSize(s.DependencyStrings)
	p.leaf = int64(2*len(p.path) + data + 2*names + 4*len(s.Pattern) + 200)
	if s.Minimum != nil || s.Maximum != nil || s.ExclusiveMinimum != nil || s.ExclusiveMaximum != nil || s.MultipleOf != nil {
		p.leaf += 2000 // numbers are written out in full
	}
	p.work = int64((data + names) / 16)
	if s.UniqueItems {
		p.work++
	}
	patterns := []string{s.Pattern}
	for re := range s.PatternProperties {
		patterns = append(patterns, re)
	}
	for _, re := range patterns {
		size, err := patternSize(re)
		if err != nil {
			return fmt.Errorf("it has a regular expression that cannot be checked: %w", err)
		}
		p.work += int64(size)
		b.patterns += size
	}
	if b.patterns > maxPatternSize {
		return errors.New("it has too large regular expressions")
	}
	return nil
}

// link adds the edge of a reference.
func (b *planner) link(p *plan) error {
	ref := p.schema.Ref
	if ref == "" {
		return nil
	}
	segments, ok := pointerSegments(ref)
	if !ok {
		return fmt.Errorf("it refers to %q: only references within it, such as #/$defs/x, are checked", quotable(ref))
	}
	var path strings.Builder
	for _, seg := range segments {
		path.WriteString("/" + escapePointer(seg))
	}
	to := b.plans[path.String()]
	if to == nil {
		return fmt.Errorf("it refers to %q, which it does not have", quotable(ref))
	}
	to.target = true
	p.edges = append(p.edges, edge{relation: sameValue, to: to})
	return nil
}

// measure finds out how many schemas are visited for one value. It fails if that never ends, or would take too long.
func (p *plan) measure() error {
	switch {
	case p.size > 0:
		return nil
	case p.size < 0:
		return fmt.Errorf("it refers to itself without end at %q", quotable("#"+p.path))
	}
	p.size = -1
	n := int64(1)
	for _, e := range p.edges {
		if e.relation != sameValue && e.relation != anyBranch {
			continue
		}
		if err := e.to.measure(); err != nil {
			return err
		}
		if n += e.to.size; n > maxInPlace {
			return fmt.Errorf("it has too many alternatives at %q", quotable("#"+p.path))
		}
	}
	p.size = n
	return nil
}

// patternSize estimates the size of a compiled regular expression; repetitions are what blows it up.
func patternSize(re string) (int, error) {
	if re == "" {
		return 0, nil
	}
	parsed, err := syntax.Parse(re, syntax.Perl)
	if err != nil {
		return 0, err
	}
	return regexpSize(parsed), nil
}

func regexpSize(re *syntax.Regexp) int {
	n := 1 + len(re.Rune)
	for _, sub := range re.Sub {
		n += regexpSize(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1)
	}
	return min(n, 2*maxPatternSize) // enough to be too large, and no overflow
}

func encodedSize(v any) int {
	b, err := json.Marshal(v)
	if err != nil || string(b) == "null" {
		return 0
	}
	return len(b)
}

func escapePointer(s string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(s) }
