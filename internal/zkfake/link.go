package zkfake

import (
	"context"
	"errors"
	"net"
	"slices"
	"time"
)

// A Link is the network between one client and the ensemble.
type Link struct {
	ensemble *Ensemble
	cut      bool          // with the ensemble's mu
	healed   chan struct{} // closed when the link is not cut any more
}

// Link returns the network of a further client.
func (e *Ensemble) Link() *Link { return &Link{ensemble: e} }

// Cut holds back all that goes through the link, in both directions. Nothing is refused, and no connection ends.
func (l *Link) Cut() {
	l.ensemble.locked(func() {
		if !l.cut {
			l.cut, l.healed = true, make(chan struct{})
			l.hold()
		}
	})
}

// Heal delivers what Cut has held back.
func (l *Link) Heal() {
	l.ensemble.locked(func() {
		if l.cut {
			l.cut = false
			close(l.healed)
			l.hold()
		}
	})
}

// IsCut reports whether the link is cut.
func (l *Link) IsCut() bool {
	l.ensemble.mu.Lock()
	defer l.ensemble.mu.Unlock()
	return l.cut
}

// Break ends all connections. What is on its way is lost.
func (l *Link) Break() {
	l.ensemble.locked(func() {
		for c := range l.ensemble.conns {
			if c.link == l {
				c.gone()
			}
		}
	})
}

func (l *Link) hold() {
	for c := range l.ensemble.conns {
		if c.link == l {
			c.in.hold(l.cut)
			c.out.hold(l.cut)
		}
	}
}

var errRefused = errors.New("connection refused")

// Dial connects to a member by its address, as [net.Dialer.DialContext] does.
func (l *Link) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	e := l.ensemble
	failed := func(err error) (net.Conn, error) { return nil, &net.OpError{Op: "dial", Net: network, Err: err} }
	i := slices.Index(e.Addrs(), address)
	if i < 0 {
		return failed(errRefused)
	}
	select {
	case <-time.After(e.config.Latency()):
	case <-ctx.Done():
		return failed(ctx.Err())
	}
	for {
		var c net.Conn
		var err error
		var healed <-chan struct{}
		e.locked(func() {
			switch {
			case e.over || !e.members[i].serves():
				err = errRefused
			case l.cut:
				healed = l.healed
			default:
				c = l.connect(e.members[i])
			}
		})
		switch {
		case err != nil:
			return failed(err)
		case c != nil:
			return c, nil
		}
		select {
		case <-healed:
		case <-ctx.Done():
			return failed(ctx.Err())
		}
	}
}

// connect makes a connection to a member, and returns the client's end.
func (l *Link) connect(m *Member) net.Conn {
	client, server := net.Pipe()
	e := l.ensemble
	c := &conn{member: m, link: l, socket: server, in: e.newQueue(e.config.Latency), out: e.newQueue(e.config.Latency)}
	e.conns[c] = struct{}{}
	e.running.Go(c.read)
	return client
}
