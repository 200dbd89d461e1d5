package main

import (
	"context"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/integration/cmd/bench/report"
)

// linkLatency is what the proxy adds in each direction.
const linkLatency = time.Millisecond

// uncontended compares uncontended acquire and release with go-zookeeper's
// Lock and with a bare create and delete.
func uncontended(ctx context.Context, e *env, emit func(report.Row)) error {
	for _, c := range []struct {
		name        string
		latency     time.Duration
		peer, floor report.Bar
	}{
		{loopback, 0, report.AtLeast(1.10), report.AtMost(1.15)},
		{"ZooKeeper, 1 ms each way", linkLatency, report.AtLeast(1.4), report.AtMost(1.05)},
	} {
		addr := e.server.Addr()
		if c.latency > 0 {
			addr = e.proxy.Addr()
		}
		cs, err := e.connect(ctx, addr)
		if err != nil {
			return err
		}
		e.proxy.SetLatency(c.latency)
		err = uncontendedOver(ctx, e, cs, c.name, c.peer, c.floor, emit)
		e.proxy.SetLatency(0)
		cs.close()
		if err != nil {
			return err
		}
	}
	return nil
}

func uncontendedOver(ctx context.Context, e *env, cs *clients, where string, peer, floor report.Bar, emit func(report.Row)) error {
	key := e.name("uncontended")
	bare := peerRoot + "/" + e.name("bare")
	if _, err := cs.peer.Create(bare, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		return err
	}
	ours := side{"holdfast", loop(cs.acquireRelease(key))}
	for _, c := range []struct {
		other side
		bar   report.Bar
	}{
		{side{goZookeeper, loop(cs.lockUnlock(key))}, peer},
		{side{"a bare create + delete", loop(cs.createDelete(bare))}, floor},
	} {
		done, err := alternate(ctx, e.plan(100*time.Millisecond), report.Contest{Where: where, What: uncontendedHold, Op: hold}, ours, c.other)
		if err != nil {
			return err
		}
		emit(report.Compare(done, c.bar))
	}
	return watched(ctx, e, cs, where, key, peer, emit)
}

// watched is the same with holds long enough to set the break watch, which a
// hold of a few milliseconds does without. Only acquire and release are
// timed.
func watched(ctx context.Context, e *env, cs *clients, where, key string, bar report.Bar, emit func(report.Row)) error {
	const held = 10 * time.Millisecond
	ours := side{"holdfast", heldLoop(held, func(ctx context.Context) (func() error, error) {
		lock, err := cs.ours.Acquire(ctx, key)
		if err != nil {
			return nil, err
		}
		return func() error { return lock.Release(ctx) }, nil
	})}
	lock := cs.peerLock(key)
	other := side{goZookeeper, heldLoop(held, func(context.Context) (func() error, error) {
		return lock.Unlock, lock.LockWithData([]byte(owner))
	})}
	c, err := alternate(ctx, e.plan(0), report.Contest{
		Where: where, What: fmt.Sprintf("held for %d ms (not counted)", held.Milliseconds()), Op: hold, Ops: e.times(25, 5),
	}, ours, other)
	if err != nil {
		return err
	}
	emit(report.Compare(c, bar))
	return nil
}
