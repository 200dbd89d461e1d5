package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast"
)

// client acquires and releases locks of a library in this process.
type client struct {
	acquire func(ctx context.Context, key string) (release func() error, err error)
	queue   func(key string) string // on ZooKeeper: the znode whose children are a key's contenders
}

// connect opens a client, whose end is added to the lifetime.
type connect func(context.Context, *lifetime) (*client, error)

// holdfastClient acquires locks with a context that can be cancelled, as in a server's request.
func holdfastClient(l *lifetime, c *holdfast.Client, opts ...holdfast.Option) *client {
	l.atEnd(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		_ = c.Close(ctx) // also releases held locks
	})
	return &client{acquire: func(ctx context.Context, key string) (func() error, error) {
		lock, err := c.Acquire(ctx, key, opts...)
		if err != nil {
			return nil, err
		}
		return func() error { return lock.Release(ctx) }, nil
	}}
}

// alone acquires and releases one lock that no other client wants.
func alone(open connect) func(context.Context, *lifetime) (block, error) {
	return func(ctx context.Context, l *lifetime) (block, error) {
		c, err := open(ctx, l)
		if err != nil {
			return nil, err
		}
		key := l.name("alone")
		return func(ctx context.Context, ops int) (time.Duration, error) {
			began := time.Now()
			for range ops {
				if err := c.once(ctx, key); err != nil {
					return 0, err
				}
			}
			return time.Since(began), nil
		}, nil
	}
}

func (c *client) once(ctx context.Context, key string) error {
	release, err := c.acquire(ctx, key)
	if err != nil {
		return err
	}
	return release()
}

// parallel acquires and releases locks of many keys at the same time on one session.
func parallel(open connect) func(context.Context, *lifetime) (block, error) {
	return func(ctx context.Context, l *lifetime) (block, error) {
		c, err := open(ctx, l)
		if err != nil {
			return nil, err
		}
		keys := make([]string, keysAtOnce)
		for i := range keys {
			keys[i] = l.name("parallel")
		}
		return together(keysAtOnce, func(ctx context.Context, i int) error { return c.once(ctx, keys[i]) }), nil
	}
}

// sessions is over how many sessions the contenders of one key are spread. So successive holders use different sessions, as
// different processes would.
const sessions = 10

// crowd has contenders acquire and release one key.
func crowd(open connect) func(context.Context, *lifetime) (block, error) {
	return func(ctx context.Context, l *lifetime) (block, error) {
		all, err := openAll(ctx, l, open, sessions)
		if err != nil {
			return nil, err
		}
		key := l.name("crowd")
		return together(contenders, func(ctx context.Context, i int) error { return all[i%len(all)].once(ctx, key) }), nil
	}
}

func openAll(ctx context.Context, l *lifetime, open connect, n int) (all []*client, err error) {
	for range n {
		c, err := open(ctx, l)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// together makes a block of goroutines that share the operations.
func together(goroutines int, once func(ctx context.Context, i int) error) block {
	return func(ctx context.Context, ops int) (time.Duration, error) {
		var left atomic.Int64
		left.Store(int64(ops))
		ended := make(chan error, goroutines)
		began := time.Now()
		for i := range goroutines {
			go func() {
				var err error
				for err == nil && left.Add(-1) >= 0 {
					err = once(ctx, i)
				}
				ended <- err
			}()
		}
		var errs []error
		for range goroutines {
			errs = append(errs, <-ended)
		}
		return time.Since(began), errors.Join(errs...)
	}
}
