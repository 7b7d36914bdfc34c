package manifest

import (
	"net/url"
	"strings"
	"testing"
)

// static and template are resources as Parse makes them.
func static(t *testing.T, uri string) *Resource {
	t.Helper()
	return resourceOf(t, `"resources":[{"uri":`+quote(uri)+`}]`)
}

func template(t *testing.T, uri string) *Resource {
	t.Helper()
	return resourceOf(t, `"resourceTemplates":[{"uriTemplate":`+quote(uri)+`}]`)
}

func resourceOf(t *testing.T, member string) *Resource {
	t.Helper()
	m, err := Parse([]byte(`{"tools":[],`+member+`}`), Limits{})
	if err != nil || len(m.Resources) != 1 || len(m.Problems) != 0 {
		t.Fatalf("Parse(%.300s): %+v, %v; want one resource and no problem", member, m, err)
	}
	return m.Resources[0]
}

func quote(s string) string { return string(appendString(nil, s)) }

func TestPublishedURIs(t *testing.T) {
	for _, tt := range []struct {
		own                 string
		template            bool
		published, fallback string
	}{
		{"cart", false, "page://shop/cart", ""},
		{"/cart", false, "page://shop/cart", ""},
		{"//cart", false, "page://shop/cart", ""},
		{"/", false, "page://shop/", ""},
		{"?tab=2", false, "page://shop/?tab=2", ""},
		{"#top", false, "page://shop/#top", ""},
		{"a//b/", false, "page://shop/a//b/", ""},
		{"notes/Käse", false, "page://shop/notes/K%C3%A4se", ""},
		{"a%20b%zz%", false, "page://shop/a%20b%25zz%25", ""},
		{`q?x[]="1"`, false, "page://shop/q?x%5B%5D=%221%22", ""},
		{"...", false, "page://shop/...", ""},
		{"a/..b?x=../y#/../", false, "page://shop/a/..b?x=../y#/../", ""},
		{"item/{id}", true, "page://shop/item/{id}", ""},
		{"/item/{id}", true, "page://shop/item/{id}", ""},
		{"/{id}", true, "page://shop/{id}", ""},
		{"{/path*}", true, "page://shop/{/path*}", ""},
		{"Käse/{id}", true, "page://shop/K%C3%A4se/{id}", ""},
		{"{scheme}://x", true, "page://shop/{scheme}://x", ""},
		{"cart", true, "page://shop/cart", ""},
		{"https://a.example/x?y#z", false, "https://a.example/x?y#z", "page://shop//https://a.example/x?y#z"},
		{"HTTP://A.example", false, "HTTP://A.example", "page://shop//HTTP://A.example"},
		{"http://[::1]:80/ä", false, "http://[::1]:80/%C3%A4", "page://shop//http://%5B::1%5D:80/%C3%A4"},
		{"urn:isbn:1", false, "urn:isbn:1", "page://shop//urn:isbn:1"},
		{"test://static-text", false, "test://static-text", "page://shop//test://static-text"},
		{"file:///a/../b", false, "file:///a/../b", "page://shop//file:///a/../b"},
		{"test://t/{id}/data", true, "test://t/{id}/data", "page://shop//test://t/{id}/data"},
		{"https://{host}:{port}/{+rest}", true, "https://{host}:{port}/{+rest}", "page://shop//https://{host}:{port}/{+rest}"},
	} {
		r := static
		if tt.template {
			r = template
		}
		res := r(t, tt.own)
		if tt.fallback == "" {
			tt.fallback = tt.published
		}
		for _, prefix := range []string{"shop", "Shop!"} {
			if got := res.Published(prefix); got != tt.published {
				t.Errorf("%q is published as %q; want %q", tt.own, got, tt.published)
			}
			if got := res.Fallback(prefix); got != tt.fallback {
				t.Errorf("%q falls back to %q; want %q", tt.own, got, tt.fallback)
			}
		}
		if _, err := url.Parse(strings.NewReplacer("{", "", "}", "").Replace(tt.fallback)); err != nil {
			t.Errorf("%q: %v", tt.fallback, err)
		}
		if tt.template {
			continue
		}
		for _, published := range []string{tt.published, tt.fallback} {
			own, vars, ok := res.Match(published, published)
			if !ok || own != tt.own || vars == nil || len(vars) != 0 {
				t.Errorf("Match(%q) = %q, %v, %v; want %q", published, own, vars, ok, tt.own)
			}
			for _, other := range []string{published + "x", published[1:], published[:len(published)-1], "x" + published, ""} {
				if own, _, ok := res.Match(published, other); ok {
					t.Errorf("Match(%q, %q) = %q", published, other, own)
				}
			}
		}
		if tt.published != tt.fallback {
			if _, _, ok := res.Match(tt.fallback, tt.published); ok {
				t.Errorf("%q is read by the URI that another page has taken", tt.own)
			}
		}
	}
}

