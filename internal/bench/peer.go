package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// peerVariable names any server that takes pages of the older page protocol, which
// is what jsbridge says to a page without v=1: an executable's path or a command
// line. It is started with PORT and must serve /ws and /mcp there, and merge the
// tools of a page that joins by a bare name into every session, as <prefix>__<tool>.
const peerVariable = "BENCH_PEER"

// peerPatience is for servers that are unpacked or compiled when they start.
const peerPatience = time.Minute

// startPeer starts the peer on a port, with nothing of its user's to read or write
// as far as it can be told.
func (c *crew) startPeer(command string, port int) (*process, error) {
	ctx, end := context.WithCancel(c.ctx)
	path, args := command, []string(nil)
	if _, err := exec.LookPath(command); err != nil {
		path, args = "sh", []string{"-c", "exec " + command}
	}
	cmd := exec.CommandContext(ctx, path, args...)
	none := filepath.Join(c.dir, "none.json")
	cmd.Env = append(os.Environ(), "PORT="+strconv.Itoa(port), "JSBRIDGE_STATE="+none,
		"JS_BRIDGE_MCP_NO_OPEN=1", "PROXY_CONFIG_PATH="+none) // of js-bridge-mcp: no browser, no servers behind it
	p := &process{name: peer, end: end, ended: make(chan struct{}), after: group(cmd)}
	return p, c.watch(ctx, p, cmd)
}

// servingPeer starts the peer on a free port and waits until it can be connected to.
func (f field) servingPeer(c *crew) (p *process, host string, err error) {
	port, err := freePort()
	if err != nil {
		return nil, "", err
	}
	if p, err = c.startPeer(f.peer, port); err != nil {
		return nil, "", err
	}
	host = fmt.Sprintf("localhost:%d", port)
	conn, err := endpoint{host: host}.dialStarting(c.ctx, 20*time.Millisecond)
	if err != nil {
		return nil, "", err
	}
	conn.close()
	return p, host, nil
}

// freePort is one that nobody listens on just now.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// dialStarting connects to a server as soon as it listens, and looks again and
// again until then.
func (e endpoint) dialStarting(ctx context.Context, every time.Duration) (*connection, error) {
	dialing, cancel := context.WithTimeoutCause(ctx, peerPatience, fmt.Errorf("nobody listened on %s within %s", e.host, peerPatience))
	defer cancel()
	for {
		if c, err := e.dial(ctx); err == nil {
			return c, nil
		}
		if err := pause(dialing, every); err != nil {
			return nil, err
		}
	}
}
