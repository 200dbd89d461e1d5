package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/integration/internal/nemesis"
)

// zooKeeperSlot is the network of the client processes in one slot: a wire to each server.
type zooKeeperSlot struct {
	n     int
	wires []*zooKeeperWire
	traps traps
}

// zooKeeperWire is a proxy, and the faults in force on it.
type zooKeeperWire struct {
	proxy *faultproxy.Proxy

	mu     sync.Mutex
	faults []*affliction
}

// affliction is what a fault does to a proxy. Heal ends it.
type affliction func(*faultproxy.Proxy)

func newZooKeeperSlot(n int, servers []string) (*zooKeeperSlot, error) {
	s := &zooKeeperSlot{n: n}
	for i, server := range servers {
		proxy, err := faultproxy.StartZooKeeper(server)
		if err != nil {
			s.close()
			return nil, err
		}
		proxy.SetFilter(func(f faultproxy.Frame) faultproxy.Verdict { return s.traps.judge(i, f) })
		s.wires = append(s.wires, &zooKeeperWire{proxy: proxy})
	}
	return s, nil
}

func (s *zooKeeperSlot) close() {
	for _, w := range s.wires {
		_ = w.proxy.Close()
	}
}

// begin puts a fault in force; the returned function ends only that fault.
func (w *zooKeeperWire) begin(a affliction) (end func() error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults = append(w.faults, &a)
	a(w.proxy)
	return func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.faults = slices.DeleteFunc(w.faults, func(other *affliction) bool { return other == &a })
		err := w.proxy.Heal()
		for _, other := range w.faults {
			(*other)(w.proxy)
		}
		return err
	}
}

// heal ends all faults.
func (w *zooKeeperWire) heal() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults = nil
	return w.proxy.Heal()
}

// afflict puts a fault in force on some wires.
func afflict(wires []*zooKeeperWire, a affliction) (end func(context.Context) error) {
	var ends []func() error
	for _, w := range wires {
		ends = append(ends, w.begin(a))
	}
	return func(context.Context) error {
		var errs []error
		for _, end := range ends {
			errs = append(errs, end())
		}
		return errors.Join(errs...)
	}
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
		trap := s.traps.set(op.op, f.Kind == nemesis.LostReply)
		return fmt.Sprintf("client %d, the next %s", s.n, op.name), func(context.Context) error { s.traps.unset(trap); return nil }, nil
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

// traps wait for requests, on all wires of a slot.
type traps struct {
	mu    sync.Mutex
	armed []*trap
}

// trap drops the first matching request, or its reply.
type trap struct {
	op    faultproxy.Op
	reply bool
	// The request whose reply is awaited; conn 0 is none.
	wire, conn int
	xid        int32
}

func (t *traps) set(op faultproxy.Op, reply bool) *trap {
	t.mu.Lock()
	defer t.mu.Unlock()
	armed := &trap{op: op, reply: reply}
	t.armed = append(t.armed, armed)
	return armed
}

func (t *traps) unset(gone *trap) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.armed = slices.DeleteFunc(t.armed, func(other *trap) bool { return other == gone })
}

// judge is the filter of a wire. A trap springs once, and closes the connection.
func (t *traps) judge(wire int, f faultproxy.Frame) faultproxy.Verdict {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, trap := range t.armed {
		switch {
		case f.Dir == faultproxy.ToServer && f.Kind == faultproxy.KindRequest && f.Op == trap.op && !trap.reply,
			f.Dir == faultproxy.ToClient && f.Kind == faultproxy.KindReply && trap.conn != 0 &&
				wire == trap.wire && f.Conn == trap.conn && f.Xid == trap.xid:
			t.armed = slices.Delete(t.armed, i, i+1)
			return faultproxy.CutBefore
		// If the connection of an earlier request ended without a reply, this request's reply is lost
		// instead.
		case f.Dir == faultproxy.ToServer && f.Kind == faultproxy.KindRequest && f.Op == trap.op &&
			(trap.conn == 0 || wire != trap.wire || f.Conn != trap.conn):
			trap.wire, trap.conn, trap.xid = wire, f.Conn, f.Xid
			return faultproxy.Pass
		}
	}
	return faultproxy.Pass
}
