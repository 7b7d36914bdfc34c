package bridge

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"jsbridge/bridge/dashboard"
	"jsbridge/bridge/metrics"
	"jsbridge/bridge/state"
	"jsbridge/manifest"
)

// guard decides who may reach which route. Each check names the attack it
// stops.
type guard struct {
	allowHosts map[string]bool // lower case, without a port
	token      string          // "" when listening on loopback only
	pageToken  string          // of this start, known to the dashboard's page
	log        *slog.Logger
	metrics    *metrics.Metrics // may be nil
}

// host refuses a request whose Host is no name of this machine's loopback: DNS
// rebinding, where a page's own domain suddenly resolves to 127.0.0.1 and is
// same-origin with everything here.
func (g *guard) host(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := hostName(r.Host)
		if !isLoopbackName(name) && !g.allowHosts[name] {
			g.refuse(w, r, "host", fmt.Sprintf("this server does not answer to the host %.100q; to allow it start jsbridge with --allow-host %.100s", clean(r.Host), clean(name)))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// mcp guards the MCP endpoint. A browser sends Origin with whatever a foreign
// page posts, also as text/plain without a preflight: cross-site request
// forgery. Clients that are no browser send none. Loopback origins are allowed,
// for the MCP Inspector, and get exact CORS headers.
func (g *guard) mcp(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin := r.Header.Get("Origin")
		switch {
		case origin != "":
			w.Header().Add("Vary", "Origin")
			if !isLoopbackOrigin(origin) {
				g.refuse(w, r, "origin", fmt.Sprintf("pages of %.100q may not use the MCP endpoint; only MCP clients outside the browser and pages on loopback origins may", clean(origin)))
				return
			}
			allowCORS(w.Header(), origin)
		// A cross-site request without an Origin: navigations, images and the
		// like. No MCP client sends this header.
		case r.Header.Get("Sec-Fetch-Site") == "cross-site", r.Header.Get("Sec-Fetch-Site") == "same-site":
			g.refuse(w, r, "browser", "web pages may not use the MCP endpoint")
			return
		}
		if r.Method == http.MethodOptions {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		if !g.authorized(r) {
			g.challenge(w)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// api guards the dashboard's API. Only jsbridge's own pages, and programs that
// are no browser, may use it: a page of any other origin, loopback ones too,
// could approve itself otherwise. The content type keeps out what a page can
// post without a preflight, and the token, which only a page of this origin can
// read, whatever gets past these: an old browser, or a proxy that drops headers.
func (g *guard) api(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin, site := r.Header.Get("Origin"), r.Header.Get("Sec-Fetch-Site")
		switch {
		case origin != "" && origin != "http://"+r.Host && origin != "https://"+r.Host,
			site != "" && site != "same-origin" && site != "none":
			g.refuse(w, r, "browser", "only the dashboard itself may use its API")
			return
		}
		if !g.authorized(r) {
			g.challenge(w)
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			if contentType(r) != "application/json" {
				g.metrics.Refused("content_type")
				g.log.Warn("request refused", "method", clean(r.Method), "path", clean(r.URL.Path), "reason", "it is no application/json")
				dashboard.Problem(w, http.StatusUnsupportedMediaType, "send application/json")
				return
			}
			if !sameSecret(r.Header.Get(pageTokenHeader), g.pageToken) {
				g.metrics.Refused("page_token")
				g.log.Warn("request refused", "method", clean(r.Method), "path", clean(r.URL.Path), "reason", "it has not the token of this start")
				dashboard.TypedProblem(w, dashboard.WrongToken, http.StatusForbidden, "send the token of this start of jsbridge as "+pageTokenHeader+": the dashboard's page has it, in <meta name=\"jsbridge-token\">")
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// scrape guards /metrics, which is for programs: an Origin, or a Sec-Fetch-Site
// other than that of an address a human typed, is a page that wants to learn what
// is going on here. Other machines need the token, as for MCP.
func (g *guard) scrape(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if fromPage(r) {
			g.refuse(w, r, "browser", "web pages may not read the metrics")
			return
		}
		if !g.authorized(r) {
			g.challenge(w)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// debug guards the profiles: they tell what this process does and was started
// with, and taking one costs it time. So another machine gets none, with or
// without the token, and a page neither; another user of this machine needs the
// token where there is one.
func (g *guard) debug(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !isLoopbackPeer(r.RemoteAddr):
			g.refuse(w, r, "remote", "only programs on this machine may take profiles")
		case fromPage(r):
			g.refuse(w, r, "browser", "web pages may not take profiles")
		case !g.authorized(r):
			g.challenge(w)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// fromPage tells whether a page had the browser send this. What a human typed
// says none.
func fromPage(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return r.Header.Get("Origin") != "" || site != "" && site != "none"
}

const pageTokenHeader = "X-Jsbridge-Token"

func contentType(r *http.Request) string {
	t, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")) // "" for none or a wrong one
	return t
}

func (g *guard) challenge(w http.ResponseWriter) {
	g.metrics.Refused("token")
	w.Header().Set("WWW-Authenticate", `Bearer realm="jsbridge"`)
	dashboard.Problem(w, http.StatusUnauthorized, "this server listens beyond loopback, so it wants the token it was started with (--token) as Authorization: Bearer <token>")
}

// authorized checks the token, in constant time so that it can't be guessed
// piece by piece.
func (g *guard) authorized(r *http.Request) bool {
	if g.token == "" {
		return true
	}
	scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.EqualFold(scheme, "Bearer") && sameSecret(given, g.token)
}

func sameSecret(given, secret string) bool {
	a, b := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(secret))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// refuse answers 403, logs the refusal once and counts it for its reason.
func (g *guard) refuse(w http.ResponseWriter, r *http.Request, reason, why string) {
	g.metrics.Refused(reason)
	g.log.Warn("request refused", "method", clean(r.Method), "path", clean(r.URL.Path), "host", clean(r.Host), "origin", clean(r.Header.Get("Origin")), "reason", why)
	dashboard.Problem(w, http.StatusForbidden, why)
}

func allowCORS(h http.Header, origin string) {
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS")
	h.Set("Access-Control-Allow-Headers", "Accept, Authorization, Content-Type, Last-Event-ID, Mcp-Method, Mcp-Name, Mcp-Protocol-Version, Mcp-Session-Id")
	h.Set("Access-Control-Expose-Headers", "Mcp-Session-Id, Mcp-Protocol-Version, WWW-Authenticate")
	h.Set("Access-Control-Max-Age", "600")
}

// hostName takes the port, brackets and trailing dot off a Host header.
func hostName(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.TrimSuffix(strings.ToLower(host), ".")
}

// isLoopbackName knows the names that browsers resolve to loopback themselves
// (let localhost be localhost, RFC 6761 section 6.3), and loopback addresses.
func isLoopbackName(name string) bool {
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	addr, err := netip.ParseAddr(name)
	return err == nil && addr.Zone() == "" && addr.Unmap().IsLoopback()
}

// isLoopbackOrigin takes http and https origins on loopback, on any port, in the
// form that browsers send.
func isLoopbackOrigin(origin string) bool {
	canonical, err := state.ParseOrigin(origin)
	return err == nil && canonical == origin && state.IsLoopback(canonical)
}

func clean(s string) string { return manifest.Clean(s, 256, false) }
