package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/integration/internal/nemesis"
	"github.com/holdfast-go/holdfast/internal/network"
	"github.com/holdfast-go/holdfast/internal/zkfake"
)

// simulatedLink is the network of the processes in one slot.
type simulatedLink struct {
	n     int
	link  *zkfake.Link
	wires []*simulatedWire

	connections, requests meter
}

// What clients of ZooKeeper may ask for within a lease. A client dials ever more seldom while no server serves it, and
// begins anew when one has.
const (
	mostConnections = 100
	mostRequests    = 20_000
)

func newSimulatedLink(n int, link *zkfake.Link) *simulatedLink {
	l := &simulatedLink{
		n: n, link: link,
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

// linkTrouble is the effect of a fault on a wire.
type linkTrouble struct {
	toServer, toClient bool // held
	silent             bool
	refused            bool             // and connections end
	throttles          func(int32) bool // see zkfake.Wire.Throttle; nil: none
	dismissed          bool             // connections end behind the greeting
	eventless          bool             // see zkfake.Wire.LoseEvents
	loses              bool             // connections end with the trouble: held frames are lost
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

// strike begins a fault of the network of a slot.
func (l *simulatedLink) strike(f nemesis.Fault) (string, func(context.Context) error, error) {
	target := fmt.Sprintf("client %d", l.n)
	wires := l.wires
	if f.Pick%2 == 0 || f.Kind == nemesis.HalfOpen { // see zooKeeperSlot.strike
		wires = l.inUse(f.Server)
		target += fmt.Sprintf(", the wire to server %d", slices.Index(l.wires, wires[0]))
	}
	var t linkTrouble
	switch f.Kind {
	case nemesis.LostReply, nemesis.LostRequest, nemesis.LateRequest:
		op, wire := ops[f.Pick/2%uint32(len(ops))], l.inUse(f.Server)[0].wire
		switch f.Kind {
		case nemesis.LostReply:
			wire.LoseReply(int32(op.op))
		case nemesis.LostRequest:
			wire.LoseRequest(int32(op.op))
		default:
			wire.Late(int32(op.op), zooKeeperLease/20*time.Duration(1+f.Pick%25))
		}
		return fmt.Sprintf("client %d, the next %s", l.n, op.name), func(context.Context) error { wire.Disarm(); return nil }, nil
	case nemesis.Cut:
		t = linkTrouble{refused: true}
	case nemesis.BlackHole:
		t = linkTrouble{toServer: true, toClient: true, loses: true}
	case nemesis.OneWayIn:
		t = linkTrouble{toClient: true, loses: true}
	case nemesis.OneWayOut:
		t = linkTrouble{toServer: true, loses: true}
	case nemesis.Stall:
		t = linkTrouble{toServer: true, toClient: true}
	case nemesis.HalfOpen:
		t = linkTrouble{silent: true, loses: true}
	case nemesis.HungUpOn:
		t = linkTrouble{dismissed: true}
	case nemesis.EventsLost:
		t = linkTrouble{eventless: true, loses: true} // or no watch would ever report the lost events
	case nemesis.Throttled:
		t = linkTrouble{throttles: throttling(f.Pick / 2)}
	default:
		return "", nil, fmt.Errorf("%s: not known here", f.Kind)
	}
	return target, afflict(wires, t), nil
}

// throttling refuses all requests, or all but each third, or those alone that set watches again on a new connection.
func throttling(pick uint32) func(kind int32) bool {
	n := 0
	switch pick % 3 {
	case 0:
		return func(int32) bool { return true }
	case 1:
		return func(int32) bool { // under the ensemble's mutex
			n++
			return n%3 != 0
		}
	}
	return func(kind int32) bool { return kind == int32(faultproxy.OpSetWatches) }
}

// inUse is the wire that carries a session, or else the wire to the given member.
func (l *simulatedLink) inUse(otherwise int) []*simulatedWire {
	for i, w := range l.wires {
		if w.wire.Used() {
			return l.wires[i : i+1]
		}
	}
	return l.wires[otherwise : otherwise+1]
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
	for _, w := range c.link.wires {
		w.wire.Sever()
	}
	c.release()
}
