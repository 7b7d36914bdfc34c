package bridge

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"jsbridge/web"
)

// watched is what only programs may read.
var watched = []string{"/metrics", "/debug/pprof/", "/debug/pprof/goroutine?debug=1", "/debug/pprof/heap?gc=1", "/debug/pprof/cmdline"}

func TestPagesReadNeitherMetricsNorProfiles(t *testing.T) {
	b := newBoard(t, Options{Metrics: true, Debug: true})
	for _, path := range watched {
		for what, row := range map[string]struct {
			header map[string]string
			want   int
		}{
			"a program":                   {nil, 200},
			"a human who typed it":        {map[string]string{"Sec-Fetch-Site": "none"}, 200},
			"a foreign page":              {map[string]string{"Origin": "https://evil.example"}, 403},
			"a page of loopback":          {map[string]string{"Origin": "http://localhost:3000"}, 403},
			"a sandboxed page":            {map[string]string{"Origin": "null"}, 403},
			"the dashboard":               {map[string]string{"Origin": b.base, "Sec-Fetch-Site": "same-origin"}, 403},
			"an image of a page":          {map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
			"one of the same site":        {map[string]string{"Sec-Fetch-Site": "same-site"}, 403},
			"one of the same origin":      {map[string]string{"Sec-Fetch-Site": "same-origin"}, 403},
			"a name that was rebound":     {map[string]string{"Host": "evil.example"}, 403},
			"a value that is none of all": {map[string]string{"Sec-Fetch-Site": "NONE"}, 403},
		} {
			status, header, body := b.ask("GET", path, "", row.header)
			if status != row.want {
				t.Errorf("%s for %s: %d, want %d: %.100s", path, what, status, row.want, body)
			}
			if cors := header.Get("Access-Control-Allow-Origin"); cors != "" {
				t.Errorf("%s for %s: readable by %s", path, what, cors)
			}
		}
		if status, _, _ := b.ask("POST", path, "", nil); status != 404 {
			t.Errorf("POST %s: %d", path, status)
		}
	}
}

var plant = sync.OnceFunc(func() {
	http.HandleFunc("GET /debug/pprof/planted", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "a plant") })
})

// What other packages put on http.DefaultServeMux is not served.
func TestDefaultServeMuxIsNotServed(t *testing.T) {
	plant()
	b := newBoard(t, Options{Debug: true})
	if _, _, body := b.ask("GET", "/debug/pprof/planted", "", nil); strings.Contains(body, "a plant") {
		t.Errorf("served %q", body)
	}
}

// deadlined is a connection whose reader has stopped.
type deadlined struct {
	httptest.ResponseRecorder
	deadline time.Time
	unheeded int // writes without one
}

func (d *deadlined) SetWriteDeadline(t time.Time) error {
	d.deadline = t
	return nil
}

func (d *deadlined) Write(b []byte) (int, error) {
	if d.deadline.IsZero() {
		d.unheeded++
	}
	return len(b), nil
}

func (d *deadlined) FlushError() error {
	if d.deadline.IsZero() {
		d.unheeded++
	}
	return nil
}

func TestStalledReaderOfAProfile(t *testing.T) {
	d := &deadlined{ResponseRecorder: *httptest.NewRecorder()}
	uncached(profiles()).ServeHTTP(d, httptest.NewRequest("GET", "/debug/pprof/goroutine?debug=1", nil))
	if d.unheeded != 0 || !d.deadline.IsZero() {
		t.Errorf("%d writes wait for ever; the connection's deadline is %v", d.unheeded, d.deadline)
	}
}

func TestTokenForMetricsAndProfiles(t *testing.T) {
	ip := otherAddress(t)
	s, err := New(t.Context(), Options{Files: web.Files(), Host: "0.0.0.0", Token: "secret", Metrics: true, Debug: true, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	b := &board{t: t, s: s}
	t.Cleanup(b.stop)
	for _, path := range watched {
		profile := strings.HasPrefix(path, "/debug/")
		for _, row := range []struct {
			host, token string
			want        int
		}{
			{"127.0.0.1", "", 401}, {"127.0.0.1", "wrong", 401}, {"127.0.0.1", "secret", 200},
			{ip, "", 401}, {ip, "wrong", 401}, {ip, "secret", 200},
		} {
			b.base = "http://" + net.JoinHostPort(row.host, strconv.Itoa(s.Port()))
			header := map[string]string{"Host": "localhost"}
			if row.token != "" {
				header["Authorization"] = "Bearer " + row.token
			}
			want := row.want
			if profile && row.host == ip {
				want = 403
			}
			if status, _, body := b.ask("GET", path, "", header); status != want {
				t.Errorf("%s from %s with %q: %d, want %d: %.100s", path, row.host, row.token, status, want, body)
			}
		}
	}
}
