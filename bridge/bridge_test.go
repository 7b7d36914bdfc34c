package bridge

import (
	"context"
	"errors"
	"net"
	"testing"
)

func TestLoopbackNames(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "LOCALHOST": true, "localhost:8766": true, "localhost.": true, "a.localhost:1": true, "127.0.0.1": true, "127.9.9.9:1": true, "[::1]": true, "[::1]:8766": true,
		"::1": true, "": false, "evil.example": false, "localhost.evil.example": false, "127.0.0.1.evil.example": false, "10.0.0.1": false, "[fd00::1]": false, "0.0.0.0": false, "[::]": false,
		"2130706433": false, "0x7f.1": false, "notlocalhost": false, "[::1%25lo]": false, "[::ffff:127.0.0.1]": true, "[::ffff:10.0.0.1]": false,
	} {
		if got := isLoopbackName(hostName(host)); got != want {
			t.Errorf("%q: %v, want %v", host, got, want)
		}
	}
}

func TestLoopbackOrigins(t *testing.T) {
	for origin, want := range map[string]bool{
		"http://localhost:6274": true, "https://localhost": true, "http://127.0.0.1:1": true, "http://[::1]:1": true, "http://app.localhost": true,
		"null": false, "": false, "file://": false, "http://evil.example": false, "http://localhost.evil.example": false, "http://localhost@evil.example": false, "http://user@localhost": false,
		"ftp://localhost": false, "chrome-extension://localhost": false, "http://localhost/x": false, "localhost": false, "http://": false,
	} {
		if got := isLoopbackOrigin(origin); got != want {
			t.Errorf("%q: %v, want %v", origin, got, want)
		}
	}
}

// A machine without one of the address families works with the other.
func TestMissingAddressFamily(t *testing.T) {
	// 192.0.2.0/24 is for documentation (RFC 5737) and on no machine as an
	// address that can be listened on; ours may have one, then any other goes.
	for _, missing := range []string{"192.0.2.213", "2001:db8::213"} {
		ls, err := listen(context.Background(), []string{"127.0.0.1", missing}, 0)
		if err != nil {
			t.Fatalf("with %s missing: %v", missing, err)
		}
		if len(ls) != 1 {
			t.Errorf("with %s missing: %d listeners", missing, len(ls))
		}
		for _, l := range ls {
			l.Close()
		}
		if _, err := listen(context.Background(), []string{missing, missing}, 0); err == nil {
			t.Error("listened on nothing")
		}
	}
}

func TestTakenPortIsNamed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	_, err = listen(context.Background(), []string{"127.0.0.1"}, port)
	var pe *PortError
	if !errors.As(err, &pe) || pe.Port != port || pe.Ours {
		t.Errorf("taken port: %v", err)
	}
}
