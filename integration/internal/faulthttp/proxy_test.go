package faulthttp

import (
	"context"
	"errors"
	"net"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
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
	address := p.URL()
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
	if p.URL() != address {
		t.Errorf("the address was %s, and is %s", address, p.URL())
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
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if got := p.admit(l, accepted.(*net.TCPConn)); got != nil {
		t.Fatal("the proxy admitted a connection of a closed listener")
	}
	if err := c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
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
	never := make(chan struct{})
	p.Transport.Once("GetItem", HoldRequest(never))
	waits := held.start(t.Context(), t, "GetItem")
	eventually(t, "the second is on its way", func() bool { return p.Transport.Count("GetItem") == 1 })
	idle, err := net.Dial("tcp", strings.TrimPrefix(p.URL(), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	eventually(t, "all are connected", func() bool { return p.Conns() == 3 })
	p.Drop()
	for name, done := range map[string]<-chan result{"request at the server": inFlight, "held request": waits} {
		if r := <-done; !errors.Is(r.err, syscall.ECONNRESET) {
			t.Errorf("%s: %+v, want a reset", name, r)
		}
	}
	if err := idle.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := idle.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("idle connection: %v, want a reset", err)
	}
	eventually(t, "they are forgotten", func() bool { return p.Conns() == 0 })
	close(gate)
	if r := busy.call(t.Context(), t, "PutItem"); r.status != 200 {
		t.Errorf("the next request: %+v", r)
	}
}

// TestCutWithoutNotice guards a silent cut: a connected client hears nothing more, and a new one is refused.
func TestCutWithoutNotice(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	p := newProxy(t, s)
	live := through(t, p)
	if r := live.call(t.Context(), t, "PutItem"); r.status != 200 {
		t.Fatalf("before: %+v", r)
	}
	p.Refuse()
	p.Transport.Cut()
	ctx, cancel := context.WithCancel(t.Context())
	done := live.start(ctx, t, "PutItem")
	eventually(t, "the request is on its way", func() bool { return p.Transport.Count("PutItem") == 2 })
	if r := through(t, p).call(t.Context(), t, "PutItem"); !errors.Is(r.err, syscall.ECONNREFUSED) {
		t.Errorf("a new client: %+v, want connection refused", r)
	}
	silent(t, done, cancel)
	p.Transport.Heal()
	accept(t, p)
	if r := live.call(t.Context(), t, "PutItem"); r.status != 200 {
		t.Errorf("afterwards: %+v", r)
	}
	arrivals(t, s, 2)
}

// TestHalfOpen guards that a server that accepts and never answers is silent for connected clients too.
func TestHalfOpen(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	p := newProxy(t, s)
	way := through(t, p)
	if r := way.call(t.Context(), t, "PutItem"); r.status != 200 {
		t.Fatalf("before: %+v", r)
	}
	p.Transport.SetRule(All("", LoseRequest(Silence)))
	p.Drop()
	for _, client := range []route{way, through(t, p)} {
		sent := p.Transport.Count("PutItem")
		ctx, cancel := context.WithCancel(t.Context())
		done := client.start(ctx, t, "PutItem")
		eventually(t, "the request is on its way", func() bool { return p.Transport.Count("PutItem") > sent })
		silent(t, done, cancel)
	}
	p.Transport.SetRule(nil)
	if r := way.call(t.Context(), t, "PutItem"); r.status != 200 {
		t.Errorf("afterwards: %+v", r)
	}
	arrivals(t, s, 2)
}

// TestUpstreamIsGone guards that a client sees a dead server as a broken connection, and that the proxy survives.
func TestUpstreamIsGone(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + l.Addr().String()
	l.Close()
	p, err := Listen(url)
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
	never := make(chan struct{})
	var silent []<-chan result
	faults := []Fault{LoseRequest(Silence), LoseReply(Silence), LateUntil(never, Silence), StallUntil(never), HoldRequest(never), HoldReply(never)}
	for _, f := range faults {
		p.Transport.Once("GetItem", f)
		silent = append(silent, through(t, p).start(context.Background(), t, "GetItem"))
	}
	eventually(t, "all are on their way", func() bool { return p.Transport.Count("GetItem") == len(faults) })
	late := p.Transport.Once("PutItem", LateUntil(never, Reset))
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
	if n := p.Conns(); n != 0 {
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

// TestListenRefusesWhatIsNoURL guards that the error names the argument.
func TestListenRefusesWhatIsNoURL(t *testing.T) {
	t.Parallel()
	for _, upstream := range []string{"", "127.0.0.1:8000", "localhost", "http://", "%"} {
		if p, err := Listen(upstream); err == nil {
			p.Close()
			t.Errorf("Listen(%q) succeeds", upstream)
		}
	}
}
