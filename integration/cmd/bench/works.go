package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// work is what the two sides of a contest do.
type work struct {
	what, op   string
	waiters    int           // of hand-offs
	election   bool          // they are a leader's
	sharing    bool          // several hold the key at a time
	length     time.Duration // of a block, roughly; 0: it has ops operations
	ops, quick int
	start      func(ctx context.Context, s *servers, open func() (*client, error)) (block, error)
}

// block does a number of operations, and returns their time.
type block func(ctx context.Context, ops int) (time.Duration, error)

const hold = "acquire + release"

var oneLock = work{
	what: "one lock, uncontended", op: hold, length: 100 * time.Millisecond,
	start: func(_ context.Context, s *servers, open func() (*client, error)) (block, error) {
		c, err := open()
		if err != nil {
			return nil, err
		}
		key := s.name("uncontended")
		if c.peer != nil {
			return c.peer.loop(c.queue(key)), nil
		}
		return loop(c, key), nil
	},
}

// freshKeys uses a new key each time, so that its parent must be created.
var freshKeys = work{
	what: "a fresh key each time", op: hold, length: 100 * time.Millisecond,
	start: func(_ context.Context, s *servers, open func() (*client, error)) (block, error) {
		c, err := open()
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context, ops int) (total time.Duration, err error) {
			for range ops {
				took, err := loop(c, s.name("fresh"))(ctx, 1)
				if err != nil {
					return 0, err
				}
				total += took
			}
			return total, nil
		}, nil
	},
}

// heldLock has holds long enough to set the break watch, which a hold of a few milliseconds does without. Only acquire and
// release are timed.
var heldLock = work{
	what: "held for 10 ms (not counted)", op: hold, ops: 25, quick: 5,
	start: func(_ context.Context, s *servers, open func() (*client, error)) (block, error) {
		c, err := open()
		if err != nil {
			return nil, err
		}
		key := s.name("held")
		return func(ctx context.Context, ops int) (total time.Duration, err error) {
			for range ops {
				began := time.Now()
				release, err := c.take(ctx, key)
				if err != nil {
					return 0, err
				}
				total += time.Since(began)
				time.Sleep(10 * time.Millisecond)
				began = time.Now()
				if err := release(); err != nil {
					return 0, err
				}
				total += time.Since(began)
			}
			return total, nil
		}, nil
	},
}

// parallelism is how many keys one session uses at the same time.
const parallelism = 32

var parallelLocks = work{
	what: fmt.Sprintf("%d locks at the same time on one session", parallelism), op: hold + ", over all", length: 150 * time.Millisecond,
	start: func(_ context.Context, s *servers, open func() (*client, error)) (block, error) {
		c, err := open()
		if err != nil {
			return nil, err
		}
		var each []block
		for range parallelism {
			each = append(each, loop(c, s.name("parallel")))
		}
		return func(ctx context.Context, ops int) (time.Duration, error) {
			failed := make(chan error, parallelism)
			began := time.Now()
			for i, b := range each {
				go func() {
					_, err := b(ctx, (ops+i)/parallelism)
					failed <- err
				}()
			}
			var errs []error
			for range each {
				errs = append(errs, <-failed)
			}
			return time.Since(began), errors.Join(errs...)
		}, nil
	},
}

// handoffSessions is over how many sessions the contenders of one lock are spread, round robin, on each side: successive
// holders use different sessions, as different processes would.
const handoffSessions = 10

func handoffs(waiters int) work {
	return work{
		what: fmt.Sprintf("hand-offs, %d waiters", waiters), op: "hand-off",
		waiters: waiters, ops: min(100, 10*waiters), quick: 10,
		start: func(ctx context.Context, s *servers, open func() (*client, error)) (block, error) {
			return lineOf(ctx, s, open, handoffSessions, waiters)
		},
	}
}

// crowd is a line that takes long to fill, of more sessions.
var crowd = work{
	what: "hand-offs, 3000 waiters, 30 sessions", op: "hand-off",
	waiters: 3000, ops: 300, quick: 10,
	start: func(ctx context.Context, s *servers, open func() (*client, error)) (block, error) {
		return lineOf(ctx, s, open, 30, 3000)
	},
}

func lineOf(ctx context.Context, s *servers, open func() (*client, error), sessions, waiters int) (block, error) {
	key := s.name("handoff")
	var all []*client
	for range min(waiters+1, sessions) {
		c, err := open()
		if err != nil {
			return nil, err
		}
		if c.peer != nil { // which has them all
			return c.peer.line(s.zookeeper, c.queue(key), waiters), nil
		}
		all = append(all, c)
	}
	return newLine(ctx, s.zookeeper, all, key, waiters).block, nil
}

// loop makes a block that takes and releases one lock.
func loop(c *client, key string) block {
	return func(ctx context.Context, ops int) (time.Duration, error) {
		began := time.Now()
		for range ops {
			release, err := c.take(ctx, key)
			if err != nil {
				return 0, err
			}
			if err := release(); err != nil {
				return 0, err
			}
		}
		return time.Since(began), nil
	}
}
