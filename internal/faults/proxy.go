package main

import (
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
)

// A proxy stands between a server and its peers, as a network does. Once it is cut
// it forwards nothing more, and neither side is told.
type proxy struct {
	Base string // http://localhost:port

	to       string
	listener net.Listener
	isCut    atomic.Bool
	serving  sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn
	ended bool
}

func newProxy(ctx context.Context, to string) (*proxy, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(l.Addr().String()) // its own
	x := &proxy{Base: "http://localhost:" + port, to: strings.Replace(strings.TrimPrefix(to, "http://"), "localhost", "127.0.0.1", 1), listener: l}
	x.serving.Go(x.accept)
	return x, nil
}

func (x *proxy) accept() {
	for {
		near, err := x.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", x.to)
		if err != nil {
			_ = near.Close()
			continue
		}
		if !x.keep(near, far) {
			return
		}
		x.serving.Go(func() { x.forward(near, far) })
		x.serving.Go(func() { x.forward(far, near) })
	}
}

// keep notes connections, to be closed at the end.
func (x *proxy) keep(conns ...net.Conn) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended {
		for _, c := range conns {
			_ = c.Close()
		}
		return false
	}
	x.conns = append(x.conns, conns...)
	return true
}

// forward passes on what comes. Once cut it reads and drops, so that the sender's
// system takes all for delivered; and the end of one side is kept from the other.
func (x *proxy) forward(from, to net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if x.isCut.Load() {
			if err != nil {
				return
			}
			continue
		}
		if _, failed := to.Write(buffer[:n]); failed != nil {
			err = failed
		}
		if err != nil {
			if err == io.EOF {
				_ = to.(*net.TCPConn).CloseWrite()
				return
			}
			_ = to.Close()
			return
		}
	}
}

// cut forwards nothing from now on.
func (x *proxy) cut() { x.isCut.Store(true) }

// close ends every connection.
func (x *proxy) close() {
	_ = x.listener.Close()
	x.mu.Lock()
	x.ended = true
	for _, c := range x.conns {
		_ = c.Close()
	}
	x.mu.Unlock()
	x.serving.Wait()
}
