package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"
)

// A PortError says that the port is taken, and by whom as far as can be seen.
type PortError struct {
	Port int
	Addr string
	// Holder is what holds it, such as "jsbridge 1.0" or "node (pid 12)"; ""
	// when that can't be seen.
	Holder string
	// Ours: another jsbridge answers there.
	Ours bool
	err  error
}

func (e *PortError) Error() string {
	who := "another program"
	if e.Holder != "" {
		who = e.Holder
	}
	if e.Ours {
		return fmt.Sprintf("port %d is taken: %s is already running there; use that one, or start this one with --port <another>", e.Port, who)
	}
	return fmt.Sprintf("port %d (%s) is taken by %s; stop it, or start jsbridge with --port <another>", e.Port, e.Addr, who)
}

func (e *PortError) Unwrap() error { return e.err }

// loopback are the addresses of the default. A server on just one of them would
// leave the other to whoever takes it: browsers try ::1 first for localhost.
var loopback = []string{"127.0.0.1", "::1"}

// listen opens the port on every address. Port 0 takes a free one, the same for
// all. Addresses of a family that the machine does not have are left out, as
// long as one remains.
func listen(ctx context.Context, hosts []string, port int) ([]net.Listener, error) {
	var err error
	for range 20 { // with port 0 the second address's port may be taken
		var ls []net.Listener
		ls, err = listenOnce(ctx, hosts, port)
		if err == nil {
			return ls, nil
		}
		if port != 0 || !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
	}
	return nil, err
}

func listenOnce(ctx context.Context, hosts []string, port int) (ls []net.Listener, err error) {
	defer func() {
		if err != nil {
			for _, l := range ls {
				l.Close()
			}
			ls = nil
		}
	}()
	var missing error
	for _, host := range hosts {
		var lc net.ListenConfig
		addr := net.JoinHostPort(host, strconv.Itoa(port))
		l, err := lc.Listen(ctx, "tcp", addr)
		switch {
		case err == nil:
			ls = append(ls, l)
			if port == 0 {
				port = l.Addr().(*net.TCPAddr).Port
			}
		case len(hosts) > 1 && (errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EAFNOSUPPORT)):
			missing = err
		case errors.Is(err, syscall.EADDRINUSE):
			e := &PortError{Port: port, Addr: addr, err: err}
			e.Holder, e.Ours = holder(ctx, host, port)
			return ls, e
		default:
			return ls, fmt.Errorf("listening on %s: %w", addr, err)
		}
	}
	if len(ls) == 0 {
		return nil, fmt.Errorf("listening on port %d: %w", port, missing)
	}
	return ls, nil
}

// warnIfWide says who else may come in.
func warnIfWide(log *slog.Logger, ls []net.Listener) {
	for _, l := range ls {
		if a, ok := l.Addr().(*net.TCPAddr); ok && !a.IP.IsLoopback() {
			log.Warn("listening beyond this machine: whoever can reach this address may connect pages, which wait for approval, and with the token call their tools", "addr", a.String())
		}
	}
}

// holder asks who has the port: first the port itself, then the system.
func holder(ctx context.Context, host string, port int) (name string, ours bool) {
	ctx, cancel := context.WithTimeout(ctx, 400*time.Millisecond)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, strconv.Itoa(port))+"/healthz", nil)
	if err == nil {
		// A transport of its own: nothing of it may be left open.
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		if res, err := client.Do(req); err == nil {
			defer res.Body.Close()
			var h health
			if json.NewDecoder(http.MaxBytesReader(nil, res.Body, 1<<12)).Decode(&h) == nil && h.Name == "jsbridge" {
				return "jsbridge " + clean(h.Version), true
			}
		}
	}
	return portHolder(port), false
}
