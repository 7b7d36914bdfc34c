package bridge

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"jsbridge/bridge/dashboard"
)

func TestAPIRefusals(t *testing.T) {
	b := newBoard(t, Options{})
	without := func(key string) map[string]string {
		h := b.headers()
		delete(h, key)
		return h
	}
	with := func(key, value string) map[string]string {
		h := b.headers()
		h[key] = value
		return h
	}
	paths := map[string]string{"/api/connections/x/identify": "POST", "/api/connections/x/rename": "POST", "/api/connections/x/move": "POST", "/api/connections/x/disconnect": "POST",
		"/api/connections/x/tools": "POST", "/api/connections/x/tools/y": "DELETE", "/api/connections/x/call": "POST", "/api/calls/x/cancel": "POST", "/api/snippets": "POST", "/api/origins": "POST"}
	for path, method := range paths {
		for name, tt := range map[string]struct {
			header map[string]string
			status int
			kind   string
		}{
			"no token":                {without("X-Jsbridge-Token"), 403, dashboard.WrongToken},
			"a wrong token":           {with("X-Jsbridge-Token", strings.ToLower(b.token)), 403, dashboard.WrongToken},
			"a part of the token":     {with("X-Jsbridge-Token", b.token[:25]), 403, dashboard.WrongToken},
			"no content type":         {without("Content-Type"), 415, ""},
			"a form":                  {with("Content-Type", "text/plain"), 415, ""},
			"a foreign origin":        {with("Origin", "https://evil.example"), 403, ""},
			"another port":            {with("Origin", "http://localhost:1"), 403, ""},
			"no origin of its own":    {with("Origin", "null"), 403, ""},
			"a cross-site request":    {with("Sec-Fetch-Site", "cross-site"), 403, ""},
			"a same-site request":     {with("Sec-Fetch-Site", "same-site"), 403, ""},
			"a token of another kind": {with("X-Jsbridge-Token", ""), 403, dashboard.WrongToken},
		} {
			status, header, body := b.ask(method, path, "{}", tt.header)
			var p struct{ Type string }
			_ = json.Unmarshal([]byte(body), &p)
			if status != tt.status || p.Type != tt.kind {
				t.Errorf("%s with %s: %d %s", path, name, status, body)
			}
			isProblem(t, path, status, header, body)
		}
		if method == "POST" {
			large := `{"x":"` + strings.Repeat("x", 1<<20) + `"}`
			for body, want := range map[string]int{"": 400, "null": 400, "[]": 400, "{": 400, "1": 400, large: 413} {
				if path == "/api/connections/x/identify" || strings.HasPrefix(path, "/api/connections") {
					want = 404 // there is no such page, which comes first
				}
				status, header, got := b.ask(method, path, body, b.headers())
				if status != want {
					t.Errorf("%s with %.20q: %d %s", path, body, status, got)
				}
				isProblem(t, path, status, header, got)
			}
		}
		status, header, body := b.ask("PATCH", path, "{}", b.headers())
		if status != 405 || !strings.Contains(header.Get("Allow"), method) {
			t.Errorf("PATCH %s: %d %s", path, status, body)
		}
		isProblem(t, path, status, header, body)
	}
	for _, path := range []string{"/api/", "/api/nothing", "/api/connections", "/api/connections/x/tools/y/z", "/api/calls"} {
		status, header, body := b.ask("GET", path, "", nil)
		if status != 404 {
			t.Errorf("%s: %d", path, status)
		}
		isProblem(t, path, status, header, body)
	}
	for _, path := range []string{"/api/events", "/api/calls.jsonl", "/api/origins", "/api/connections/x"} {
		for _, header := range []map[string]string{{"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}} {
			status, h, body := b.ask("GET", path, "", header)
			if status != 403 || h.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s with %v: %d %s", path, header, status, body)
			}
			isProblem(t, path, status, h, body)
		}
	}
	if status, h, _ := b.ask("HEAD", "/api/events", "", nil); status != 200 || h.Get("Content-Type") != "text/event-stream" {
		t.Errorf("HEAD of the stream: %d %v", status, h)
	}
}

