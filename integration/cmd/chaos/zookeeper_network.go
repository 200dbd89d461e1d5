package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/integration/internal/nemesis"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
)

// zooKeeperSlot is the network of the client processes in one slot: a wire to each server.
type zooKeeperSlot struct {
	n     int
	wires []zooKeeperWire
}

// zooKeeperWire is the way from a slot to one server, on this machine or in a simulation.
type zooKeeperWire interface {
	begin(*linkTrouble) (end func(context.Context) error, err error)
	heal() error
	used() bool
	// lose makes the next request of a kind meet a fault. The function that it returns ends that.
	lose(fault nemesis.Kind, op faultproxy.Op, pick uint32) (disarm func())
}

// linkTrouble is the effect of a fault on a wire.
type linkTrouble struct {
	toServer, toClient bool // held
	silent             bool // and live connections end, as with the next two
	refused            bool
	dismissed          bool             // connections end behind the greeting
	throttles          func(int32) bool // see zkfake.Wire.Throttle; nil: none
	eventless          bool             // see zkfake.Wire.LoseEvents
	loses              bool             // connections end with the trouble: held frames are lost
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
	var t linkTrouble
	switch f.Kind {
	case nemesis.LostReply, nemesis.LostRequest, nemesis.LateRequest:
		op := ops[f.Pick/2%uint32(len(ops))]
		disarm := s.inUse(f.Server)[0].lose(f.Kind, op.op, f.Pick)
		return fmt.Sprintf("client %d, the next %s", s.n, op.name), func(context.Context) error { disarm(); return nil }, nil
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
		t = linkTrouble{eventless: true, loses: f.Pick/2%2 == 0} // or only the client's own questions find the lost events
	case nemesis.Throttled:
		t = linkTrouble{throttles: throttling(f.Pick / 2)}
	default:
		return "", nil, fmt.Errorf("%s: not known here", f.Kind)
	}
	return target, afflict(wires, t), nil
}

// throttling refuses all requests, or all but each third, or only requests that set watches again on a new connection.
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

// inUse is the wire that carries a connection, or else the wire to the given server.
func (s *zooKeeperSlot) inUse(otherwise int) []zooKeeperWire {
	for i, w := range s.wires {
		if w.used() {
			return s.wires[i : i+1]
		}
	}
	return s.wires[otherwise : otherwise+1]
}

// ops are the requests that can be lost.
var ops = []struct {
	op   faultproxy.Op
	name string
}{
	{faultproxy.OpCreate, "create"},
	{faultproxy.OpGetChildren2, "list"},
	{faultproxy.OpDelete, "delete"},
	{faultproxy.OpMulti, "multi"},
	{faultproxy.OpGetData, "read"},
	{faultproxy.OpSetData, "write"},
}

// zooKeeperSlots are the slots of a run.
type zooKeeperSlots []*zooKeeperSlot

// follower returns a follower to which a holder is connected, or else one that has clients, if there is any: other faults
// prove little.
func (s zooKeeperSlots) follower(leader int, f nemesis.Fault, holds func(slot int) bool) int {
	var followers []int
	for i := range zkserver.EnsembleSize {
		if i != leader {
			followers = append(followers, i)
		}
	}
	for i := range s {
		slot := s[(f.Client+i)%len(s)]
		for _, server := range followers {
			if holds(slot.n) && slot.wires[server].used() {
				return server
			}
		}
	}
	chosen := followers[f.Server%len(followers)]
	if !slices.ContainsFunc(s, func(slot *zooKeeperSlot) bool { return slot.wires[chosen].used() }) {
		return followers[(f.Server+1)%len(followers)]
	}
	return chosen
}

// apart runs a step on a server, until undo. Either its clients reach only this server and all others only the other servers, or all
// clients are free to connect anywhere: then those that notice soon switch servers.
func (s zooKeeperSlots) apart(
	server int, f nemesis.Fault, strike func(), undo func(context.Context) error,
) (target string, end func(context.Context) error) {
	target = fmt.Sprintf("server %d", server)
	if f.Pick%4 == 0 {
		strike()
		return target, undo
	}
	var far []zooKeeperWire
	for _, slot := range s {
		if slot.wires[server].used() {
			target += fmt.Sprintf(", client %d", slot.n)
			far = slices.Concat(far, slot.wires[:server], slot.wires[server+1:])
		} else {
			far = append(far, slot.wires[server])
		}
	}
	join := afflict(far, linkTrouble{refused: true})
	strike()
	return target, func(ctx context.Context) error { return errors.Join(undo(ctx), join(ctx)) }
}
