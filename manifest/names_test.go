package manifest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestSlug(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"Shop", "shop"}, {"Shop - Home (3)", "shop_home_3"}, {"__a__b__", "a_b"}, {"", "tab"}, {"日本語", "tab"},
		{"!!!", "tab"}, {"2048", "tab_2048"}, {"3D viewer", "tab_3d_viewer"}, {"_7", "tab_7"}, {"Café", "caf"}, {"a", "a"},
		{"tab", "tab"}, {"A very long title of a page that goes on", "a_very_long_title_of_a_p"},
		{"twentythree characters_x", "twentythree_characters_x"}, {"twenty three character _ yes", "twenty_three_character_y"},
		{"aaaaaaaaaaaaaaaaaaaaaaa b", "aaaaaaaaaaaaaaaaaaaaaaa"}, {"\xff\xfea\x00b", "a_b"}, {"\u212Aelvin", "elvin"},
	} {
		got := Slug(tt.in)
		if got != tt.want {
			t.Errorf("Slug(%q) = %q; want %q", tt.in, got, tt.want)
		}
		if Slug(got) != got {
			t.Errorf("Slug(%q) = %q, and then %q", tt.in, got, Slug(got))
		}
	}
}

func TestSlugOrdinal(t *testing.T) {
	for _, tt := range []struct {
		slug string
		n    int
		want string
	}{
		{"shop", 1, "shop"}, {"shop", 0, "shop"}, {"shop", -3, "shop"}, {"shop", 2, "shop2"}, {"shop", 12, "shop12"},
		{"shop2", 2, "shop2_2"}, {"shop1", 2, "shop1_2"},
		{"abcdefghijklmnopqrstuvwx", 2, "abcdefghijklmnopqrstuvw2"},
		{"abcdefghijklmnopqrstuvw9", 2, "abcdefghijklmnopqrstuvw2"},
		{"abcdefghijklmnopqrstuv_x", 10, "abcdefghijklmnopqrstuv10"},
		{"abcdefghijklmnopqrstuv_x", 100, "abcdefghijklmnopqrstu100"},
		{"abcdefghijklmnopqrst2345", 100, "abcdefghijklmnopqrst100"},
		{"", 2, "tab2"}, {"Bad__Slug", 2, "bad_slug2"}, {"a1111111111111111111111", 9223372036854775807, "a111_9223372036854775807"},
	} {
		if got := SlugOrdinal(tt.slug, tt.n); got != tt.want {
			t.Errorf("SlugOrdinal(%q, %d) = %q; want %q", tt.slug, tt.n, got, tt.want)
		}
	}
}

func TestSlugOrdinalsOfOneSlugDiffer(t *testing.T) {
	legal := regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	for _, slug := range []string{"shop", "shop2", "a", "a1", "abcdefghijklmnopqrstuvwx", "abcdefghijklmnopqrstuvw1", "a22222222222222222222222"} {
		seen := map[string]int{}
		for n := range 3000 {
			got := SlugOrdinal(slug, n+1)
			if prev, ok := seen[got]; ok {
				t.Fatalf("%q: %d and %d are both %q", slug, prev, n+1, got)
			}
			seen[got] = n + 1
			if !legal.MatchString(got) || len(got) > 24 || strings.Contains(got, "__") || strings.HasSuffix(got, "_") {
				t.Fatalf("SlugOrdinal(%q, %d) = %q", slug, n+1, got)
			}
		}
	}
}

