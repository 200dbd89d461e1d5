package main

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/integration/internal/nemesis"
	"github.com/holdfast-go/holdfast/internal/network"
	"github.com/holdfast-go/holdfast/internal/zkfake"
)

// simulatedLink is the network of the processes in one slot.
type simulatedLink struct {
	zooKeeperSlot
	link *zkfake.Link

	connections, requests meter
}

// The bounds of a client of ZooKeeper within a lease. A client dials at growing intervals while no server serves it.
const (
	mostConnections = 100
	mostRequests    = 1_500
)

func newSimulatedLink(n int, link *zkfake.Link) *simulatedLink {
	l := &simulatedLink{
		zooKeeperSlot: zooKeeperSlot{n: n}, link: link,
		connections: meter{what: "connections", lease: zooKeeperLease, most: mostConnections},
		requests:    meter{what: "requests", lease: zooKeeperLease, most: mostRequests},
	}
	for i := range simulatedMembers {
		l.wires = append(l.wires, newSimulatedWire(link.Wire(i)))
	}
	return l
}

// simulatedWire is the way from a slot to one member, with the troubles in force on it.
type simulatedWire struct {
	troubles[linkTrouble]
	wire *zkfake.Wire
}

func newSimulatedWire(wire *zkfake.Wire) *simulatedWire {
	w := &simulatedWire{wire: wire}
	w.apply, w.ended = w.set, func(t *linkTrouble) {
		if t.loses {
			wire.Break()
		}
	}
	return w
}

func (w *simulatedWire) set(troubles []*linkTrouble, begun *linkTrouble) error {
	var all linkTrouble
	for _, t := range troubles {
		all.toServer = all.toServer || t.toServer
		all.toClient = all.toClient || t.toClient
		all.silent = all.silent || t.silent
		all.refused = all.refused || t.refused
		all.dismissed = all.dismissed || t.dismissed
		all.eventless = all.eventless || t.eventless
		if all.throttles == nil {
			all.throttles = t.throttles
		}
	}
	w.wire.Hold(all.toServer, all.toClient)
	w.wire.Silence(all.silent)
	w.wire.Refuse(all.refused)
	w.wire.Dismiss(all.dismissed)
	w.wire.LoseEvents(all.eventless)
	w.wire.Throttle(all.throttles)
	if begun != nil && (begun.refused || begun.silent || begun.dismissed) {
		w.wire.Break()
	}
	return nil
}

func (w *simulatedWire) used() bool { return w.wire.Used() }

func (w *simulatedWire) lose(fault nemesis.Kind, op faultproxy.Op, pick uint32) (disarm func()) {
	switch {
	case fault == nemesis.LostReply && pick/16%2 == 0:
		w.wire.EndBehind(int32(op))
	case fault == nemesis.LostReply:
		w.wire.LoseReply(int32(op))
	case fault == nemesis.LostRequest:
		w.wire.LoseRequest(int32(op))
	default:
		w.wire.Late(int32(op), zooKeeperLease/20*time.Duration(1+pick%25))
	}
	return w.wire.Disarm
}

// linkCable is the network of one process, over the link of its slot.
type linkCable struct {
	link    *simulatedLink
	severed atomic.Bool
	resume  func(context.Context) error // nil if it is not held
}

var errSevered = errors.New("the process is gone")

func (c *linkCable) open(ctx context.Context, config clientConfig) (locker, error) {
	return openZooKeeper(network.With(ctx, func(ctx context.Context, network, address string) (net.Conn, error) {
		if c.severed.Load() {
			return nil, errSevered
		}
		c.link.connections.count()
		conn, err := c.link.link.Dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &meteredConn{Conn: conn, requests: &c.link.requests}, nil
	}), config)
}

// meteredConn counts requests: go-zookeeper sends each by one Write.
type meteredConn struct {
	net.Conn
	requests *meter
}

func (c *meteredConn) Write(b []byte) (int, error) {
	c.requests.count()
	return c.Conn.Write(b)
}

func (c *linkCable) hold() {
	c.resume = afflict(c.link.wires, linkTrouble{toServer: true, toClient: true})
}

func (c *linkCable) release() {
	if c.resume != nil {
		_ = c.resume(context.Background())
		c.resume = nil
	}
}

func (c *linkCable) sever() {
	c.severed.Store(true)
	for i := range simulatedMembers {
		c.link.link.Wire(i).Sever()
	}
	c.release()
}
