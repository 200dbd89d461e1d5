package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"

	"github.com/holdfast-go/holdfast/integration/cmd/bench/report"
)

// observers is how many observe one key in one client.
const observers = 1_000

// crowdOf is a number of observers of one key in one client.
type crowdOf struct {
	mu     sync.Mutex
	told   map[holdfast.Token]int // how many were told last of each holder; 0: of none
	failed chan error
	ended  sync.WaitGroup
	stop   context.CancelFunc
}

func observeBy(ctx context.Context, c *holdfast.Client, key string, n int) *crowdOf {
	o := &crowdOf{told: make(map[holdfast.Token]int), failed: make(chan error, n)}
	ctx, o.stop = context.WithCancel(ctx)
	for range n {
		o.ended.Go(func() {
			first, last := true, holdfast.Token(0)
			for info, err := range c.Observe(ctx, key) {
				if err != nil {
					if ctx.Err() == nil {
						o.failed <- err
					}
					return
				}
				now := holdfast.Token(0)
				if info.Held {
					now = info.Token
				}
				o.mu.Lock()
				if !first {
					o.told[last]--
				}
				o.told[now]++
				o.mu.Unlock()
				first, last = false, now
			}
		})
	}
	return o
}

func (o *crowdOf) close() {
	o.stop()
	o.ended.Wait()
}

// await waits until n observers were told last of a holder, or of none: 0.
func (o *crowdOf) await(ctx context.Context, holder holdfast.Token, n int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, fmt.Errorf("not all observers were told of token %d in a minute", holder))
	defer cancel()
	for {
		o.mu.Lock()
		told := o.told[holder]
		o.mu.Unlock()
		if told == n {
			return nil
		}
		select {
		case err := <-o.failed:
			return err
		default:
		}
		if err := pause(ctx, time.Millisecond); err != nil {
			return err
		}
	}
}

// observing counts what a client that only observes costs the server, on the wire.
func observing(ctx context.Context, e *env, emit func(report.Row)) error {
	proxy, err := faultproxy.StartZooKeeper(e.server.Addr())
	if err != nil {
		return err
	}
	defer proxy.Close()
	looks, err := e.connect(ctx, proxy.Addr())
	if err != nil {
		return err
	}
	defer closeClient(looks.Client)
	holds, err := e.connect(ctx, e.server.Addr())
	if err != nil {
		return err
	}
	defer closeClient(holds.Client)
	key := e.name("observed")
	lock, err := holds.Acquire(ctx, key)
	if err != nil {
		return err
	}
	before, err := e.watches(ctx)
	if err != nil {
		return err
	}
	crowd := observeBy(ctx, looks.Client, key, observers)
	defer crowd.close()
	if err := crowd.await(ctx, lock.Token(), observers); err != nil {
		return err
	}
	after, err := e.watches(ctx)
	if err != nil {
		return err
	}
	emit(report.Judge(fmt.Sprintf("watches of %d observers of a key in one client", observers), "on the server", "one count",
		report.Limit(1, ""), []float64{after - before}))
	var events, reads []float64
	changes := e.times(30, 6)
	count := func(change func() (holdfast.Token, error)) error {
		proxy.ResetCounts()
		token, err := change()
		if err != nil {
			return err
		}
		if err := crowd.await(ctx, token, observers); err != nil {
			return err
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil { // for what should not come
			return err
		}
		events = append(events, float64(proxy.CountKind(faultproxy.ToClient, faultproxy.KindWatchEvent)))
		reads = append(reads, float64(readsOf(proxy)))
		return nil
	}
	for i := range changes {
		if lock, err = e.change(ctx, i, holds.Client, key, lock, count); err != nil {
			return err
		}
	}
	over := fmt.Sprintf("%d changes: hand-offs, releases, and acquisitions", len(events))
	emit(report.Judge(fmt.Sprintf("watch events per change, %d observers in one client", observers), "events", over, report.Limit(1, ""), events))
	emit(report.Judge(fmt.Sprintf("reads per change, %d observers in one client", observers), "requests", over, report.Limit(2, ""), reads))
	return nil
}

// change hands the lock on to one who waits, or releases it and acquires it again.
func (e *env) change(
	ctx context.Context, i int, c *holdfast.Client, key string, lock *holdfast.Lock, count func(func() (holdfast.Token, error)) error,
) (next *holdfast.Lock, err error) {
	if i%2 == 0 {
		got := make(chan error, 1)
		go func() {
			var err error
			next, err = c.Acquire(ctx, key)
			got <- err
		}()
		if err := e.settle(ctx, ourQueue(key), 2); err != nil {
			return nil, err
		}
		return next, count(func() (holdfast.Token, error) {
			if err := lock.Release(ctx); err != nil {
				return 0, err
			}
			if err := <-got; err != nil {
				return 0, err
			}
			return next.Token(), nil
		})
	}
	if err := count(func() (holdfast.Token, error) { return 0, lock.Release(ctx) }); err != nil {
		return nil, err
	}
	err = count(func() (token holdfast.Token, err error) {
		if next, err = c.Acquire(ctx, key); err == nil {
			token = next.Token()
		}
		return token, err
	})
	return next, err
}

// watches is how many the server has, once that does not change.
func (e *env) watches(ctx context.Context) (float64, error) {
	for still, last := 0, -1.0; ; {
		metrics, err := zkserver.Metrics(ctx, e.server.Addr())
		if err != nil {
			return 0, err
		}
		now := metrics["zk_watch_count"]
		if still++; now != last {
			still, last = 0, now
		}
		if still == 10 {
			return now, nil
		}
		if err := pause(ctx, 10*time.Millisecond); err != nil {
			return 0, err
		}
	}
}

// readsOf is the number of requests so far that one server answers alone.
func readsOf(proxy *faultproxy.Proxy) int {
	total := 0
	for _, op := range []faultproxy.Op{
		faultproxy.OpExists, faultproxy.OpGetData, faultproxy.OpGetChildren, faultproxy.OpGetChildren2, faultproxy.OpMultiRead,
		faultproxy.OpGetACL, faultproxy.OpAddWatch, faultproxy.OpSetWatches, faultproxy.OpSetWatches2, faultproxy.OpSync,
	} {
		total += proxy.Count(faultproxy.ToServer, op)
	}
	return total
}

// polling counts the reads of a client that only observes.
func polling(ctx context.Context, e *dynamoEnv, emit func(report.Row)) error {
	const poll, periods = 200 * time.Millisecond, 10
	holder, err := e.connect(ctx, dynamolock.Options{})
	if err != nil {
		return err
	}
	defer closeClient(holder.Client)
	key := e.name("observed")
	lock, err := holder.Acquire(ctx, key)
	if err != nil {
		return err
	}
	w, err := e.connectWired(ctx, dynamolock.Options{Poll: poll})
	if err != nil {
		return err
	}
	defer w.close()
	crowd := observeBy(ctx, w.Client.Client, key, observers)
	defer crowd.close()
	if err := crowd.await(ctx, lock.Token(), observers); err != nil {
		return err
	}
	var sent []float64
	windows := e.times(4, 1)
	for range windows {
		n, err := w.perPeriod(ctx, "", poll, periods)
		if err != nil {
			return err
		}
		sent = append(sent, n)
	}
	emit(report.Judge(fmt.Sprintf("DynamoDB reads per poll period, %d observers of a key in one client", observers),
		"requests", fmt.Sprintf("%d times %d periods of %v", windows, periods, poll), report.Limit(1, ""), sent))
	return nil
}
