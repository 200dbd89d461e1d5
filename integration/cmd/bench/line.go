package main

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
)

// line is a held lock with a number of waiters. Each holder passes it on at
// once while hand-offs are allowed, and otherwise keeps it.
type line struct {
	*env
	clients  []*client
	key      string
	waiters  int
	next     int          // contender
	inside   int          // contenders in the line
	allowed  atomic.Int64 // hand-offs
	held     chan func() error
	failed   chan error
	release  func() error // of the present holder
	contends context.Context
}

func newLine(ctx context.Context, e *env, clients []*client, key string, waiters int) *line {
	return &line{
		env:      e,
		clients:  clients,
		key:      key,
		waiters:  waiters,
		held:     make(chan func() error, 1),
		failed:   make(chan error, waiters+1),
		contends: ctx,
	}
}

// block makes a block that times only hand-offs: while the lock is held, the
// line is refilled before it is half empty.
func (l *line) block(ctx context.Context, ops int) (time.Duration, error) {
	var total time.Duration
	for ops > 0 {
		n := min(ops, max(1, l.waiters/2))
		ops -= n
		if err := l.fill(ctx); err != nil {
			return 0, err
		}
		l.allowed.Store(int64(n) - 1)
		release := l.release
		began := time.Now()
		if err := release(); err != nil {
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

// fill brings the line to its length, and returns when all wait.
func (l *line) fill(ctx context.Context) error { return l.fillTo(ctx, l.waiters+1) }

func (l *line) fillTo(ctx context.Context, contenders int) error {
	if l.release == nil { // first of all a holder
		l.allowed.Store(0)
		l.join()
		if err := l.await(ctx); err != nil {
			return err
		}
	}
	for l.inside < contenders {
		l.join()
	}
	return l.settle(ctx)
}

func (l *line) join() {
	i := l.next
	l.next++
	l.inside++
	go func() {
		release, err := l.clients[i%len(l.clients)].take(l.contends, l.key)
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

// settle waits until all contenders have their nodes and no watch is being set.
func (l *line) settle(ctx context.Context) error {
	select {
	case err := <-l.failed:
		return err
	default:
		return l.env.settle(ctx, l.clients[0].queue(l.key), l.inside)
	}
}

// settle waits until a znode has a number of children, and no watch is being set.
func (e *env) settle(ctx context.Context, parent string, children int) error {
	const calm = 3
	for still, last := 0, -1.0; still < calm; {
		if err := pause(ctx, 2*time.Millisecond); err != nil {
			return err
		}
		n, err := e.children(parent)
		if err != nil {
			return err
		}
		metrics, err := zkserver.Metrics(ctx, e.server.Addr())
		if err != nil {
			return err
		}
		watches := metrics["zk_watch_count"]
		if still++; n != children || watches != last {
			still, last = 0, watches
		}
	}
	return nil
}

func (e *env) children(parent string) (int, error) {
	_, stat, err := e.look.Exists(parent)
	if err != nil {
		return 0, err
	}
	return int(stat.NumChildren), nil
}

// fillInTurn is fill for a line that keeps contenders in the order of their
// numbers.
func (l *line) fillInTurn(ctx context.Context) error {
	if err := l.fillTo(ctx, 1); err != nil {
		return err
	}
	for l.inside < l.waiters+1 {
		l.join()
		for there := 0; there != l.inside; {
			var err error
			if there, err = l.children(l.clients[0].queue(l.key)); err != nil {
				return err
			}
		}
	}
	return l.settle(ctx)
}
