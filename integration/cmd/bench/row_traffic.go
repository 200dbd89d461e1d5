package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/internal/zktimes"
	"github.com/holdfast-go/holdfast/zklock"

	"github.com/holdfast-go/holdfast/integration/cmd/bench/report"
)

// wakeUps counts, per release, the watch events to sessions other than the
// releasing one, whose own watch on its node fires too: to the next holder, and to
// the one after it, which looks ahead.
func wakeUps(ctx context.Context, e *env, emit func(report.Row)) error {
	proxy, err := faultproxy.StartZooKeeper(e.server.Addr())
	if err != nil {
		return err
	}
	defer proxy.Close()
	var all []*client
	for range handoffSessions {
		c, err := e.connect(ctx, proxy.Addr())
		if err != nil {
			return err
		}
		defer closeClient(c.Client)
		all = append(all, &client{take: takeOf(c.Client), queue: ourQueue})
	}
	contends, stop := context.WithCancel(ctx)
	defer stop()
	l := newLine(contends, e, all, e.name("wakeups"), manyWaiters)
	w := &watcher{prefix: ourQueue(l.key) + "/", deleter: make(map[string]int)}
	proxy.SetFilter(w.see)
	if err := l.fillInTurn(ctx); err != nil {
		return err
	}
	releases := e.times(30, 5)
	var sample []float64
	for range releases {
		before := w.count()
		l.allowed.Store(0)
		if err := l.release(); err != nil {
			return err
		}
		if err := l.await(ctx); err != nil {
			return err
		}
		l.inside--
		time.Sleep(50 * time.Millisecond) // for events that should not come
		sample = append(sample, float64(w.count()-before))
	}
	emit(report.Judge(fmt.Sprintf("watch events to waiters per release, %d waiters", manyWaiters),
		"events", fmt.Sprintf("%d releases, %d sessions", releases, len(all)), report.Limit(2, ""), sample))
	return nil
}

// watcher counts watch events on the nodes of a lock.
type watcher struct {
	prefix string

	mu      sync.Mutex
	deleter map[string]int // the connection that deleted a node
	events  int
}

func (w *watcher) see(f faultproxy.Frame) faultproxy.Verdict {
	if !strings.HasPrefix(f.Path, w.prefix) {
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

// count is the number of events so far to sessions other than the deleting one.
func (w *watcher) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.events
}

// liveness counts the writes of a session that only holds many locks.
func liveness(ctx context.Context, e *env, emit func(report.Row)) error {
	proxy, err := faultproxy.StartZooKeeper(e.server.Addr())
	if err != nil {
		return err
	}
	defer proxy.Close()
	const timeout = 6 * time.Second
	ours, err := zklock.Dial(ctx, []string{proxy.Addr()}, &zklock.Options{Root: root, Owner: owner, SessionTimeout: timeout})
	if err != nil {
		return err
	}
	defer ours.Close(context.WithoutCancel(ctx))
	period := zktimes.Of(ours.SessionTimeout(), 0, 0, 0).Heartbeat
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

// writes is the number of requests so far that the servers agree on and log, each as a transaction. A sync is none: it waits for
// those before it.
func writes(proxy *faultproxy.Proxy) int {
	total := 0
	for _, op := range []faultproxy.Op{
		faultproxy.OpCreate, faultproxy.OpCreate2, faultproxy.OpCreateContainer, faultproxy.OpCreateTTL,
		faultproxy.OpDelete, faultproxy.OpSetData, faultproxy.OpSetACL, faultproxy.OpMulti,
	} {
		total += proxy.Count(faultproxy.ToServer, op)
	}
	return total
}
