package agent

import (
	"maps"
	"testing"
)

// wantQuestions asserts what became of the questions that all pages had for users.
func (s *side) wantQuestions(t *testing.T, outcome string, n uint64) {
	t.Helper()
	got := s.Stats().Questions
	maps.DeleteFunc(got, func(_ Question, n uint64) bool { return n == 0 })
	if want := map[Question]uint64{{"elicit", outcome}: n}; !maps.Equal(got, want) {
		t.Errorf("counted %v, want %v", got, want)
	}
}
