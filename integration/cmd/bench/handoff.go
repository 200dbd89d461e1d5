package main

import (
	"context"
	"sync/atomic"
	"time"
)

// line is a held lock with a number of waiters. Each holder releases the lock at once while hand-offs are allowed. Otherwise the
// holder keeps the lock.
type line struct {
	server  *zookeeper
	clients []*client
	key     string
	waiters int
	next    int          // the number of the next contender
	inside  int          // contenders in the line
	allowed atomic.Int64 // hand-offs
	held    chan func() error
	failed  chan error
	release func() error // of the present holder
}

// handoffs passes a lock on to its waiters.
func handoffs(open connect, waiters int) func(context.Context, *lifetime) (block, error) {
	return func(ctx context.Context, l *lifetime) (block, error) {
		all, err := openAll(ctx, l, open, sessions)
		if err != nil {
			return nil, err
		}
		line := &line{
			server: l.zookeeper, clients: all, key: l.name("handoff"), waiters: waiters,
			held: make(chan func() error, 1), failed: make(chan error, waiters+1),
		}
		line.join(ctx)
		if err := line.await(ctx); err != nil {
			return nil, err
		}
		return line.block, nil
	}
}

// block times only hand-offs: while the lock is held, it refills the line before the line is half empty.
func (l *line) block(ctx context.Context, ops int) (total time.Duration, err error) {
	for ops > 0 {
		n := min(ops, max(1, l.waiters/2))
		ops -= n
		l.allowed.Store(0)
		for l.inside < l.waiters+1 {
			l.join(ctx)
		}
		if err := l.server.settle(ctx, l.clients[0].queue(l.key), l.inside); err != nil {
			return 0, err
		}
		l.allowed.Store(int64(n) - 1)
		began := time.Now()
		if err := l.release(); err != nil {
			return 0, err
		}
		if err := l.await(ctx); err != nil {
			return 0, err
		}
		total += time.Since(began)
		l.inside -= n
	}
	return total, nil
}

// join adds a contender.
func (l *line) join(ctx context.Context) {
	c := l.clients[l.next%len(l.clients)]
	l.next++
	l.inside++
	go func() {
		release, err := c.acquire(ctx, l.key)
		switch {
		case err != nil:
		case l.allowed.Add(-1) >= 0:
			err = release()
		default:
			l.held <- release
		}
		if err != nil {
			l.failed <- err
		}
	}()
}

// await waits for a holder that keeps the lock.
func (l *line) await(ctx context.Context) error {
	select {
	case l.release = <-l.held:
		return nil
	case err := <-l.failed:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
