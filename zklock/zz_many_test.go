package zklock_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/zkfake"
	"github.com/holdfast-go/holdfast/zklock"
)

// After a reconnect, 16 reads at a time set the watches of 4000 locks at 50 ms a round trip: a break is heard after more than T.
func TestZZManyLocksBreak(t *testing.T) {
	const locks, rtt = 3000, 50 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		e := zkfake.New(zkfake.Config{Latency: func() time.Duration { return rtt / 2 }})
		t.Cleanup(e.Close)
		client := dialWired(t, e, zklock.Options{})
		other := dialWired(t, e, zklock.Options{})
		all := make([]*holdfast.Lock, locks)
		var wg sync.WaitGroup
		for i := range all {
			wg.Go(func() { all[i] = acquire(t, client, fmt.Sprint("k", i)) })
		}
		wg.Wait()
		time.Sleep(time.Second)
		client.Wire.Break()
		time.Sleep(200 * time.Millisecond) // it is back
		var worst time.Duration
		began := time.Now()
		for i := 0; i < locks; i += locks / 20 {
			e.Remove(virtualRoot+fmt.Sprint("/k", i), func(c []string) string { return c[0] })
		}
		lateGrants := 0
		for i := 0; i < locks; i += locks / 20 {
			l := acquire(t, other, fmt.Sprint("k", i))
			if all[i].Err() == nil {
				lateGrants++
			}
			_ = l
		}
		for i := 0; i < locks; i += locks / 20 {
			<-all[i].Done()
			worst = max(worst, time.Since(began))
		}
		alive := 0
		for _, l := range all {
			if l.Err() == nil {
				alive++
			}
		}
		t.Logf("T = %v: the last break was heard after %v; %d granted to others while the first holder believed; %d still alive", virtualSession, worst, lateGrants, alive)
		if worst > virtualSession {
			t.Error("more than T")
		}
	})
}

// Locks that the application keeps after their end keep the zk.Conn of their connection: 1.5 MB and more for each session.
func TestZZKept(t *testing.T) {
	heap := func() uint64 {
		for range 3 {
			runtime.GC()
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc >> 20
	}
	for _, keep := range []bool{false, true} {
		withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
			client := dialWired(t, e, zklock.Options{})
			var kept []*holdfast.Lock
			before := heap()
			for i := range 30 {
				lock := acquire(t, client, fmt.Sprint("k", i))
				if keep {
					kept = append(kept, lock)
				}
				time.Sleep(100 * time.Millisecond)
				if err := lock.Release(t.Context()); err != nil {
					t.Error(err)
				}
				client.Wire.Break()
				time.Sleep(time.Second)
			}
			t.Logf("keep %v: %d MB before, %d MB after 30 connections", keep, before, heap())
			runtime.KeepAlive(kept)
		})
	}
}
