package main

import (
	"context"
	"time"

	"github.com/go-zookeeper/zk"
)

// Names of sides, places and kinds of work.
const (
	goZookeeper     = "go-zookeeper's Lock"
	loopback        = "ZooKeeper, loopback"
	uncontendedHold = "one lock, uncontended"
	hold            = "acquire + release"
)

// loop makes a block that repeats one operation.
func loop(op func(ctx context.Context) error) func(context.Context, int) (time.Duration, error) {
	return func(ctx context.Context, ops int) (time.Duration, error) {
		began := time.Now()
		for range ops {
			if err := op(ctx); err != nil {
				return 0, err
			}
		}
		return time.Since(began), nil
	}
}

// acquireRelease is one uncontended hold of our lock. Its context is
// cancellable, as in a server's request.
func (c *clients) acquireRelease(key string) func(context.Context) error {
	return func(ctx context.Context) error {
		lock, err := c.ours.Acquire(ctx, key)
		if err != nil {
			return err
		}
		return lock.Release(ctx)
	}
}

// lockUnlock is one uncontended hold of go-zookeeper's lock.
func (c *clients) lockUnlock(key string) func(context.Context) error {
	lock := c.peerLock(key)
	return func(context.Context) error {
		if err := lock.LockWithData([]byte(owner)); err != nil {
			return err
		}
		return lock.Unlock()
	}
}

// createDelete is the minimum for any lock on ZooKeeper.
func (c *clients) createDelete(parent string) func(context.Context) error {
	return func(context.Context) error {
		path, err := c.peer.Create(parent+"/"+createPrefix, []byte(owner), zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
		if err != nil {
			return err
		}
		return c.peer.Delete(path, -1)
	}
}

// heldLoop makes a block of longer holds; the time held does not count.
func heldLoop(hold time.Duration, take func(context.Context) (release func() error, err error)) func(context.Context, int) (time.Duration, error) {
	return func(ctx context.Context, ops int) (time.Duration, error) {
		var total time.Duration
		for range ops {
			began := time.Now()
			release, err := take(ctx)
			if err != nil {
				return 0, err
			}
			total += time.Since(began)
			time.Sleep(hold)
			began = time.Now()
			if err := release(); err != nil {
				return 0, err
			}
			total += time.Since(began)
		}
		return total, nil
	}
}

// createPrefix is as long as a lock node's.
const createPrefix = "_c_00000000-0000-4000-8000-000000000000-node-"
