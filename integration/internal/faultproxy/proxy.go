// Package faultproxy is the fault proxy of package locktest for ZooKeeper's protocol, on leased ports. A proxy made by [StartZooKeeper]
// divides both streams into frames. It counts them, shows them to a [Filter], and applies one-shot rules such as [Proxy.LoseReply]. A
// connection whose client does not begin with a frame (a four-letter word, TLS) is forwarded as bytes.
package faultproxy

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/integration/internal/child"
	bytesproxy "github.com/holdfast-go/holdfast/locktest/faultproxy"
)

// The names of the proxy of bytes that users of this one need.
type (
	Direction = bytesproxy.Direction
	Verdict   = bytesproxy.Verdict
)

// The same for constants.
const (
	ToServer = bytesproxy.ToServer
	ToClient = bytesproxy.ToClient
	Both     = bytesproxy.Both
	Pass     = bytesproxy.Pass
	Cut      = bytesproxy.Cut
)

// Proxy is a fault proxy. One of bytes sees no frames.
type Proxy struct {
	*bytesproxy.Proxy
	port     func()                 // gives the port back, which is reserved while nothing listens, too
	upstream atomic.Pointer[string] // nil: the first
	counts   counts
	judge    judge

	mu    sync.Mutex
	conns map[int]*conn
}

// conn is what the proxy knows of a connection.
type conn struct {
	raw     atomic.Bool // the client does not speak in frames
	pending pending
}

// Start is a proxy of bytes. upstream need not be up yet.
func Start(upstream string) (*Proxy, error) { return new(Proxy).start(upstream, bytesproxy.Options{}) }

// StartGreeting is Start for clients that introduce themselves: see Greet of the options.
func StartGreeting(upstream string, greet func(io.Reader) ([]byte, error)) (*Proxy, error) {
	return new(Proxy).start(upstream, bytesproxy.Options{Greet: greet})
}

// StartZooKeeper is Start for a server of ZooKeeper.
func StartZooKeeper(upstream string) (*Proxy, error) {
	p := newProxy()
	return p.start(upstream, p.options())
}

// InMemory is a proxy of frames without a port: clients connect by its Dial, and dial connects it to the upstream, by [net.Pipe] or the
// like.
func InMemory(dial func(ctx context.Context, network, address string) (net.Conn, error), upstream string) *Proxy {
	p := newProxy()
	o := p.options()
	o.Dial = dial
	p.Proxy = bytesproxy.InMemory(upstream, o)
	p.Proxy.SetFilter(p.see)
	return p
}

func newProxy() *Proxy { return &Proxy{conns: make(map[int]*conn)} }

// lateReply is how late a late reply comes: later than the margin of clients with the least session timeout.
const lateReply = 750 * time.Millisecond

func (p *Proxy) options() bytesproxy.Options {
	return bytesproxy.Options{
		Split: func(id int) (toServer, toClient bufio.SplitFunc) {
			c := &conn{}
			p.mu.Lock()
			defer p.mu.Unlock()
			p.conns[id] = c
			return c.split, c.split
		},
		Asks: func(m bytesproxy.Message) bool {
			f, ok := p.parse(m)
			return ok && f.Kind == KindRequest
		},
		Answers: func(request, reply bytesproxy.Message) bool {
			asked, _ := p.parse(request)
			f, ok := p.parse(reply)
			return ok && f.Kind == KindReply && f.Xid == asked.Xid
		},
		LateReply: lateReply,
		Ended: func(id int) {
			p.judge.forget(id)
			p.mu.Lock()
			defer p.mu.Unlock()
			delete(p.conns, id)
		},
	}
}

func (p *Proxy) start(upstream string, o bytesproxy.Options) (*Proxy, error) {
	port, err := child.LeasePort()
	if err != nil {
		return nil, fmt.Errorf("faultproxy: %w", err)
	}
	o.Listen = func() (net.Listener, error) { return child.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port.Port)) }
	o.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		if other := p.upstream.Load(); other != nil {
			address = *other
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	if p.Proxy, err = bytesproxy.Start(upstream, o); err != nil {
		port.Release()
		return nil, err
	}
	p.port = sync.OnceFunc(port.Release)
	if p.conns != nil {
		p.Proxy.SetFilter(p.see)
	}
	return p, nil
}

// SetUpstream changes where connections accepted from now on are forwarded to.
func (p *Proxy) SetUpstream(addr string) { p.upstream.Store(&addr) }

// Close is that of the proxy of bytes, and gives the port back.
func (p *Proxy) Close() error {
	err := p.Proxy.Close()
	if p.port != nil {
		p.port()
	}
	return err
}

// maxFrame is above every jute.maxbuffer in use, and below the length that the first bytes of a four-letter word or a TLS record make.
const maxFrame = 128 << 20

// split is a [bufio.SplitFunc] for frames.
func (c *conn) split(data []byte, atEOF bool) (int, []byte, error) {
	whole := len(data)
	if !c.raw.Load() && len(data) >= 4 {
		size := int(int32(binary.BigEndian.Uint32(data)))
		if size < 0 || size > maxFrame {
			c.raw.Store(true) // before the bytes go on, hence before their answer comes
		} else {
			whole = 4 + size
		}
	}
	switch {
	case len(data) == 0, !c.raw.Load() && (len(data) < 4 || len(data) < whole) && !atEOF:
		return 0, nil, nil
	case len(data) < whole:
		whole = len(data)
	}
	return whole, data[:whole], nil
}

// parse returns the frame of a message; false if it is none.
func (p *Proxy) parse(m bytesproxy.Message) (f Frame, ok bool) {
	p.mu.Lock()
	c := p.conns[m.Conn]
	p.mu.Unlock()
	if c == nil || c.raw.Load() || len(m.Data) < 4 || len(m.Data)-4 != int(int32(binary.BigEndian.Uint32(m.Data))) {
		return Frame{}, false
	}
	f, ok = Frame{Dir: m.Dir, Kind: KindConnect, Op: OpConnect, Payload: m.Data[4:]}, true
	if !m.First {
		f, ok = parseFrame(m.Dir, m.Data[4:])
	}
	f.Conn, f.Gone = m.Conn, m.Gone
	return f, ok
}

// see counts one frame, and lets it be judged.
func (p *Proxy) see(m bytesproxy.Message) Verdict {
	f, ok := p.parse(m)
	if !ok {
		return Pass
	}
	p.mu.Lock()
	c := p.conns[m.Conn]
	p.mu.Unlock()
	if f.Kind == KindReply {
		c.pending.answer(&f)
	}
	p.counts.add(f)
	r := p.judge.rule(f)
	if r.until != nil {
		select {
		case <-r.until:
		case <-f.Gone:
			return Pass
		}
	}
	if r.verdict == Pass && f.Kind == KindRequest {
		c.pending.add(f)
	}
	return r.verdict
}