func sha(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

func maxOf(a, b int) int { return max(a, b) }

func tools(names ...string) []*Tool {
	var out []*Tool
	for _, n := range names {
		out = append(out, &Tool{Name: n})
	}
	return out
}

func TestPublishedNames(t *testing.T) {
	long := strings.Repeat("long", 12)
	for _, tt := range []struct {
		name   string
		prefix string
		in     []string
		max    int
		want   []string
	}{
		{"own case", "shop", []string{"saveNote", "x-y_z"}, 0, []string{"shop__saveNote", "shop__x-y_z"}},
		{"other characters", "shop", []string{"cart.add-item/v2", "Save note", "c:d", "é"}, 0,
			[]string{"shop__cart_add-item_v2", "shop__Save_note", "shop__c_d", "shop___"}},
		{"collision, case ignored", "shop", []string{"a.b", "other", "a_b", "A_B", "a-b"}, 0,
			[]string{"shop__a_b_e9f97ef5", "shop__other", "shop__a_b_4ae63c65", "shop__A_B_cbd9c18a", "shop__a-b"}},
		{"too long", "shop", []string{long + "1", long + "2", "short"}, 0,
			[]string{"shop__" + long[:33] + "_e3ad5b1a", "shop__" + long[:33] + "_7c4e9d2f", "shop__short"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := PublishedNames(tt.prefix, tools(tt.in...), tt.max)
			for i := range got {
				hash := regexp.MustCompile(`_[0-9a-f]{8}$`)
				if hash.ReplaceAllString(got[i], "_#") != hash.ReplaceAllString(tt.want[i], "_#") {
					t.Errorf("%q: got %q; want %q", tt.in[i], got[i], tt.want[i])
				}
			}
			checkNames(t, got, DefaultMaxName)
		})
	}
}

var legalName = regexp.MustCompile(`^[a-z][A-Za-z0-9_-]*$`)

func checkNames(t *testing.T, names []string, max int) {
	t.Helper()
	seen := map[string]bool{}
	for _, n := range names {
		if !legalName.MatchString(n) || len(n) > max {
			t.Errorf("illegal name %q (limit %d)", n, max)
		}
		if low := strings.ToLower(n); seen[low] {
			t.Errorf("name %q twice", n)
		} else {
			seen[low] = true
		}
	}
}

func TestHashedNameIsSha256OfTheOwnName(t *testing.T) {
	got := PublishedNames("p", tools("a.b", "a_b"), 0)
	if got[0] != "p__a_b_"+sha("a.b")[:8] || got[1] != "p__a_b_"+sha("a_b")[:8] {
		t.Errorf("got %q", got)
	}
}

func TestToolNamedLikeAHashedOne(t *testing.T) {
	trap := "a_b_" + sha("a.b")[:8]
	traps := []string{"a.b", "a_b", trap, strings.ToUpper(trap), trap + "_" + sha(trap)[:8]}
	for _, prefix := range []string{"p", strings.Repeat("p", 24)} {
		for _, max := range []int{0, 1, MinMaxName, 64} {
			limit := maxOf(max, MinMaxName)
			if max == 0 {
				limit = DefaultMaxName
			}
			checkNames(t, PublishedNames(prefix, tools(traps...), max), limit)
		}
	}
}

func TestPublishedNamesDoNotDependOnOrder(t *testing.T) {
	trap := "a_b_" + sha("a.b")[:8]
	own := []string{"a.b", "a_b", "A_B", trap, "x", "x.", "x_", strings.Repeat("n", 99), strings.Repeat("n", 98), "é", "è", "_"}
	byName := map[string]string{}
	for i, n := range PublishedNames("shop", tools(own...), 0) {
		byName[own[i]] = n
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		rng.Shuffle(len(own), func(i, j int) { own[i], own[j] = own[j], own[i] })
		for i, n := range PublishedNames("shop", tools(own...), 0) {
			if byName[own[i]] != n {
				t.Fatalf("%q was %q and is %q", own[i], byName[own[i]], n)
			}
		}
	}
}

// A page can search for names whose hashes agree in as many digits as fit. settle stands in for such a find.
func TestNamesEqualInEveryDigitAreSettledBySortedOrder(t *testing.T) {
	n := namer{head: "shop__", room: 20}
	for _, order := range [][]string{{"a", "b", "c"}, {"c", "a", "b"}} {
		out := []string{"shop__x_0", "shop__X_0", "shop__x_0"}
		n.settle(out, order, 19)
		checkNames(t, out, 26)
		if got := out[slices.Index(order, "a")]; got != "shop___"+sha("a\x001")[:19] {
			t.Errorf("a: %q", got)
		}
	}
}

func TestIdenticalToolsStillGetDistinctNames(t *testing.T) {
	checkNames(t, PublishedNames("shop", tools("a", "a", "a"), 0), DefaultMaxName)
}

func TestManyCollidingNames(t *testing.T) {
	var own []string
	for i := range 512 {
		own = append(own, fmt.Sprintf("%s%d", strings.Repeat("é", 300), i)[:600-i%7])
	}
	own = append(own, "Ab", "aB", "AB", "ab")
	checkNames(t, PublishedNames("x", tools(own...), 40), 40)
}

func TestBadPrefixIsMadeASlug(t *testing.T) {
	got := PublishedNames("Bad__Prefix of far too great a length_", tools("a"), 0)
	if got[0] != "bad_prefix_of_far_too_gr__a" {
		t.Errorf("got %q", got)
	}
	if got := PublishedNames("p", nil, 0); len(got) != 0 {
		t.Errorf("no tools: %q", got)
	}
}

func FuzzPublishedNames(f *testing.F) {
	f.Add("shop", "a.b\na_b\nA_B", 48)
	f.Add("", strings.Repeat("x", 300)+"\n\n_", 0)
	f.Fuzz(func(t *testing.T, prefix, list string, max int) {
		own := slices.Compact(slices.Sorted(slices.Values(strings.Split(list, "\n"))))
		got := PublishedNames(prefix, tools(own...), max)
		if max <= 0 {
			max = DefaultMaxName
		}
		checkNames(t, got, maxOf(max, MinMaxName))
	})
}

func TestBareNames(t *testing.T) {
	long := strings.Repeat("n", DefaultMaxName)
	own := []string{"save", "list_items-2", "Save", "a.b", "a__b", "A", "1x", "_x", "ping", "x", "X", long, long + "n", "é", "y", "y"}
	want := []string{"save", "list_items-2", "p__Save", "p__a_b", "p__a__b", "p__A", "p__1x", "p___x", "p__ping", "x", "p__X", long, "", "p___", "", ""}
	var prompts []*Prompt
	for _, name := range own {
		prompts = append(prompts, &Prompt{Name: name})
	}
	taken := func(name string) bool { return name == "ping" }
	got := BareToolNames("p", tools(own...), 0, taken)
	if again := BarePromptNames("p", prompts, 0, taken); !slices.Equal(again, got) {
		t.Errorf("prompts %q; want as tools %q", again, got)
	}
	checkNames(t, got, DefaultMaxName)
	prefixed := PublishedNames("p", tools(own...), 0)
	hash := regexp.MustCompile(`_[0-9a-f]{8,}$`)
	for i := range own {
		if want[i] == "" {
			want[i] = prefixed[i]
		}
		if hash.ReplaceAllString(got[i], "") != hash.ReplaceAllString(want[i], "") {
			t.Errorf("%q is published as %q; want %q", own[i], got[i], want[i])
		}
	}
	if got := BareToolNames("p", tools("ping", "Ping2", "ping2"), 0, nil); got[0] != "ping" || got[2] != "ping2" {
		t.Errorf("nothing taken: %q", got)
	}
	if got := PublishedPromptNames("p", prompts, 0); !slices.Equal(got, prefixed) {
		t.Errorf("got %q; want %q", got, prefixed)
	}
}
