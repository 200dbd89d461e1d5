package main

import (
	"context"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"
)

// linkLatency is added in each direction, by the proxy.
const linkLatency = time.Millisecond

// uncontended is acquire and release of a key that nobody else wants, against
// go-zookeeper's Lock and against a bare create and delete.
func uncontended(ctx context.Context, e *env, emit func(result)) error {
	for _, c := range []struct {
		name        string
		latency     time.Duration
		peer, floor bar
	}{
		{"loopback", 0, atLeast(1.10), atMost(1.15)},
		{"1 ms each way", linkLatency, atLeast(1.4), atMost(1.05)},
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

func uncontendedOver(ctx context.Context, e *env, cs *clients, name string, peer, floor bar, emit func(result)) error {
	key := e.name("uncontended")
	bare := peerRoot + "/" + e.name("bare")
	if _, err := cs.peer.Create(bare, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		return err
	}
	if err := watched(ctx, e, cs, name, key, peer, emit); err != nil {
		return err
	}
	ours := side{"holdfast", loop(cs.acquireRelease(key))}
	for _, c := range []struct {
		row   string
		other side
		bar   bar
	}{
		{"against go-zookeeper's Lock", side{"go-zookeeper", loop(cs.lockUnlock(key))}, peer},
		{"against create + delete", side{"create+delete", loop(cs.createDelete(bare))}, floor},
	} {
		pairs, ops, err := alternate(ctx, e.plan(100*time.Millisecond), ours, c.other, 0)
		if err != nil {
			return err
		}
		emit(compared(fmt.Sprintf("uncontended, %s, %s", name, c.row), "acquire+release", c.bar, ours, c.other, pairs, ops))
	}
	return nil
}

// watched is the same with holds that are long enough for the break watch to be
// set, which a hold of less than some milliseconds does without. Only acquire
// and release are timed.
func watched(ctx context.Context, e *env, cs *clients, name, key string, bar bar, emit func(result)) error {
	const hold = 10 * time.Millisecond
	ours := side{"holdfast", heldLoop(hold, func(ctx context.Context) (func() error, error) {
		lock, err := cs.ours.Acquire(ctx, key)
		if err != nil {
			return nil, err
		}
		return func() error { return lock.Release(ctx) }, nil
	})}
	lock := cs.peerLock(key)
	other := side{"go-zookeeper", heldLoop(hold, func(context.Context) (func() error, error) {
		return lock.Unlock, lock.LockWithData([]byte(owner))
	})}
	pairs, ops, err := alternate(ctx, e.plan(0), ours, other, 10)
	if err != nil {
		return err
	}
	emit(compared(fmt.Sprintf("uncontended, %s, held for %v, against go-zookeeper", name, hold), "acquire+release", bar, ours, other, pairs, ops))
	return nil
}
