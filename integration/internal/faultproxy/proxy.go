package faultproxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/integration/internal/child"
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

// Proxy forwards connections from its own address to an upstream address, and injects faults. It is safe for concurrent use; only Close can
// block.
type Proxy struct {
	addr string
	dial func(ctx context.Context, upstream string) (socket, error)
	// sleepUntil returns false if ctx ends first.
	sleepUntil func(ctx context.Context, t time.Time) bool
	protocol   protocol
	latency    atomic.Int64
	gate       atomic.Pointer[gate]
	judge      judge
	counts     counts

	ctx    context.Context
	cancel context.CancelFunc
	port   *child.PortLease // while nothing listens, too; nil in memory
	wg     sync.WaitGroup

	mu       sync.Mutex
	upstream string
	greet    func(io.Reader) ([]byte, error)
	listener net.Listener // nil while new connections are refused
	refuse   bool
	halfOpen bool
	closed   bool
	conns    map[*conn]struct{}
	lastConn int
}

// Start listens on a free port of 127.0.0.1 and forwards raw bytes to upstream, which need not be up yet.
func Start(upstream string) (*Proxy, error) { return newProxy(upstream, raw) }

// StartZooKeeper is Start for a ZooKeeper server: the proxy parses frames. A connection whose client does not begin with a ZooKeeper frame
// (a four-letter word, TLS) is forwarded as raw bytes.
func StartZooKeeper(upstream string) (*Proxy, error) { return newProxy(upstream, zooKeeper) }

// StartMongoDB is Start for a MongoDB server: the proxy parses messages. The frame of a command has its name as the path; hello and the
// like are of KindPing.
func StartMongoDB(upstream string) (*Proxy, error) { return newProxy(upstream, mongoDB) }

// A protocol says which frames a proxy parses.
type protocol int

const (
	raw protocol = iota
	zooKeeper
	mongoDB
)

func newProxy(upstream string, protocol protocol) (*Proxy, error) {
	port, err := child.LeasePort()
	if err != nil {
		return nil, fmt.Errorf("faultproxy: %w", err)
	}
	p := &Proxy{
		addr:       "127.0.0.1:" + strconv.Itoa(port.Port),
		dial:       dialTCP,
		sleepUntil: sleepUntil,
		protocol:   protocol,
		port:       port,
		upstream:   upstream,
		conns:      make(map[*conn]struct{}),
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.gate.Store(newGate())
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.listenLocked(); err != nil {
		p.cancel()
		port.Release()
		return nil, err
	}
	return p, nil
}

// Addr is the address to give to clients, as "ip:port". It stays the same for the life of the proxy.
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
		if p.port != nil {
			p.port.Release()
		}
	}
	p.mu.Unlock()
	p.wg.Wait()
	return err
}

// listenLocked opens the listener, unless it is open.
func (p *Proxy) listenLocked() error {
	if p.listener != nil || p.port == nil {
		return nil
	}
	l, err := child.Listen("tcp", p.addr)
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
		p.admit(tcp{client.(*net.TCPConn)})
	}
}

// admit registers a new connection and starts its goroutines, under the current faults; false if it is refused.
func (p *Proxy) admit(client socket) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lastConn++
	c := newConn(p, p.lastConn, client)
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
		p.judge.forget(c.id)
		p.mu.Lock()
		delete(p.conns, c)
		p.mu.Unlock()
	})
	return true
}
