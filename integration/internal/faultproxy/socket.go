package faultproxy

import (
	"context"
	"errors"
	"net"
	"time"
)

// A socket is one side of a connection.
type socket interface {
	net.Conn
	// CloseWrite ends what goes to this side; more may come from it.
	CloseWrite() error
	// reset closes it so that the other end notices at once. Bytes in flight are lost.
	reset()
}

// tcp is a socket of the machine's network.
type tcp struct{ *net.TCPConn }

func (s tcp) reset() {
	_ = s.SetLinger(0)
	_ = s.Close()
}

func dialTCP(ctx context.Context, upstream string) (socket, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", upstream)
	if err != nil {
		return nil, err
	}
	return tcp{conn.(*net.TCPConn)}, nil
}

// memory is a socket of [net.Pipe], which buffers nothing and has no halves.
type memory struct{ net.Conn }

func (s memory) CloseWrite() error { return s.Close() }
func (s memory) reset()            { _ = s.Close() }

var errRefused = errors.New("connection refused")

// InMemory is a proxy without a port, for ZooKeeper's frames: clients connect by its Dial, and dial connects it to the upstream, by
// [net.Pipe] or the like.
func InMemory(dial func(ctx context.Context, network, address string) (net.Conn, error), upstream string) *Proxy {
	p := &Proxy{
		addr:     upstream,
		protocol: zooKeeper,
		dial: func(ctx context.Context, upstream string) (socket, error) {
			conn, err := dial(ctx, "tcp", upstream)
			if err != nil {
				return nil, err
			}
			return memory{conn}, nil
		},
		sleepUntil: func(ctx context.Context, t time.Time) bool {
			select {
			case <-time.After(time.Until(t)):
				return true
			case <-ctx.Done():
				return false
			}
		},
		upstream: upstream,
		conns:    make(map[*conn]struct{}),
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.gate.Store(newGate())
	return p
}

// Dial connects to a proxy that is [InMemory], as [net.Dialer.DialContext] does.
func (p *Proxy) Dial(_ context.Context, network, _ string) (net.Conn, error) {
	client, ours := net.Pipe()
	if !p.admit(memory{ours}) {
		_ = client.Close()
		return nil, &net.OpError{Op: "dial", Net: network, Err: errRefused}
	}
	return client, nil
}
