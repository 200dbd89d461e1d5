package faultproxy

import (
	"bufio"
	"context"
	"io"
	"net"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locktest"
)

// Cut's comment: "the port stays reserved (on Linux ...)".
func TestFinding_PortIsNotReserved(t *testing.T) {
	p := start(t, serve(t, func(c net.Conn) { _, _ = io.Copy(c, c) }))
	p.Cut()
	other, err := net.Listen("tcp", p.Addr())
	if err == nil {
		defer other.Close()
		t.Errorf("another listener has the port of the proxy during Cut")
	}
	if err := p.Heal(); err != nil {
		t.Errorf("Heal: %v", err)
	}
}

// A message that is late is the last of its connection, and the server needs time to carry it out.
func TestFinding_LateAfterAPush(t *testing.T) {
	for _, push := range []bool{false, true} {
		name := map[bool]string{false: "silent server", true: "server that pushes"}[push]
		t.Run(name, func(t *testing.T) {
			done := make(chan string, 1)
			p, err := Start(serve(t, func(conn net.Conn) {
				if push { // such as an event of a subscription
					go func() {
						for range 3 {
							time.Sleep(30 * time.Millisecond)
							_, _ = conn.Write([]byte("event"))
						}
					}()
				}
				buf := make([]byte, 1)
				if _, err := io.ReadFull(conn, buf); err != nil {
					done <- "not read: " + err.Error()
					return
				}
				// As an HTTP server does: it ends a request whose client is gone.
				gone := make(chan error, 1)
				go func() { _, err := conn.Read(buf); gone <- err }()
				select {
				case err := <-gone:
					done <- "the client has gone before it was carried out: " + err.Error()
				case <-time.After(300 * time.Millisecond):
					done <- "carried out"
				}
			}), Options{
				Split:       func(int) (_, _ bufio.SplitFunc) { return bufio.ScanBytes, nil },
				LateRequest: 200 * time.Millisecond,
			})
			started(t, p, err)
			p.Lose(func() locktest.Fate { return locktest.LateRequest })
			conn := dial(t, p)
			conn.send("a")
			if got := <-done; got != "carried out" {
				t.Errorf("the late request: %s", got)
			}
		})
	}
}

// What is late is late by Cut, too: does Close or Cut leave something behind?
func TestFinding_LateLeavesAfterFuncs(t *testing.T) {
	p := InMemory("x", Options{Listen: func() (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:0") },
		Dial: func(context.Context, string, string) (net.Conn, error) { a, _ := net.Pipe(); return a, nil }})
	defer p.Close()
	_ = p.Heal()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil {
		t.Errorf("a proxy in memory listens at %v after Heal", p.listener.Addr())
	}
}

// A reply that the server has sent before it closed is lost when the client writes on.
func TestFinding_LostBytes(t *testing.T) {
	p := start(t, serve(t, func(conn net.Conn) {
		buf := make([]byte, 1)
		_, _ = io.ReadFull(conn, buf)
		_, _ = conn.Write([]byte("reply"))
	}))
	conn := dial(t, p)
	p.Stall(ToClient)
	conn.send("a")
	time.Sleep(pause)
	for range 5 {
		conn.send("b")
		time.Sleep(20 * time.Millisecond)
	}
	heal(t, p)
	conn.expect("reply")
}
