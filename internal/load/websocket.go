package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// A websocket is a page's side of a socket, without what a library adds: ten thousand
// of them share two processors with the server that is measured, and every goroutine
// and buffer of theirs would be paid for in its figures.
type websocket struct {
	conn net.Conn
	in   *bufio.Reader

	mu  sync.Mutex
	out []byte // the frame being written, reused
}

const (
	opText  = 1
	opClose = 8
	opPing  = 9
	opPong  = 10

	final  = 0x80
	masked = 0x80

	// What a scripted page is told fits into this.
	maxMessage = 1 << 20
)

// A closedError is the close frame that the server sent.
type closedError struct {
	code   int
	reason string
}

func (e *closedError) Error() string {
	return fmt.Sprintf("the server closed the socket: %d %s", e.code, e.reason)
}

// dialSocket connects from a local address, so that the ports of one do not run out.
func dialSocket(ctx context.Context, host, query, from string) (*websocket, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := d.DialContext(ctx, "tcp4", host)
	if err != nil {
		return nil, err
	}
	w := &websocket{conn: conn, in: bufio.NewReaderSize(conn, 1<<10)}
	_ = conn.SetDeadline(time.Now().Add(patience))
	if err := w.shakeHands(host, query); err != nil {
		_ = conn.Close()
		return nil, err
	}
	_ = conn.SetDeadline(time.Time{})
	return w, nil
}

func (w *websocket) shakeHands(host, query string) error {
	// The key is the one of RFC 6455: only proxies and caches need it to be random.
	if _, err := io.WriteString(w.conn, "GET /ws?"+query+" HTTP/1.1\r\nHost: "+host+"\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"); err != nil {
		return err
	}
	res, err := http.ReadResponse(w.in, nil)
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusSwitchingProtocols {
		why, _ := io.ReadAll(io.LimitReader(res.Body, 1<<10))
		return fmt.Errorf("/ws answered %s: %s", res.Status, strings.TrimSpace(string(why)))
	}
	return nil
}

// write sends one frame. The mask is zero, which leaves the text as it is: masks
// protect proxies, of which there is none.
func (w *websocket) write(op byte, text []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	b := append(w.out[:0], final|op)
	switch n := len(text); {
	case n < 126:
		b = append(b, masked|byte(n))
	case n <= 0xffff:
		b = binary.BigEndian.AppendUint16(append(b, masked|126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, masked|127), uint64(n))
	}
	b = append(b, 0, 0, 0, 0)
	b = append(b, text...)
	w.out = b
	_, err := w.conn.Write(b)
	return err
}

// read waits for the next text message and answers pings meanwhile. A close frame is
// answered, and the error is a [*closedError].
func (w *websocket) read() ([]byte, error) {
	for {
		op, payload, err := w.frame()
		if err != nil {
			return nil, err
		}
		switch op {
		case final | opText:
			return payload, nil
		case final | opPing:
			if err := w.write(opPong, payload); err != nil {
				return nil, err
			}
		case final | opPong:
		case final | opClose:
			_ = w.write(opClose, payload)
			if len(payload) < 2 {
				return nil, &closedError{code: 1005}
			}
			return nil, &closedError{int(binary.BigEndian.Uint16(payload)), string(payload[2:])}
		default:
			return nil, fmt.Errorf("a frame that no server sends here: first byte %#x", op)
		}
	}
}

func (w *websocket) frame() (op byte, payload []byte, err error) {
	var head [8]byte
	if _, err := io.ReadFull(w.in, head[:2]); err != nil {
		return 0, nil, err
	}
	op = head[0]
	n := uint64(head[1])
	switch n {
	case 126:
		_, err = io.ReadFull(w.in, head[:2])
		n = uint64(binary.BigEndian.Uint16(head[:2]))
	case 127:
		_, err = io.ReadFull(w.in, head[:8])
		n = binary.BigEndian.Uint64(head[:8])
	}
	if err != nil {
		return 0, nil, err
	}
	if n > maxMessage { // also one that is masked, which a server must not do
		return 0, nil, errors.New("a frame is larger than the server has reason to send")
	}
	payload = make([]byte, n)
	_, err = io.ReadFull(w.in, payload)
	return op, payload, err
}
