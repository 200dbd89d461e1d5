package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/integration/internal/nemesis"
)

// zooKeeperSlot is the network of the client processes in one slot: a wire to each server.
type zooKeeperSlot struct {
	n     int
	wires []*zooKeeperWire
}

// zooKeeperWire is a proxy, and the faults in force on it.
type zooKeeperWire struct {
	troubles[affliction]
	proxy *faultproxy.Proxy
}

// affliction is the effect of a fault on a proxy. Heal ends it.
type affliction = func(*faultproxy.Proxy)

func newZooKeeperSlot(n int, servers []string) (*zooKeeperSlot, error) {
	s := &zooKeeperSlot{n: n}
	for _, server := range servers {
		proxy, err := faultproxy.StartZooKeeper(server)
		if err != nil {
			s.close()
			return nil, err
		}
		w := &zooKeeperWire{proxy: proxy}
		w.apply = w.set
		s.wires = append(s.wires, w)
	}
	return s, nil
}

func (s *zooKeeperSlot) close() {
	for _, w := range s.wires {
		_ = w.proxy.Close()
	}
}

// set lets a fault begin beside the others, or the others begin again after one has ended.
func (w *zooKeeperWire) set(all []*affliction, begun *affliction) (err error) {
	if begun != nil {
		all = []*affliction{begun}
	} else {
		err = w.proxy.Heal()
	}
	for _, a := range slices.Backward(all) {
		(*a)(w.proxy)
	}
	return err
}

// strike begins a fault of the network of a slot.
func (s *zooKeeperSlot) strike(f nemesis.Fault) (target string, end func(context.Context) error, err error) {
	target = fmt.Sprintf("client %d", s.n)
	// Half of the faults hit all wires, the others only the one in use, which leaves the client a way out.
	wires := s.wires
	if f.Pick%2 == 0 || f.Kind == nemesis.HalfOpen {
		wires = s.inUse(f.Server)
		target += fmt.Sprintf(", the wire to server %d", slices.Index(s.wires, wires[0]))
	}
	switch f.Kind {
	case nemesis.LostReply, nemesis.LostRequest:
		op := ops[f.Pick/2%uint32(len(ops))]
		proxy := s.inUse(f.Server)[0].proxy
		lose := proxy.LoseRequest
		if f.Kind == nemesis.LostReply {
			lose = proxy.LoseReply
		}
		lose(op.op, "")
		return fmt.Sprintf("client %d, the next %s", s.n, op.name), func(context.Context) error { proxy.Disarm(); return nil }, nil
	case nemesis.Cut:
		return target, afflict(wires, (*faultproxy.Proxy).Cut), nil
	case nemesis.BlackHole:
		return target, afflict(wires, blackHole(faultproxy.Both)), nil
	case nemesis.OneWayIn:
		return target, afflict(wires, blackHole(faultproxy.ToClient)), nil
	case nemesis.OneWayOut:
		return target, afflict(wires, blackHole(faultproxy.ToServer)), nil
	case nemesis.Stall:
		return target, afflict(wires, func(p *faultproxy.Proxy) { p.Stall(faultproxy.Both) }), nil
	case nemesis.HalfOpen:
		return target, afflict(wires, func(p *faultproxy.Proxy) {
			p.HalfOpen()
			p.Drop()
		}), nil
	}
	return "", nil, fmt.Errorf("%s: not known here", strings.ToLower(string(f.Kind)))
}

func blackHole(dir faultproxy.Direction) affliction {
	return func(p *faultproxy.Proxy) { p.BlackHole(dir) }
}

// inUse is the wire that carries a connection, or else the wire to the given server.
func (s *zooKeeperSlot) inUse(otherwise int) []*zooKeeperWire {
	for i, w := range s.wires {
		if w.proxy.Conns() > 0 {
			return s.wires[i : i+1]
		}
	}
	return s.wires[otherwise : otherwise+1]
}

// ops are the requests that can be lost: those of a lock's life.
var ops = []struct {
	op   faultproxy.Op
	name string
}{
	{faultproxy.OpCreate, "create"},
	{faultproxy.OpGetChildren2, "list"},
	{faultproxy.OpDelete, "delete"},
	{faultproxy.OpMulti, "multi"},
	{faultproxy.OpGetData, "read"},
}
