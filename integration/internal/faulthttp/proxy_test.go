package faulthttp

import (
	"context"
	"errors"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/integration/internal/child"
)

// TestRefuse guards that the proxy refuses new connections at an unchanged address, and that live ones continue.
func TestRefuse(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	p := newProxy(t, s)
	live := through(t, p)
	if r := live.call(t.Context(), t, "PutItem"); r.status != 200 {
		t.Fatalf("before: %+v", r)
	}
	for range 3 {
		p.Refuse()
		p.Refuse()
		if r := through(t, p).call(t.Context(), t, "PutItem"); !errors.Is(r.err, syscall.ECONNREFUSED) {
			t.Errorf("a new client: %+v, want connection refused", r)
		}
		if r := live.call(t.Context(), t, "PutItem"); r.status != 200 {
			t.Errorf("a live connection: %+v", r)
		}
		accept(t, p)
		accept(t, p)
		if r := through(t, p).call(t.Context(), t, "PutItem"); r.status != 200 {
			t.Errorf("a new client after Accept: %+v", r)
		}
	}
}

func accept(t *testing.T, p *Proxy) {
	t.Helper()
	if err := p.Accept(); err != nil {
		t.Fatal(err)
	}
}

// TestRefuseCatchesTheConnectionBeingAccepted guards that the proxy also resets a connection that the kernel accepted before
// the listener closed.
func TestRefuseCatchesTheConnectionBeingAccepted(t *testing.T) {
	t.Parallel()
	p := newProxy(t, newServer(t))
	p.Refuse()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := connect(t, l.Addr().String())
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	p.accepted(accepted, http.StateNew)
	p.accepted(accepted, http.StateClosed)
	isReset(t, c)
}

func connect(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	return c
}

func isReset(t *testing.T, c net.Conn) {
	t.Helper()
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("read: %v, want a reset", err)
	}
}

// TestDrop guards that Drop resets each connection once, idle or with a request in flight.
func TestDrop(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	s := newGatedServer(t, gate)
	p := newProxy(t, s)
	busy, held := through(t, p), through(t, p)
	inFlight := busy.start(t.Context(), t, "PutItem")
	eventually(t, "the request arrives", func() bool { return s.arrived.Load() == 1 })
	p.Transport.Once("GetItem", DelayRequest(never))
	waits := held.start(t.Context(), t, "GetItem")
	eventually(t, "the second is on its way", func() bool { return p.Transport.Count("GetItem") == 1 })
	idle := connect(t, p.addr())
	eventually(t, "all are connected", func() bool { return conns(p) == 3 })
	p.Drop()
	for name, done := range map[string]<-chan result{"request at the server": inFlight, "held request": waits} {
		if r := <-done; !errors.Is(r.err, syscall.ECONNRESET) {
			t.Errorf("%s: %+v, want a reset", name, r)
		}
	}
	isReset(t, idle)
	eventually(t, "they are forgotten", func() bool { return conns(p) == 0 })
	close(gate)
	if r := busy.call(t.Context(), t, "PutItem"); r.status != 200 {
		t.Errorf("the next request: %+v", r)
	}
}

// TestUpstreamIsGone guards that a client sees a dead server as a broken connection, and that the proxy survives.
func TestUpstreamIsGone(t *testing.T) {
	t.Parallel()
	port, err := child.LeasePort() // on which nobody else listens
	if err != nil {
		t.Fatal(err)
	}
	defer port.Release()
	p, err := Listen("http://127.0.0.1:" + strconv.Itoa(port.Port))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for range 2 {
		if r := through(t, p).call(t.Context(), t, "PutItem"); !errors.Is(r.err, syscall.ECONNRESET) {
			t.Errorf("%+v, want a reset", r)
		}
	}
}

// TestProxyCloseLeavesNothingBehind counts goroutines, so it runs alone.
func TestProxyCloseLeavesNothingBehind(t *testing.T) {
	s := newServer(t)
	before := runtime.NumGoroutine()
	p, err := Listen(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	unreleased := make(chan struct{})
	var silent []<-chan result
	faults := []Fault{LoseRequest(Silence), LoseReply(Silence), LateUntil(unreleased, Silence), StallUntil(unreleased), DelayRequest(never)}
	for _, f := range faults {
		p.Transport.Once("GetItem", f)
		silent = append(silent, through(t, p).start(context.Background(), t, "GetItem"))
	}
	eventually(t, "all are on their way", func() bool { return p.Transport.Count("GetItem") == len(faults) })
	late := p.Transport.Once("PutItem", LateUntil(unreleased, Reset))
	idle := through(t, p)
	if r := idle.call(t.Context(), t, "PutItem"); !errors.Is(r.err, syscall.ECONNRESET) {
		t.Errorf("the late request: %+v, want a reset", r)
	}
	if r := idle.call(t.Context(), t, "PutItem"); r.status != 200 {
		t.Errorf("the last request: %+v", r)
	}
	p.Close()
	p.Close()
	for _, done := range silent {
		if r := <-done; !errors.Is(r.err, syscall.ECONNRESET) {
			t.Errorf("a silent call after Close: %+v, want a reset", r)
		}
	}
	select {
	case <-late:
	default:
		t.Error("Close has returned before the late request has ended")
	}
	if n := conns(p); n != 0 {
		t.Errorf("%d connections after Close", n)
	}
	if r := idle.call(t.Context(), t, "PutItem"); !errors.Is(r.err, syscall.ECONNREFUSED) {
		t.Errorf("a call after Close: %+v, want connection refused", r)
	}
	accept(t, p)
	if r := idle.call(t.Context(), t, "PutItem"); !errors.Is(r.err, syscall.ECONNREFUSED) {
		t.Errorf("a call after Close and Accept: %+v, want connection refused", r)
	}
	s.CloseClientConnections()
	eventually(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= before })
}

func conns(p *Proxy) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns)
}
