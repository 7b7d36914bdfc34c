package manifest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/yosida95/uritemplate/v3"
)

func TestTemplatesMatch(t *testing.T) {
	const no = "no match"
	for _, tt := range []struct{ template, uri, want string }{ // want: own form, and the variables in JSON
		{"item/{id}", "page://p/item/5", `item/5 {"id":"5"}`},
		{"/item/{id}", "page://p/item/5", `/item/5 {"id":"5"}`},
		{"item/{id}", "page://p/item/", no},
		{"item/{id}", "page://p/item/5/6", no},
		{"item/{id}", "page://p/item/5?x=1", no},
		{"item/{id}", "page://p/item/5#x", no},
		{"item/{id}", "page://q/item/5", no},
		{"item/{id}", "page://p//item/5", no},
		{"item/{id}", "item/5", no},
		{"item/{id}", "page://p/item/a%20b%2Fc", `item/a%20b%2Fc {"id":"a b/c"}`},
		{"item/{id}", "page://p/item/a b", `item/a%20b {"id":"a b"}`},
		{"item/{id}", "page://p/item/Käse", `item/K%C3%A4se {"id":"Käse"}`},
		{"item/{id}", "page://p/item/me@a.example:80+1", `item/me@a.example:80+1 {"id":"me@a.example:80+1"}`},
		{"item/{id}", "page://p/item/a,b", `item/a,b {"id":"a,b"}`},
		{"item/{id}", "page://p/item/%ff%zz", `item/%ff%25zz {"id":"` + "\uFFFD" + `%zz"}`},
		{"item/{id}20", "page://p/item/%20", no},
		{"item/{id}20", "page://p/item/%2020", `item/%2020 {"id":" "}`},
		{"Käse/{id}", "page://p/K%C3%A4se/5", `Käse/5 {"id":"5"}`},
		{"Käse/{id}", "page://p/Käse/5", `Käse/5 {"id":"5"}`},
		{"a[{i}]", "page://p/a[1]", `a[1] {"i":"1"}`},
		{"a[{i}]", "page://p/a%5B1%5D", `a[1] {"i":"1"}`},
		{"cart", "page://p/cart", `cart {}`},
		{"{a}-{b}", "page://p/x-y-z", `x-y-z {"a":"x-y","b":"z"}`},
		{"{a}{b}", "page://p/xyz", `xyz {"a":"xy","b":"z"}`},
		{"{a.b}/{c%20d}/{_1}", "page://p/1/2/3", `1/2/3 {"_1":"3","a.b":"1","c%20d":"2"}`},
		{"{a}/{a}", "page://p/x/x", `x/x {"a":"x"}`},
		{"{a}/{a}", "page://p/x/y", no},
		{"{a:2}/{a}", "page://p/ab/abc", `ab/abc {"a":"abc"}`},
		{"{a}/{a:2}", "page://p/abc/ab", `abc/ab {"a":"abc"}`},
		{"{a:1}/{a:2}/{a:1}", "page://p/a/ab/a", `a/ab/a {"a":"ab"}`},
		{"{a:2}/{a}", "page://p/ab/xbc", no},
		{"{a:2}", "page://p/abc", no},
		{"{a:2}", "page://p/%C3%A4%C3%B6", `%C3%A4%C3%B6 {"a":"äö"}`},
		{"{a,b}", "page://p/1,2", `1,2 {"a":"1","b":"2"}`},
		{"{a,b}", "page://p/1", `1 {"a":"1"}`},
		{"{a,b}", "page://p/1,2,3", `1,2,3 {"a":"1","b":"2,3"}`},
		{"{a*,b}", "page://p/1,2,3", `1,2,3 {"a":"1,2","b":"3"}`},
		{"{a,b*,c}", "page://p/1,2,3,4", `1,2,3,4 {"a":"1","b":"2,3","c":"4"}`},
		{"files/{+path}", "page://p/files/a/b.txt?x#y", `files/a/b.txt?x#y {"path":"a/b.txt?x#y"}`},
		{"files/{+path}", "page://p/files/", no},
		{"files/{+path}/raw", "page://p/files/a/raw/raw", `files/a/raw/raw {"path":"a/raw"}`},
		{"{+path}{?q}", "page://p/a/b?q=1", `a/b?q=1 {"path":"a/b","q":"1"}`},
		{"{+path}{?q}{#f}", "page://p/a/b#x", `a/b#x {"f":"x","path":"a/b"}`},
		{"{name}{.ext}", "page://p/a.tar.gz", `a.tar.gz {"ext":"tar.gz","name":"a"}`},
		{"{name}{.ext}", "page://p/a", `a {"name":"a"}`},
		{"{name}.{ext}", "page://p/a.tar.gz", `a.tar.gz {"ext":"gz","name":"a.tar"}`},
		{"x{.a,b}", "page://p/x.1.2", `x.1.2 {"a":"1","b":"2"}`},
		{"x{.a*}", "page://p/x.1.2", `x.1.2 {"a":"1,2"}`},
		{"x{/a}", "page://p/x", `x {}`},
		{"x{/a}", "page://p/x/", `x/ {"a":""}`},
		{"x{/a}", "page://p/x/1", `x/1 {"a":"1"}`},
		{"x{/a}", "page://p/x/1/2", no},
		{"x{/a,b}", "page://p/x/1/2", `x/1/2 {"a":"1","b":"2"}`},
		{"x{/a}{/b}", "page://p/x/1/2", `x/1/2 {"a":"1","b":"2"}`},
		{"x{/a,b}", "page://p/x/1/2/3", no},
		{"x{/a,b}/{+c}", "page://p/x/1/2/3/4", `x/1/2/3/4 {"a":"1","b":"2","c":"3/4"}`},
		{"x{/a,b}/{+c}", "page://p/x/3", `x/3 {"c":"3"}`},
		{"x{/a*,b}", "page://p/x/1/2/3", `x/1/2/3 {"a":"1,2","b":"3"}`},
		{"{a}{b}{&c}", "page://p/12&c=3", `12&c=3 {"a":"1","b":"2","c":"3"}`},
		{"x{/a*}", "page://p/x/1/2%2C3", `x/1/2%2C3 {"a":"1,2,3"}`},
		{"x{/a*}/end", "page://p/x/1/end/end", `x/1/end/end {"a":"1,end"}`},
		{"{/a*}", "page://p//1/2", `/1/2 {"a":"1,2"}`},
		{"x{;a,b}", "page://p/x;a=1;b", `x;a=1;b {"a":"1","b":""}`},
		{"x{?a,b}", "page://p/x", `x {}`},
		{"x{?a,b}", "page://p/x?", `x? {}`},
		{"x{?a,b}", "page://p/x?b=2", `x?b=2 {"b":"2"}`},
		{"x{?a,b}", "page://p/x?b=2&a=1%262", `x?b=2&a=1%262 {"a":"1&2","b":"2"}`},
		{"x{?a,b}", "page://p/x?a=1&c=2", no},
		{"x{?a,b}", "page://p/x?a=1&a=2", no},
		{"x{?a}{&a}", "page://p/x?a=1&a=1", `x?a=1&a=1 {"a":"1"}`},
		{"x{?a}", "page://p/x?a=/b?c=d", `x?a=/b?c=d {"a":"/b?c=d"}`},
		{"x{?a}{&b}", "page://p/x?a=1&b=2", `x?a=1&b=2 {"a":"1","b":"2"}`},
		{"x?f=1{&a}", "page://p/x?f=1&a=2", `x?f=1&a=2 {"a":"2"}`},
		{"x{?a}&f=1", "page://p/x?a=2&f=1", `x?a=2&f=1 {"a":"2"}`},
		{"x{?a*}", "page://p/x?a=1&a=2", `x?a=1&a=2 {"a":"1,2"}`},
		{"x{?a*}", "page://p/x?k=1&l=2", `x?k=1&l=2 {"a":"k=1,l=2"}`},
		{"x{#a}", "page://p/x#1/2", `x#1/2 {"a":"1/2"}`},
		{"x{#a}", "page://p/x", `x {}`},
		{"test://t/{id}/data", "test://t/123/data", `test://t/123/data {"id":"123"}`},
		{"https://{host}/{+rest}", "https://a.example:80/b/c", `https://a.example:80/b/c {"host":"a.example:80","rest":"b/c"}`},
	} {
		r := template(t, tt.template)
		check := func(published, uri string) {
			t.Helper()
			got := no
			if own, vars, ok := r.Match(published, uri); ok {
				b, _ := json.Marshal(vars)
				got = strings.NewReplacer(`\u0026`, "&").Replace(fmt.Sprintf("%s %s", own, b))
			}
			if got != tt.want {
				t.Errorf("%s: %s is %s; want %s", published, uri, got, tt.want)
			}
		}
		check(r.Published("p"), tt.uri)
		if r.compiled().absolute {
			check(r.Fallback("p"), "page://p//"+tt.uri)
		}
	}
}

