package e2e

import (
	"fmt"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestPortIsTaken(t *testing.T) {
	s := serve(t)
	port := s.base[strings.LastIndex(s.base, ":")+1:]
	begun := time.Now()
	out, err := exec.Command(binary, "--port", port).CombinedOutput()
	exit, ok := err.(*exec.ExitError)
	if !ok || exit.ExitCode() != 1 || !strings.Contains(string(out), "jsbridge") || !strings.Contains(string(out), "already running") || !strings.Contains(string(out), "--port") {
		t.Errorf("second jsbridge: %v %s", err, out)
	}
	t.Logf("refused after %s", time.Since(begun).Round(time.Millisecond))
	if res, _ := s.ask("GET", "/healthz", "", nil); res.StatusCode != 200 {
		t.Errorf("the first one: %d", res.StatusCode)
	}

	host := "127.0.0.1"
	if hasIPv6() {
		host = "::1" // the other half of localhost
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port = fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
	out, err = exec.Command(binary, "--port", port).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "port "+port) || !strings.Contains(string(out), "pid") {
		t.Errorf("port held by another program on %s: %v %s", host, err, out)
	}
}

func TestStopTellsPagesAndEndsCalls(t *testing.T) {
	s := serve(t, "--drain", "300ms")
	c := s.connect()
	ws := s.socket(tenantOf(c), "&v=1")
	say(t, ws, websocket.MessageText, []byte(`{"type":"register_tools","appLabel":"p","tools":[{"name":"x","description":"d"}]}`))
	c.waitTools("p__x")
	done := make(chan string, 1)
	go func() {
		r, err := c.CallTool(c.ctx(), &mcp.CallToolParams{Name: "p__x"})
		if err != nil || !r.IsError {
			done <- fmt.Sprint(r, err)
			return
		}
		done <- text(t, r)
	}()
	hears(t, ws, `"type":"call"`)
	stopped := make(chan struct{})
	go func() {
		s.stop()
		close(stopped)
	}()
	if code, _ := hears(t, ws, "stopping"); code != 1001 {
		t.Errorf("the page was told %d", code)
	}
	if got := <-done; !strings.Contains(got, "may have run") {
		t.Errorf("the call ended with %s", got)
	}
	<-stopped
	if code := s.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func TestOldSessionAfterRestart(t *testing.T) {
	s := serve(t)
	res, _ := s.ask("POST", "/mcp", initialize, asJSON)
	id := res.Header.Get("Mcp-Session-Id")
	port := s.base[strings.LastIndex(s.base, ":")+1:]
	_ = s.cmd.Process.Kill()
	<-s.done
	again := serve(t, "--port", port)
	res, _ = again.ask("POST", "/mcp", `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, with(asJSON, "Mcp-Session-Id", id))
	if res.StatusCode != 404 {
		t.Errorf("old session after a restart: %d, want 404", res.StatusCode)
	}
}
