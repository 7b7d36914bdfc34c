package state

import (
	"strings"
	"testing"
)

func TestParseOrigin(t *testing.T) {
	id := strings.Repeat("abcdmnop", 4)
	for in, want := range map[string]string{
		"https://app.example":                                             "https://app.example",
		" HTTPS://App.Example:443/ ":                                      "https://app.example",
		"http://app.example:80":                                           "http://app.example",
		"http://app.example:443":                                          "http://app.example:443",
		"https://app.example:08443/a/b?c=http://x#*@":                     "https://app.example:8443",
		"https://app.example:":                                            "https://app.example",
		"https://app.example?q":                                           "https://app.example",
		"https://app.example#f":                                           "https://app.example",
		`https://app.example\@evil.example`:                               "https://app.example",
		"https://app.example/100%/ä":                                      "https://app.example",
		"https://xn--bcher-kva.example":                                   "https://xn--bcher-kva.example",
		"https://app.example./":                                           "https://app.example.", // another origin, for browsers
		"http://under_score.example":                                      "http://under_score.example",
		"http://localhost:3000/x":                                         "http://localhost:3000",
		"http://192.0.2.1:8080":                                           "http://192.0.2.1:8080",
		"http://[2001:DB8:0:0::1]:3000/":                                  "http://[2001:db8::1]:3000",
		"http://[::ffff:192.0.2.1]":                                       "http://[::ffff:c000:201]",
		"http://app.example:0":                                            "http://app.example:0",
		"chrome-extension://" + strings.ToUpper(id) + "/p":                "chrome-extension://" + id,
		"moz-extension://0F1E2D3C-0000-4000-8000-0123456789ab/popup.html": "moz-extension://0f1e2d3c-0000-4000-8000-0123456789ab",
	} {
		got, err := ParseOrigin(in)
		if got != want || err != nil {
			t.Errorf("ParseOrigin(%q) = %q, %v; want %q", in, got, err, want)
		}
		if again, err := ParseOrigin(got); again != got || err != nil {
			t.Errorf("ParseOrigin(%q) = %q, %v; want it unchanged", got, again, err)
		}
	}
}

func TestParseOriginRefuses(t *testing.T) {
	for in, want := range map[string]string{
		"":                                 "has no scheme; write it as in https://app.example",
		"app.example":                      "has no scheme",
		"app.example:8443":                 "has no scheme",
		"localhost:3000":                   "has no scheme",
		"//app.example":                    "has no scheme",
		"://app.example":                   "has no scheme",
		"https:app.example":                "has no scheme",
		"1http://app.example":              "has no scheme",
		"null":                             "--allow-origin null",
		"NULL":                             "--allow-origin null",
		"file:///home/me/page.html":        "--allow-origin null",
		"file:/home/me/page.html":          "--allow-origin null",
		"*":                                "wildcard",
		"*.app.example":                    "wildcard",
		"https://*.app.example":            "wildcard",
		"*://app.example":                  "wildcard",
		"https://app.example:*":            "wildcard",
		"https://me@app.example":           "user name",
		"https://app.example:x@evil.test/": "user name",
		"https://":                         "names no host",
		"https:///app.example":             "names no host",
		"https://:443":                     "no valid host name",
		"https://.app.example":             "no valid host name",
		"https://app..example":             "no valid host name",
		"https://app example":              "no valid host name",
		"https://app%2eexample":            "no valid host name",
		"https://app.exa\nmple":            "no valid host name",
		"https://" + strings.Repeat("a.", 200) + "example":      "no valid host name",
		"https://bücher.example":                                "xn--",
		"https://app。example":                                   "xn--",
		"https://app.example:70000":                             "65535",
		"https://app.example:+80":                               "65535",
		"https://app.example:8x":                                "65535",
		"http://1.2.3":                                          "four decimal numbers",
		"http://2130706433":                                     "four decimal numbers",
		"http://0x7f.0.0.1":                                     "four decimal numbers",
		"http://127.0.0.01":                                     "four decimal numbers",
		"http://127.0.0.1.":                                     "four decimal numbers",
		"http://[::1":                                           "IPv6",
		"http://[fe80::1%25eth0]":                               "IPv6",
		"http://[127.0.0.1]":                                    "IPv6",
		"http://[::1]x":                                         "IPv6",
		"ws://app.example":                                      "begins with https://",
		"blob:https://app.example/1":                            "has no scheme",
		"javascript://app.example":                              "begins with https://",
		"chrome-extension://my-extension":                       "32 letters",
		"moz-extension://me@example":                            "user name",
		"moz-extension://abc":                                   "UUID",
		"chrome-extension://" + strings.Repeat("a", 32) + ":80": "32 letters",
	} {
		got, err := ParseOrigin(in)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseOrigin(%q) = %q, %v; want an error with %q", in, got, err, want)
			continue
		}
		if len(err.Error()) > 300 || strings.ContainsAny(err.Error(), "\n\x1b") {
			t.Errorf("ParseOrigin(%q): a long or wild error: %v", in, err)
		}
	}
}

func FuzzParseOrigin(f *testing.F) {
	for _, seed := range []string{"https://App.example:443/x", "http://[::ffff:1.2.3.4]:1", "null", "chrome-extension://a", "http://1.2.3.4."} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		origin, err := ParseOrigin(s)
		if err != nil {
			return
		}
		if again, err := ParseOrigin(origin); again != origin || err != nil {
			t.Fatalf("ParseOrigin(%q) = %q, then %q, %v", s, origin, again, err)
		}
		if len(origin) > 300 || strings.ContainsAny(origin, "@*/\\?# ") && strings.Count(origin, "/") != 2 {
			t.Fatalf("ParseOrigin(%q) = %q", s, origin)
		}
	})
}

func TestIsLoopback(t *testing.T) {
	for origin, want := range map[string]bool{
		"http://localhost": true, "https://localhost:8443": true, "http://app.localhost:1": true, "http://localhost.:1": true,
		"http://127.0.0.1:3000": true, "http://127.9.9.9": true, "http://[::1]:3000": true, "http://[::1]": true, "http://[::ffff:7f00:1]": true,
		"http://localhost.example": false, "http://notlocalhost": false, "http://[2001:db8::1]": false, "http://192.0.2.1": false,
		"chrome-extension://localhost": false, "https://127.0.0.1.example": false, "null": false, "": false,
	} {
		if got := IsLoopback(origin); got != want {
			t.Errorf("IsLoopback(%q) = %v", origin, got)
		}
	}
}