// With --token the page loads without it, and nothing else of the API does.
func TestAPIWithToken(t *testing.T) {
	b := newBoard(t, Options{Token: "s3cret"})
	for _, header := range []map[string]string{b.headers(), {"Authorization": "Bearer wrong"}} {
		for path, method := range map[string]string{"/api/events": "GET", "/api/snippets": "POST", "/api/calls.jsonl": "GET", "/api/nothing": "GET"} {
			status, h, body := b.ask(method, path, "{}", header)
			if status != 401 || h.Get("WWW-Authenticate") == "" {
				t.Errorf("%s: %d %s", path, status, body)
			}
			isProblem(t, path, status, h, body)
		}
	}
	h := b.headers()
	h["Authorization"] = "Bearer s3cret"
	if status, _, body := b.ask("POST", "/api/snippets", "{}", h); status != 200 {
		t.Errorf("with the token: %d %s", status, body)
	}
}

func TestPageHeaders(t *testing.T) {
	b := newBoard(t, Options{})
	_, h, body := b.ask("GET", "/", "", nil)
	for key, want := range map[string]string{
		"Content-Security-Policy": "frame-ancestors 'none'", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cross-Origin-Opener-Policy": "same-origin",
		"Cross-Origin-Resource-Policy": "same-origin", "Permissions-Policy": "camera=()", "Cache-Control": "no-store", "X-Frame-Options": "DENY",
	} {
		if !strings.Contains(h.Get(key), want) {
			t.Errorf("%s: %q", key, h.Get(key))
		}
	}
	for _, want := range []string{"require-trusted-types-for 'script'", "trusted-types 'none'", "default-src 'none'", "script-src 'self';"} {
		if !strings.Contains(h.Get("Content-Security-Policy"), want) {
			t.Errorf("the policy lacks %s: %s", want, h.Get("Content-Security-Policy"))
		}
	}
	if h.Get("ETag") != "" || strings.Count(body, b.token) != 1 {
		t.Errorf("the page may be kept, or has not its token once: %v", h)
	}
	if other := newBoard(t, Options{}); other.token == b.token {
		t.Error("two starts have one token")
	}
}

// What a page says comes out as JSON text, and has no part in the stream's own
// lines.
func TestHostileStrings(t *testing.T) {
	b := newBoard(t, Options{})
	v := b.watch("")
	hostile := "</script><img src=x onerror=alert(1)>\u202e\u2028\nid: 9\nevent: snapshot\ndata: {}\n\n\x00"
	enc, _ := json.Marshal(hostile)
	tools := fmt.Sprintf(`[{"name":%s,"description":%s,"title":%s,"example":{"x":%s}}],"summary":%s`, strings.ReplaceAll(string(enc), `\u0000`, ""), enc, enc, enc, enc)
	var p *tab
	p = b.open("one", near, tools, func(f map[string]any) any {
		p.say(fmt.Sprintf(`{"type":"call_result","id":%q,"error":{"message":%s,"name":%s}}`, f["id"], enc, enc))
		return nil
	})
	c := v.connection("one")
	if strings.ContainsAny(c.Summary, "\u202e\u2028\x00") {
		t.Errorf("the summary: %q", c.Summary)
	}
	at := "/api/connections/" + c.ID
	d := get[dashboard.ConnectionDetails](b, at)
	if len(d.Tools) != 1 || strings.ContainsAny(d.Tools[0].Title, "\u202e\n") || !regexp.MustCompile(`^[a-z][A-Za-z0-9_-]*$`).MatchString(d.Tools[0].Name) {
		t.Fatalf("tools: %+v, %+v", d.Tools, d.ProblemList)
	}
	if raw := b.do("GET", at, nil, 200); strings.Contains(raw, "<img") || strings.Count(raw, "\n") != 1 {
		t.Errorf("details: %s", raw)
	}
	b.do("POST", at+"/call", map[string]any{"tool": d.Tools[0].PageName}, 200)
	s := v.sees("the failed call", func(s *dashboard.State) bool { return len(s.Calls) == 1 && s.Calls[0].State == "failed" })
	if e := s.Calls[0].Error; strings.ContainsAny(e, "\u202e\u2028\n\x00") || len(e) > 300 {
		t.Errorf("the error: %q", e)
	}
	if _, kinds, _ := v.told(); slices.Contains(kinds[1:], "snapshot") {
		t.Errorf("a page made an event: %v", kinds)
	}
}
