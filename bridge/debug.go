package bridge

import (
	"net/http"
	"net/http/pprof"
	"net/netip"
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

// isLoopbackPeer takes net/http's RemoteAddr.
func isLoopbackPeer(remoteAddr string) bool {
	peer, err := netip.ParseAddrPort(remoteAddr)
	return err == nil && peer.Addr().Unmap().IsLoopback()
}