// What RFC 6570 makes of a template and values matches the template, and gives a URI again that is the same.
// Values are ASCII: the library encodes other characters wrongly.
func TestExpansionsMatch(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	pick := func(list ...string) string { return list[rng.IntN(len(list))] }
	for range 3000 {
		var tmpl strings.Builder
		tmpl.WriteString(pick("a/", "", "x-", "https://a.example/"))
		values := uritemplate.Values{}
		for i := range 1 + rng.IntN(3) {
			name := string(rune('p' + i))
			tmpl.WriteString("{" + pick("", "+", ".", "/", ";", "?", "&", "#") + name + "}" + pick("!", "!x", "!20"))
			values[name] = uritemplate.String(pick("v", "a b", "c%20", "20", "%", "x=y&z", "-20", "Z~_-"))
		}
		r := template(t, tmpl.String())
		published := r.Published("p")
		uri, err := uritemplate.MustNew(published).Expand(values)
		if err != nil {
			t.Fatal(err)
		}
		own, vars, ok := r.Match(published, uri)
		if !ok {
			t.Errorf("%s does not match %s", published, uri)
			continue
		}
		if !strings.HasSuffix(uri, strings.TrimLeft(own, "/")) {
			t.Errorf("%s: own form of %s is %s", published, uri, own)
		}
		again := uritemplate.Values{}
		for name, v := range vars {
			again[name] = uritemplate.String(v)
		}
		if got, _ := uritemplate.MustNew(published).Expand(again); got != uri {
			t.Errorf("%s: %s gave %v, which gives %s", published, uri, vars, got)
		}
	}
}

