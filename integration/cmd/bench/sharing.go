package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast"
)

// permits and contenders are those of the semaphore for which many contend.
const permits, contenders = 8, 64

// reading and permitted are where keys are shared.
var (
	reading   = place{name: loopback.name, ours: zooKeeperWith(holdfast.WithShared()), times: 1}
	permitted = place{name: loopback.name, ours: zooKeeperWith(holdfast.WithLimit(permits)), times: 1}
)

var oneReader = work{
	what: "one reader, uncontended", op: hold, sharing: true, length: oneLock.length, start: oneLock.start,
}

var readersTogether = work{
	what: fmt.Sprintf("%d readers of one key on one session", parallelism), op: hold + ", over all", sharing: true,
	length: parallelLocks.length, start: crowdOn(1, parallelism),
}

var permitsContended = work{
	what: fmt.Sprintf("a semaphore of %d, %d contend", permits, contenders), op: "permit, acquired and released",
	sharing: true, length: 500 * time.Millisecond, start: crowdOn(handoffSessions, contenders),
}

// crowdOn lets a number of goroutines, over some sessions, acquire and release one key until they have done so often enough.
func crowdOn(sessions, goroutines int) func(context.Context, *servers, func() (*client, error)) (block, error) {
	return func(_ context.Context, s *servers, open func() (*client, error)) (block, error) {
		key := s.name("crowd")
		var all []*client
		for range sessions {
			c, err := open()
			if err != nil {
				return nil, err
			}
			if c.peer != nil { // which has them all
				return c.peer.many(c.queue(key)), nil
			}
			all = append(all, c)
		}
		return func(ctx context.Context, ops int) (time.Duration, error) {
			var left atomic.Int64
			left.Store(int64(ops))
			ended := make(chan error, goroutines)
			began := time.Now()
			for i := range goroutines {
				one := loop(all[i%len(all)], key)
				go func() {
					for left.Add(-1) >= 0 {
						if _, err := one(ctx, 1); err != nil {
							ended <- err
							return
						}
					}
					ended <- nil
				}()
			}
			var errs []error
			for range goroutines {
				errs = append(errs, <-ended)
			}
			return time.Since(began), errors.Join(errs...)
		}, nil
	}
}
