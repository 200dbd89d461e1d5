package faultproxy

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Direction names one or both directions of a connection.
type Direction int

// Directions are a bit set, so that Both covers the other two.
const (
	ToServer Direction = 1 << iota
	ToClient
	Both = ToServer | ToClient
)

// lane is the array index of a single direction.
func (d Direction) lane() int { return int(d) - 1 }

// Options say what the proxy knows of a protocol, and how it reaches the network. The zero value is a proxy of bytes.
type Options struct {
	// Split returns how both streams of a new connection divide into messages. A token is a message with its frame. If a function is
	// nil, each read is a message. Default nil: both are.
	Split func(conn int) (toServer, toClient bufio.SplitFunc)

	// Asks reports whether a message to the server is one that Lose is about. Default nil: each is.
	Asks func(Message) bool

	// Answers reports whether a message to the client is the reply to a request. Default nil: the first one after it is.
	Answers func(request, reply Message) bool

	// LateRequest and LateReply are how late messages of these fates are; see locktest.Fate. LateRequest 0 makes it a LostReply.
	LateRequest, LateReply time.Duration

	// Ended is called when a connection has ended. Default nil: no function is.
	Ended func(conn int)

	// Listen opens the listener, also that of Heal after Cut. Default nil: on 127.0.0.1, at a free port, and later at the same port.
	Listen func() (net.Listener, error)

	// Dial connects to the upstream. Default nil: by TCP.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Proxy forwards connections from its own address to an upstream address, and injects faults. It is safe for concurrent use; only Close can
// block.
type Proxy struct {
	opts    Options
	latency atomic.Int64
	gate    atomic.Pointer[gate]
	filter  atomic.Pointer[Filter]
	mail    mail

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu       sync.Mutex
	addr     string
	upstream string
	greet    func(io.Reader) ([]byte, error)
	listener net.Listener // nil while new connections are refused
	refuse   bool
	halfOpen bool
	closed   bool
	conns    map[*conn]struct{}
	lastConn int
}

// Start listens, and forwards to upstream, which need not be up yet.
func Start(upstream string, o Options) (*Proxy, error) {
	p := InMemory(upstream, o)
	p.addr = ""
	if o.Listen == nil {
		p.opts.Listen = func() (net.Listener, error) { return net.Listen("tcp", cmp.Or(p.addr, "127.0.0.1:0")) }
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.listenLocked(); err != nil {
		p.cancel()
		return nil, err
	}
	p.addr = p.listener.Addr().String()
	return p, nil
}

// InMemory returns a proxy that does not listen: clients connect by its Dial.
func InMemory(upstream string, o Options) *Proxy {
	if o.Dial == nil {
		o.Dial = new(net.Dialer).DialContext
	}
	p := &Proxy{opts: o, addr: upstream, upstream: upstream, conns: make(map[*conn]struct{})}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.gate.Store(newGate())
	return p
}

// Dial connects to the proxy by [net.Pipe], as [net.Dialer.DialContext] does by a network.
func (p *Proxy) Dial(_ context.Context, network, _ string) (net.Conn, error) {
	client, ours := net.Pipe()
	if !p.admit(ours) {
		_ = client.Close()
		return nil, &net.OpError{Op: "dial", Net: network, Err: errors.New("connection refused")}
	}
	return client, nil
}

// Addr is the address to give to clients, as "ip:port": of a proxy that is [InMemory], the upstream's. It stays the same for the life of
// the proxy.
func (p *Proxy) Addr() string { return p.addr }

// SetUpstream changes where connections accepted from now on are forwarded to.
func (p *Proxy) SetUpstream(addr string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.upstream = addr
}

// SetGreeting replaces how clients introduce themselves on connections accepted from now on: greet reads the
// introduction and returns its replacement for the upstream, in one piece.
func (p *Proxy) SetGreeting(greet func(io.Reader) ([]byte, error)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.greet = greet
}

// SetLatency delays everything read from now on by d in each direction, without reducing throughput; 0 turns it off. On Linux a delivery is
// some 50 µs late, elsewhere up to a millisecond.
func (p *Proxy) SetLatency(d time.Duration) { p.latency.Store(int64(max(d, 0))) }

// Conns is the number of client connections that the proxy holds open.
func (p *Proxy) Conns() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns)
}

// Close resets all connections, frees the port and waits until every goroutine of the proxy has ended, including a running Filter. A second
// Close waits as well and returns nil.
func (p *Proxy) Close() error {
	p.mu.Lock()
	var err error
	if !p.closed {
		p.closed = true
		p.cancel()
		err = p.refuseLocked()
		p.dropLocked()
	}
	p.mu.Unlock()
	p.wg.Wait()
	return err
}

// listenLocked opens the listener, unless it is open.
func (p *Proxy) listenLocked() error {
	if p.listener != nil || p.opts.Listen == nil {
		return nil
	}
	l, err := p.opts.Listen()
	if err != nil {
		return fmt.Errorf("faultproxy: listen: %w", err)
	}
	p.listener = l
	p.wg.Go(func() { p.accept(l) })
	return nil
}

// refuseLocked closes the listener, unless it is closed. The kernel then answers connection attempts with RST.
func (p *Proxy) refuseLocked() error {
	p.refuse = true
	if p.listener == nil {
		return nil
	}
	err := p.listener.Close()
	p.listener = nil
	return err
}

func (p *Proxy) dropLocked() {
	for c := range p.conns {
		c.reset()
	}
}

func (p *Proxy) accept(l net.Listener) {
	for {
		client, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// Probably out of descriptors; some will be freed.
			select {
			case <-time.After(10 * time.Millisecond):
				continue
			case <-p.ctx.Done():
				return
			}
		}
		p.admit(client)
	}
}

// admit registers a new connection and starts its goroutines, under the current faults; false if it is refused.
func (p *Proxy) admit(client net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lastConn++
	c := newConn(p, p.lastConn, socket{client})
	if p.refuse || p.closed {
		// Accepted by the kernel before the listener was closed.
		c.reset()
		return false
	}
	g := p.gate.Load()
	c.silent = p.halfOpen || g.mode[ToServer.lane()] == blackHole
	c.doomed = c.silent || g.mode[ToClient.lane()] == blackHole
	c.greet = p.greet
	p.conns[c] = struct{}{}
	upstream := p.upstream
	p.wg.Go(func() {
		c.serve(upstream)
		c.reset()
		if p.opts.Ended != nil {
			p.opts.Ended(c.id)
		}
		p.mu.Lock()
		delete(p.conns, c)
		p.mu.Unlock()
	})
	return true
}
