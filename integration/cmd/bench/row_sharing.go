package main

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/zklock"

	"github.com/holdfast-go/holdfast/integration/cmd/bench/report"
)

// readersServed counts what the server tells and is asked when a writer goes for whom readers wait, each on a session of its own.
// The writer does not use the proxy: its watch on its own node, which fires too, is not counted.
func readersServed(ctx context.Context, e *env, emit func(report.Row)) error {
	proxy, err := faultproxy.StartZooKeeper(e.server.Addr())
	if err != nil {
		return err
	}
	defer proxy.Close()
	writer, err := e.connect(ctx, e.server.Addr())
	if err != nil {
		return err
	}
	defer closeClient(writer.Client)
	readers := make([]*zklock.Client, e.times(100, 10))
	for i := range readers {
		if readers[i], err = e.connect(ctx, proxy.Addr()); err != nil {
			return err
		}
		defer closeClient(readers[i].Client)
	}
	key := e.name("served")
	var events, lists []float64
	rounds := e.times(12, 3)
	for range rounds {
		locks, err := e.serve(ctx, proxy, writer, readers, key)
		if err != nil {
			return err
		}
		events = append(events, float64(proxy.CountKind(faultproxy.ToClient, faultproxy.KindWatchEvent))/float64(len(readers)))
		lists = append(lists, float64(proxy.Count(faultproxy.ToServer, faultproxy.OpGetChildren)+proxy.Count(faultproxy.ToServer, faultproxy.OpGetChildren2)))
		for _, lock := range locks { // the next round begins with nobody
			if err := lock.Release(ctx); err != nil {
				return err
			}
		}
	}
	name, over := fmt.Sprintf("1 writer, then %d readers served", len(readers)), fmt.Sprintf("%d releases, a session for each reader", rounds)
	emit(report.Judge(name+", watch events", "events per reader", over, report.Limit(1, ""), events))
	emit(report.Judge(name+", lists of the queue", "requests of all readers", over, report.Limit(0, ""), lists))
	return nil
}

// serve has readers wait for a writer, and returns their locks when it has gone. The proxy has counted from the release on.
func (e *env) serve(
	ctx context.Context, proxy *faultproxy.Proxy, writer *zklock.Client, readers []*zklock.Client, key string,
) ([]*holdfast.Lock, error) {
	first, err := writer.Acquire(ctx, key)
	if err != nil {
		return nil, err
	}
	type grant struct {
		lock *holdfast.Lock
		err  error
	}
	granted := make(chan grant, len(readers))
	for _, r := range readers {
		go func() {
			lock, err := r.Acquire(ctx, key, holdfast.WithShared())
			granted <- grant{lock, err}
		}()
	}
	if err := e.settle(ctx, ourQueue(key), len(readers)+1); err != nil {
		return nil, err
	}
	proxy.ResetCounts()
	if err := first.Release(ctx); err != nil {
		return nil, err
	}
	var locks []*holdfast.Lock
	for range readers {
		g := <-granted
		if g.err != nil {
			return nil, g.err
		}
		locks = append(locks, g.lock)
	}
	return locks, pause(ctx, 50*time.Millisecond) // for events that should not come
}

// permitWrites counts the writes of a permit that nobody else wants.
func permitWrites(ctx context.Context, e *env, emit func(report.Row)) error {
	proxy, err := faultproxy.StartZooKeeper(e.server.Addr())
	if err != nil {
		return err
	}
	defer proxy.Close()
	c, err := e.connect(ctx, proxy.Addr())
	if err != nil {
		return err
	}
	defer closeClient(c.Client)
	key := e.name("permit")
	var acquires, releases []float64
	holds := e.times(100, 20)
	for i := range holds + 1 {
		proxy.ResetCounts()
		lock, err := c.Acquire(ctx, key, holdfast.WithLimit(permits))
		if err != nil {
			return err
		}
		acquired := writes(proxy)
		proxy.ResetCounts()
		if err := lock.Release(ctx); err != nil {
			return err
		}
		if n := proxy.Count(faultproxy.ToServer, faultproxy.OpMulti); n > 0 {
			return fmt.Errorf("%d transactions, which hide how much they write", n)
		}
		if i > 0 { // the first makes the semaphore
			acquires, releases = append(acquires, float64(acquired)), append(releases, float64(writes(proxy)))
		}
	}
	over := fmt.Sprintf("%d permits", holds)
	emit(report.Judge("ZooKeeper writes per uncontended permit, to acquire it", "requests", over, report.Limit(1, ""), acquires))
	emit(report.Judge("ZooKeeper writes per uncontended permit, to release it", "requests", over, report.Limit(1, ""), releases))
	return nil
}
