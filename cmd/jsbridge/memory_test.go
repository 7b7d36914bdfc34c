package main

import "testing"

// A busy server keeps its memory; one that has become quiet gives it back, once.
func TestMemoryIsGivenBackWhenQuiet(t *testing.T) {
	const mb = 1 << 20
	var u usage
	for _, look := range []struct {
		allocated uint64
		want      bool
	}{
		{2 * mb, false},           // the start
		{2*mb + 1000, false},      // quiet, but it is not worth it
		{50 * mb, false},          // busy
		{90 * mb, false},          // still
		{90*mb + 1000, true},      // quiet
		{90*mb + 2000, false},     // nothing new
		{91*mb + 1000, false},     // little new
		{99 * mb, false},          // busy again
		{100*mb - 1, true},        // quiet again
		{100*mb + 999_999, false}, // given already
	} {
		if got := u.isSpent(look.allocated); got != look.want {
			t.Errorf("at %d bytes: %t", look.allocated, got)
		}
	}
}