func TestBadURIsAreRefused(t *testing.T) {
	for _, tt := range []struct {
		own      string
		template bool
		want     string
	}{
		{"", false, "is empty"},
		{"a b", false, "white space"},
		{"a\u00a0b", false, "white space"},
		{"a\nb", false, "white space"},
		{"a\u200bb", false, "cannot be seen"},
		{"a\u202eb{x}", true, "cannot be seen"},
		{"a\ufffdb", false, "cannot be seen"},
		{strings.Repeat("a", 2049), false, "the limit is 2048"},
		{strings.Repeat("ä", 1000), false, "when percent-encoded"},
		{"a/{x}" + strings.Repeat("ä", 1000), true, "when percent-encoded"},
		{"item/{id}", false, "declare a template as uriTemplate"},
		{"item}", false, "declare a template as uriTemplate"},
		{"..", false, `segment ".."`},
		{"/../other/cart", false, `segment ".."`},
		{"a/%2E%2e/b", false, `segment ".."`},
		{"./a", false, `segment "."`},
		{"a/./{x}", true, `segment "."`},
		{"{x}/../b", true, `segment ".."`},
		{"page://other/cart", false, "scheme page"},
		{"PAGE:x", false, "scheme page"},
		{"page://other/{x}", true, "scheme page"},
		{"JavaScript:alert(1)", false, "scheme javascript"},
		{"data:text/plain,x", false, "scheme data"},
		{"blob:{x}", true, "scheme blob"},
		{"x:", false, "nothing after its scheme"},
		{"x://", false, "nothing after its scheme"},
		{"http://[::1", false, "not a valid URI"},
		{"http://%5B::1%5D/", false, "not a valid URI"},
		{"http://a:b/", false, "not a valid URI"},
		{"a/{x", true, "a { without a }"},
		{"a/x}", true, "a } without a {"},
		{"a/{}", true, "not a valid URI template"},
		{"a/{x y}", true, "white space"},
		{"a/{x{y}}", true, "a } without a {"},
		{"a/{x{y}", true, "not a valid URI template"},
		{"a/{x:0}", true, "not a valid URI template"},
		{"a/{x:10000}", true, "not a valid URI template"},
		{"a/{|x}", true, "not a valid URI template"},
		{"a/{é}", true, "not a valid URI template"},
		{"a/{x:99999999999999999999}", true, "not a valid URI template"},
		{strings.Repeat("{x}", 33), true, "more than 32 variables"},
		{"{?" + strings.Repeat("x,", 32) + "x}", true, "more than 32 variables"},
	} {
		member := `"resources":[{"uri":` + quote(tt.own) + `}]`
		if tt.template {
			member = `"resourceTemplates":[{"uriTemplate":` + quote(tt.own) + `}]`
		}
		m, err := Parse([]byte(`{"tools":[],`+member+`}`), Limits{})
		if err != nil || len(m.Resources) != 0 || len(m.Problems) != 1 || !strings.Contains(m.Problems[0].Reason, tt.want) || m.Problems[0].Kind != "resource" {
			t.Errorf("%.60q: %+v, %v; want a refusal with %q", tt.own, m, err, tt.want)
		}
	}
}

func TestDistinctURIsArePublishedApart(t *testing.T) {
	own := []string{"cart", "Cart", "cart/", "a:b/c", "/https:/a.example", "https://a.example", "https:/a.example", "HTTPS://a.example",
		"~/https://a.example", "x/https://a.example", "urn:a", "http://[::1]/", "K%C3%A4se", "K%c3%a4se", "%", "%2525"}
	seen := map[string]string{}
	for _, uri := range own {
		fallback := static(t, uri).Fallback("shop")
		if !strings.HasPrefix(fallback, "page://shop/") {
			t.Errorf("%q falls back to %q", uri, fallback)
		}
		if other, ok := seen[fallback]; ok {
			t.Errorf("%q and %q both fall back to %q", uri, other, fallback)
		}
		seen[fallback] = uri
	}
}

func TestHandMadeResourceWithABadTemplate(t *testing.T) {
	r := &Resource{URI: "a/{x", Template: true}
	if got := r.Published("p"); got != "page://p/a/%7Bx" {
		t.Errorf("published as %q", got)
	}
	if own, _, ok := r.Match(r.Published("p"), r.Published("p")); !ok || own != "a/{x" {
		t.Errorf("got %q, %v", own, ok)
	}
}
