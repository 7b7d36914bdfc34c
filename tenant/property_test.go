package tenant

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

// The model test runs long random scripts of everything that tabs, sessions, callers
// and humans may do, some of it at once, against a registry and against a simple model
// beside it. After each step, and at the end:
//
//   - a call reaches one page at most, the one that its name led to, once; one that is
//     said not to have run has not, and one that has an answer has;
//   - every call ends: at once when its page, its caller or its answer ends it, else by
//     its limit;
//   - names and prefixes are unique in a view, each leads to the page that describing
//     the view gives for it, that is just what the model says is there, and a prefix
//     changes by its own page's rename only;
//   - nothing crosses tenants: every text that a page, a caller or a client says carries
//     its own mark, and whoever hears it must be meant.
//
// A script is given by its seed, so that one which fails can be run again; it is
// printed as short as it could be made. What is done at once may come in another order
// then.
var (
	modelSeed  = flag.Uint64("model.seed", 0, "the model test's first seed")
	modelSeeds = flag.Int("model.seeds", 200, "how many seeds the model test runs")
	modelSteps = flag.Int("model.steps", 200, "how many steps each of them has")
)

func TestModel(t *testing.T) {
	done := make(map[string]int)
	for seed := *modelSeed; seed < *modelSeed+uint64(*modelSeeds); seed++ {
		steps := newScript(seed, *modelSteps)
		m := steps.run(t)
		for what, n := range m.done {
			done[what] += n
		}
		if m.failure == "" {
			continue
		}
		short := shrink(t, steps[:m.at+1], m)
		t.Fatalf("seed %d: %s\nAgain: go test ./tenant -run TestModel -model.seeds=1 -model.seed=%d -model.steps=%d\n\n%s: %s",
			seed, m.failure, seed, *modelSteps, strings.Join(short.script, "\n"), short.failure)
	}
	if *modelSeeds < 50 {
		return
	}
	// A model that does nothing finds nothing.
	for _, what := range outcomes {
		if done[what] == 0 {
			t.Errorf("no script has %q", what)
		}
	}
	t.Log(done)
}

// step is one thing to do. Which objects it is done to is picked from those that there
// are by then, so that a script stays one when steps are taken out.
type step struct {
	op     *operation
	pick   [4]uint32
	atOnce bool // with the one before
}

func (s *step) choose(i, n int) int { return int(s.pick[i] % uint32(n)) }

type steps []step

func newScript(seed uint64, n int) steps {
	rnd := rand.New(rand.NewPCG(seed, 6))
	total := 0
	for i := range operations {
		total += operations[i].weight
	}
	s := make(steps, n)
	for i := range s {
		at := rnd.IntN(total)
		if i < 3 { // a view, a page and its tools: else little happens at first
			at = []int{0, operations[0].weight, operations[0].weight + operations[1].weight}[i]
		}
		for k := range operations {
			if at -= operations[k].weight; at < 0 {
				s[i].op = &operations[k]
				break
			}
		}
		s[i].atOnce = rnd.IntN(3) == 0
		for k := range s[i].pick {
			s[i].pick[k] = rnd.Uint32()
		}
	}
	return s
}

// run gives the model as it was when the first thing went wrong, or at the end.
func (s steps) run(t *testing.T) (m *model) {
	defer func() { // a call that never ends leaves synctest nothing but to panic
		if p := recover(); p != nil && m.failure == "" {
			m.failure = fmt.Sprint("panic: ", p)
		}
	}()
	synctest.Test(t, func(*testing.T) {
		m = newModel()
		defer m.end()
		for m.at = 0; m.at < len(s) && m.failure == ""; {
			next := m.at + 1
			for next < len(s) && s[next].atOnce && !s[next].op.alone && !s[m.at].op.alone {
				next++
			}
			m.together(s[m.at:next])
			m.at = next
		}
		m.at = min(m.at, len(s)) - 1
		m.finish()
	})
	return m
}

// shrink takes steps out while what is left fails.
func shrink(t *testing.T, s steps, failed *model) *model {
	for size, runs := len(s)/2, 0; size > 0; size /= 2 {
		for i := 0; i+size <= len(s) && runs < 2000; runs++ {
			fewer := slices.Concat(s[:i], s[i+size:])
			if m := fewer.run(t); m.failure != "" {
				s, failed = fewer[:m.at+1], m
			} else {
				i += size
			}
		}
	}
	return failed
}