func TestHostileTemplatesAndURIsStayCheap(t *testing.T) {
	long := strings.Repeat("a", 8<<10-9) // below page://p/
	for name, tt := range map[string]struct{ template, uri string }{
		"many variables":        {strings.Repeat("{+a}", 32), long},
		"variables and text":    {strings.Repeat("{+a}aaaaaaaaaaaaaaa", 32), long},
		"text in the middle":    {"{+a}" + strings.Repeat("a", 1900) + "{+b}b", long[1:] + "b"},
		"many separators":       {"{?a*}{&b*}", "?" + strings.Repeat("a&", 4090)},
		"commas":                {"{a,b,c*,d}", strings.Repeat(",", 8<<10-9)},
		"percent":               {strings.Repeat("{+a}%20", 32), strings.Repeat("%20", 2700)},
		"characters to encode":  {strings.Repeat("{+a}", 32), strings.Repeat("é", 1300)},
		"one variable 32 times": {strings.Repeat("{a}-", 32), strings.Repeat(long[:250]+"-", 32)},
		"prefixes":              {strings.Repeat("{a:9999}/", 31), strings.Repeat("aaaa/", 1600)},
	} {
		t.Run(name, func(t *testing.T) {
			within(t, func() {
				r := template(t, tt.template)
				for range 50 {
					r.Match(r.Published("p"), "page://p/"+tt.uri)
				}
			})
		})
	}
}

func TestOverlongURIsNeverMatch(t *testing.T) {
	r := template(t, "{+a}")
	fits := "page://p/" + strings.Repeat("a", 8<<10-9)
	if _, _, ok := r.Match("page://p/{+a}", fits); !ok {
		t.Error("8 KiB does not match")
	}
	for _, uri := range []string{fits + "a", "page://p/" + strings.Repeat("é", 4000)} {
		if _, _, ok := r.Match("page://p/{+a}", uri); ok {
			t.Errorf("%d bytes match", len(uri))
		}
	}
}

func TestMatchIsSafeForUseByMany(t *testing.T) {
	r := &Resource{URI: "item/{id}", Template: true}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			uri := fmt.Sprintf("page://p/item/%d", i)
			if _, vars, ok := r.Match(r.Published("p"), uri); !ok || vars["id"] != fmt.Sprint(i) {
				t.Errorf("%s: %v, %v", uri, vars, ok)
			}
		})
	}
	wg.Wait()
}
