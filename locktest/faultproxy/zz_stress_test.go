package faultproxy

import (
	"bufio"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locktest"
)

// All faults at once, and Close in the end: no goroutine is left, and Close returns.
func TestFinding_Stress(t *testing.T) {
	addr := serve(t, func(c net.Conn) { _, _ = io.Copy(c, c) })
	before := runtime.NumGoroutine()
	p, err := Start(addr, Options{
		Split:       func(int) (_, _ bufio.SplitFunc) { return bufio.ScanBytes, bufio.ScanBytes },
		LateRequest: 3 * time.Millisecond, LateReply: 2 * time.Millisecond,
		Ended: func(int) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				c, err := net.Dial("tcp", p.Addr())
				if err != nil {
					time.Sleep(time.Millisecond)
					continue
				}
				for range 20 {
					_ = c.SetDeadline(time.Now().Add(20 * time.Millisecond))
					if _, err := c.Write([]byte("abc")); err != nil {
						break
					}
					if _, err := io.ReadFull(c, make([]byte, 3)); err != nil {
						break
					}
				}
				if rand.N(2) == 0 {
					_ = c.(*net.TCPConn).CloseWrite()
				}
				_ = c.Close()
			}
		})
	}
	end := time.Now().Add(4 * time.Second)
	for time.Now().Before(end) {
		switch rand.N(12) {
		case 0:
			p.BlackHole(Direction(1 + rand.N(3)))
		case 1:
			p.Stall(Direction(1 + rand.N(3)))
		case 2:
			p.Turn(Direction(1 + rand.N(2)))
		case 3:
			p.HalfOpen()
		case 4:
			p.Drop()
		case 5:
			p.SetLatency(time.Duration(rand.N(3)) * time.Millisecond)
		case 6:
			p.SetFilter(func(m Message) Verdict { return Verdict(rand.N(3)) })
		case 7:
			p.SetFilter(nil)
		case 8, 9:
			p.Lose(func() locktest.Fate { return locktest.Fate(rand.N(5)) })
		default:
			_ = p.Heal()
		}
		time.Sleep(time.Duration(rand.N(5)) * time.Millisecond)
	}
	done := make(chan struct{})
	go func() { _ = p.Close(); close(done) }()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		buf := make([]byte, 1<<20)
		t.Fatalf("Close hangs:\n%s", buf[:runtime.Stack(buf, true)])
	}
	close(stop)
	wg.Wait()
	time.Sleep(300 * time.Millisecond)
	if n := runtime.NumGoroutine(); n > before+3 {
		buf := make([]byte, 1<<20)
		t.Errorf("%d goroutines, %d before:\n%s", n, before, buf[:runtime.Stack(buf, true)])
	}
}
