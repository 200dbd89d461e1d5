package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/internal/zktimes"
	"github.com/holdfast-go/holdfast/zklock"

	"github.com/holdfast-go/holdfast/integration/cmd/bench/report"
)

// traffic counts frames with a parsing proxy.
func traffic(ctx context.Context, e *env, emit func(report.Row)) error {
	proxy, err := faultproxy.StartZooKeeper(e.server.Addr())
	if err != nil {
		return err
	}
	defer proxy.Close()
	if err := wakeUps(ctx, e, proxy, emit); err != nil {
		return err
	}
	return liveness(ctx, e, proxy, emit)
}

// wakeUps counts, per release, the watch events to sessions other than the
// releasing one, whose own watch on its node fires too.
func wakeUps(ctx context.Context, e *env, proxy *faultproxy.Proxy, emit func(report.Row)) error {
	var all []*clients
	defer func() {
		for _, cs := range all {
			cs.close()
		}
	}()
	for range handoffSessions {
		cs, err := e.connect(ctx, proxy.Addr())
		if err != nil {
			return err
		}
		all = append(all, cs)
	}
	key := e.name("wakeups")
	contends, stop := context.WithCancel(ctx)
	defer stop()
	l := newLine(contends, e, all[0].peer, root+"/"+key, manyWaiters, func(ctx context.Context, i int) (func() error, error) {
		lock, err := all[i%len(all)].ours.Acquire(ctx, key)
		if err != nil {
			return nil, err
		}
		return func() error { return lock.Release(ctx) }, nil
	})
	w := newWatcher(l.parent + "/")
	proxy.SetFilter(w.see)
	defer proxy.SetFilter(nil)
	if err := l.fillInTurn(ctx); err != nil {
		return err
	}
	releases := e.times(30, 5)
	var sample []float64
	for range releases {
		w.reset()
		l.allowed.Store(0)
		if err := l.release(); err != nil {
			return err
		}
		if err := l.await(ctx); err != nil {
			return err
		}
		l.inside--
		time.Sleep(50 * time.Millisecond) // for events that should not come
		sample = append(sample, float64(w.toOthers()))
	}
	emit(report.Judge(fmt.Sprintf("watch events to waiters per release, %d waiters", manyWaiters),
		"events", fmt.Sprintf("%d releases, %d sessions", releases, len(all)), report.Limit(1, ""), sample))
	return nil
}

// watcher counts watch events on the nodes of a lock.
type watcher struct {
	prefix string

	mu      sync.Mutex
	deleter map[string]int // the connection that deleted a node
	events  int
}

func newWatcher(prefix string) *watcher {
	return &watcher{prefix: prefix, deleter: make(map[string]int)}
}

func (w *watcher) see(f faultproxy.Frame) faultproxy.Verdict {
	if len(f.Path) <= len(w.prefix) || f.Path[:len(w.prefix)] != w.prefix {
		return faultproxy.Pass
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case f.Kind == faultproxy.KindRequest && f.Op == faultproxy.OpDelete:
		w.deleter[f.Path] = f.Conn
	case f.Kind == faultproxy.KindWatchEvent && w.deleter[f.Path] != f.Conn:
		w.events++
	}
	return faultproxy.Pass
}

func (w *watcher) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = 0
}

func (w *watcher) toOthers() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.events
}

// liveness counts the writes of a session that only holds many locks.
func liveness(ctx context.Context, e *env, proxy *faultproxy.Proxy, emit func(report.Row)) error {
	const timeout = 6 * time.Second
	ours, err := zklock.Dial(ctx, []string{proxy.Addr()}, &zklock.Options{Root: root, Owner: owner, SessionTimeout: timeout})
	if err != nil {
		return err
	}
	defer ours.Close(context.WithoutCancel(ctx))
	period := zktimes.Of(ours.SessionTimeout(), 0, 0).Heartbeat
	var locks []*holdfast.Lock
	if locks, err = holdMany(ctx, ours.Client, e.name("lively"), manyHeld); err != nil {
		return err
	}
	time.Sleep(time.Second)
	windows := e.times(7, 1)
	const periods = 5
	var sample []float64
	for range windows {
		proxy.ResetCounts()
		time.Sleep(periods * period)
		sample = append(sample, float64(writes(proxy))/periods)
	}
	for _, lock := range locks {
		if err := lock.Err(); err != nil {
			return err
		}
	}
	emit(report.Judge(fmt.Sprintf("writes per heartbeat period while %d locks are held", manyHeld),
		"requests", fmt.Sprintf("%d times %d periods of %v", windows, periods, period), report.Limit(1, ""), sample))
	return nil
}

// writes is the number of requests so far that go through the quorum.
func writes(proxy *faultproxy.Proxy) int {
	total := 0
	for _, op := range []faultproxy.Op{
		faultproxy.OpCreate, faultproxy.OpCreate2, faultproxy.OpCreateContainer, faultproxy.OpCreateTTL,
		faultproxy.OpDelete, faultproxy.OpSetData, faultproxy.OpSetACL, faultproxy.OpMulti, faultproxy.OpSync,
	} {
		total += proxy.Count(faultproxy.ToServer, op)
	}
	return total
}
