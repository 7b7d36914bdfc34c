package manifest

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestClean(t *testing.T) {
	for _, tt := range []struct {
		name, in  string
		max       int
		multiline bool
		want      string
	}{
		{"plain", "Shop – Home (3) 日本 é", 0, false, "Shop – Home (3) 日本 é"},
		{"control", "a\x00b\x07c\x7fd\u0090e", 0, false, "abcde"},
		{"lines to spaces", "a\r\nb\nc\td\re\u2028f", 0, false, "a b c d e f"},
		{"lines kept", "a\r\nb\nc\td\re\u2028f\u0085g", 0, true, "a\nb\nc\td\ne\nf\ng"},
		{"no forged log line", "x\n2026-01-01 ERROR y", 0, false, "x 2026-01-01 ERROR y"},
		{"bidi", "a\u202eb\u2066c\u200fd\u061ce", 0, false, "abcde"},
		{"zero width", "a\u200bb\u200cc\u200dd\u2060e\ufefff\u00adg", 0, false, "abcdefg"},
		{"tags", "a\U000E0041\U000E0020\U000E007F\U000E0001b", 0, false, "ab"},
		{"variation selectors", "a\ufe00\ufe0e\U000E0100b", 0, false, "ab"},
		{"emoji selector", "❤\ufe0f 1\ufe0f", 0, false, "❤\ufe0f 1\ufe0f"},
		{"row of emoji selectors", "❤\ufe0f\ufe0f\ufe0f a\ufe0f", 0, false, "❤\ufe0f a"},
		{"fillers", "a\u3164\u115f\uffa0\u034f\u180eb", 0, false, "ab"},
		{"visible format signs", "\u0600\u06dd", 0, false, "\u0600\u06dd"},
		{"noncharacters", "a\ufffe\U0001FFFFb", 0, false, "ab"},
		{"invalid UTF-8", "a\xff\xc3b\xed\xa0\x80", 0, false, "ab"},
		{"replacement character", "a\ufffdb", 0, false, "a\ufffdb"},
		{"ANSI colour", "\x1b[1;31mred\x1b[0m", 0, false, "red"},
		{"ANSI one-character CSI", "\u009b31mred", 0, false, "red"},
		{"ANSI title", "\x1b]0;evil\x07a\x1b]8;;http://x\x1b\\b", 0, false, "ab"},
		{"ANSI string unterminated", "\x1b]0;rest", 0, false, "0;rest"},
		{"ANSI string cut by another", "\x1bPxx\x1b[31my", 0, false, "y"},
		{"ANSI charset and reset", "\x1b(Ba\x1bcb", 0, false, "ab"},
		{"ANSI at the end", "a\x1b", 0, false, "a"},
		{"ANSI CSI at the end", "a\x1b[3", 0, false, "a"},
		{"trimmed", " \n a b \t", 0, true, "a b"},
		{"nothing left", "\u200b \x00", 0, false, ""},
		{"fits", "abcdef", 6, false, "abcdef"},
		{"cut", "abcdefg", 6, false, "abc…"},
		{"cut at a rune", "ééééé", 8, false, "éé…"},
		{"cut at a space", "abc defgh", 7, false, "abc…"},
		{"cut short", "abcdef", 2, false, "ab"},
		{"cut fits without what is removed", "abc\u200b\u200b\u200b", 3, false, "abc"},
		{"trailing space does not count", "abc    ", 3, false, "abc"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := Clean(tt.in, tt.max, tt.multiline)
			if got != tt.want {
				t.Errorf("Clean(%q) = %q; want %q", tt.in, got, tt.want)
			}
			if again := Clean(got, tt.max, tt.multiline); again != got {
				t.Errorf("cleaning twice: %q, then %q", got, again)
			}
		})
	}
}

func TestCleanIsLinear(t *testing.T) {
	start := time.Now()
	for _, s := range []string{
		strings.Repeat("\x1b]", 1<<20), strings.Repeat("\x1b]\x1b", 1<<20), strings.Repeat("\u200b", 1<<20),
		strings.Repeat("\x1b[", 1<<20), strings.Repeat("\r", 1<<20), strings.Repeat(" ", 1<<22), strings.Repeat("é", 1<<21),
	} {
		Clean(s, 100, false)
		Clean(s, 0, true)
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("took %v", took)
	}
}

func FuzzClean(f *testing.F) {
	f.Add("a\x1b]0;x\x07\u202e❤\ufe0f…", 7, true)
	f.Fuzz(func(t *testing.T, s string, max int, multiline bool) {
		got := Clean(s, max, multiline)
		if max > 0 && len(got) > max {
			t.Errorf("%d bytes; limit %d", len(got), max)
		}
		if !utf8.ValidString(got) {
			t.Errorf("invalid UTF-8: %q", got)
		}
		if strings.ContainsAny(got, "\x1b\r\x00") || !multiline && strings.ContainsAny(got, "\n\t") {
			t.Errorf("control characters: %q", got)
		}
		if again := Clean(got, max, multiline); again != got {
			t.Errorf("%q, cleaned again: %q", got, again)
		}
	})
}
