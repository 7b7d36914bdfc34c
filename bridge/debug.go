package bridge

import (
	"net/http"
	"net/http/pprof"
	"net/netip"
	"time"
)

// profiles are Go's own, under /debug/pprof/. They are on a mux of their own, as
// http.DefaultServeMux has whatever any package put there.
func profiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}

// writeTimeout bounds each write of an answer whose reader may have stopped.
const writeTimeout = 10 * time.Second

// patientWriter has its reader take each part in time, however long the answer
// takes: a CPU profile has 30 s by default. The server has no WriteTimeout.
type patientWriter struct {
	http.ResponseWriter
	rc *http.ResponseController
}

// Unwrap lets http.ResponseController find the connection.
func (p patientWriter) Unwrap() http.ResponseWriter { return p.ResponseWriter }

func (p patientWriter) Write(b []byte) (int, error) {
	_ = p.rc.SetWriteDeadline(time.Now().Add(writeTimeout))
	return p.ResponseWriter.Write(b)
}

// uncached serves what only programs read: no cache keeps it, and a stalled reader
// holds up nothing for long.
func uncached(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		p := patientWriter{w, http.NewResponseController(w)}
		next.ServeHTTP(p, r)
		if p.rc.Flush() == nil {
			_ = p.rc.SetWriteDeadline(time.Time{}) // the connection may serve further requests
		}
	})
}

// isLoopbackPeer takes net/http's RemoteAddr.
func isLoopbackPeer(remoteAddr string) bool {
	peer, err := netip.ParseAddrPort(remoteAddr)
	return err == nil && peer.Addr().Unmap().IsLoopback()
}
