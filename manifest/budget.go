package manifest

const (
	maxVisits    = 1_000_000 // of schemas, or as much other work; about a second
	maxErrorText = 256 << 20 // bytes copied for error texts in the worst case
	maxCounting  = 1_000_000 // steps of the count itself
	maxChecking  = 4000      // how deep the validator may recurse
)

// affordable reports whether checking v by plan p stays within bounds, in the worst case.
func affordable(p *plan, v *value) bool {
	c := counter{memo: map[visit]*cost{}}
	_, ok := c.count(p, v, 0)
	return ok
}

// visit is one schema being applied to one value.
type visit struct {
	plan  *plan
	value *value
}

// cost is what one visit costs, with all that follow from it.
type cost struct {
	visits int64
	copied int64 // bytes of error texts, each time one is made
	text   int64 // bytes of the largest error text that the visit can return
}

// counter adds up costs. Schemas form a tree apart from references, so it is enough to remember the visits of those that
// references lead to: everything else is met once per such visit.
type counter struct {
	memo  map[visit]*cost // nil while being counted
	steps int
}

func (c *counter) count(p *plan, v *value, depth int) (cost, bool) {
	if c.steps++; c.steps > maxCounting || depth > maxChecking {
		return cost{}, false
	}
	if !p.target {
		return c.sum(p, v, depth)
	}
	at := visit{p, v}
	if known, ok := c.memo[at]; ok {
		if known == nil { // the same schema, the same value: it would never end
			return cost{}, false
		}
		return *known, true
	}
	c.memo[at] = nil
	total, ok := c.sum(p, v, depth)
	c.memo[at] = &total
	return total, ok
}

func (c *counter) sum(p *plan, v *value, depth int) (cost, bool) {
	size := int64(len(v.raw))
	own := 4*size + p.leaf // the text quotes the value, with escapes
	total := cost{visits: 1 + p.work*(1+size/16), text: own}
	branches := own
	ok := true
	add := func(e *edge, to *value, times int64) {
		if !ok {
			return
		}
		var child cost
		child, ok = c.count(e.to, to, depth+1)
		total.visits += times * child.visits
		total.copied += times * child.copied
		if e.relation == anyBranch {
			branches += child.text
			total.text = max(total.text, branches)
		} else {
			total.text = max(total.text, child.text)
		}
		ok = ok && total.visits <= maxVisits && total.copied <= maxErrorText
	}
	for i := range p.edges {
		eachValue(p, &p.edges[i], v, add)
	}
	total.text += int64(len(p.path)) + 20
	total.copied += 2 * total.text
	return total, ok && total.visits <= maxVisits && total.copied <= maxErrorText
}

// eachValue calls add for the values that an edge leads to from v: never fewer than the validator visits.
func eachValue(p *plan, e *edge, v *value, add func(*edge, *value, int64)) {
	switch {
	case e.relation == sameValue || e.relation == anyBranch:
		add(e, v, 1)
	case v.kind == '[' && e.relation == oneItem && e.index < len(v.items):
		add(e, v.items[e.index], 1)
	case v.kind == '[' && e.relation == everyItem:
		for _, item := range v.items {
			add(e, item, 1)
		}
	case v.kind == '{':
		eachMember(p, e, v, add)
	}
}

func eachMember(p *plan, e *edge, v *value, add func(*edge, *value, int64)) {
	longest := ""
	for _, m := range v.fields {
		if m.val == nil {
			continue
		}
		if len(m.key) > len(longest) {
			longest = m.key
		}
		switch {
		case e.relation == oneProperty && e.key == m.key,
			e.relation == everyProperty,
			e.relation == otherProperty && p.schema.Properties[m.key] == nil:
			add(e, m.val, 1)
		}
	}
	if e.relation == propertyName && len(v.fields) > 0 {
		add(e, &value{kind: '"', raw: appendString(nil, longest)}, int64(len(v.fields)))
	}
}
