package zklock_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/zkfake"
	"github.com/holdfast-go/holdfast/zklock"
)

// Z48. If an event was lost by which a waiter would have had its turn, that of its own end may have been lost with it.
func TestEventsLostBeforeAGrant(t *testing.T) {
	for name, ends := range map[string]bool{"one connection": true, "all": false} {
		t.Run(name, func(t *testing.T) {
			withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
				holder, waiter, next := dialWired(t, e, zklock.Options{}), dialWired(t, e, zklock.Options{}), dialWired(t, e, zklock.Options{})
				acquire(t, waiter, "another") // so that it has writes to prove its session by
				lock := acquire(t, holder, "k")
				granted := make(chan *holdfast.Lock, 1)
				go func() { granted <- acquire(t, waiter, "k") }()
				time.Sleep(time.Second)
				waiter.LoseEvents(true)
				queue := e.Children(virtualRoot + "/k")
				if len(queue) != 2 {
					t.Fatalf("the queue is %q", queue)
				}
				slices.SortFunc(queue, func(a, b string) int { return strings.Compare(a[len(a)-10:], b[len(b)-10:]) })
				if err := holder.Conn().Delete(virtualRoot+"/k/"+queue[1], -1); err != nil {
					t.Fatal(err)
				}
				if err := lock.Release(t.Context()); err != nil {
					t.Fatal(err)
				}
				lock = acquire(t, next, "k")
				for range 10 * virtualSession / time.Millisecond {
					time.Sleep(time.Millisecond)
					if ends && waiter.dials.Load() > 1 {
						waiter.LoseEvents(false)
					}
				}
				if len(granted) > 0 {
					t.Fatal("two hold the key")
				}
				if err := lock.Release(t.Context()); err != nil {
					t.Fatal(err)
				}
				<-granted
			})
		})
	}
}

// Z36. An observer has missed what only a list, or the creation of a znode, tells.
func TestObserverEventLost(t *testing.T) {
	shared, permit := []holdfast.Option{holdfast.WithShared()}, []holdfast.Option{holdfast.WithLimit(2)}
	for name, c := range map[string]struct{ first, then []holdfast.Option }{
		"the first holder": {}, "a second reader": {shared, shared}, "a second permit": {permit, permit},
	} {
		t.Run(name, func(t *testing.T) {
			withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
				holder, observer := dialWired(t, e, zklock.Options{}), dialWired(t, e, zklock.Options{})
				if c.first != nil {
					if _, err := holder.Acquire(t.Context(), "k", c.first...); err != nil {
						t.Fatal(err)
					}
				}
				told := observed(t, observer, "k")
				time.Sleep(time.Second)
				before := len(told())
				observer.LoseEvents(true)
				if _, err := holder.Acquire(t.Context(), "k", append(c.then, holdfast.WithOwner("other"))...); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				observer.LoseEvents(false)
				time.Sleep(100 * virtualSession)
				if len(told()) == before {
					t.Error("it is never told")
				}
			})
		})
	}
}

// Z36. The event was lost that tells an observation who shares a key. It ends, and the next one finds its watch.
func TestObserve_OldWatchMissedAnEvent_TellsTheHolders(t *testing.T) {
	for name, option := range map[string]holdfast.Option{"readers": holdfast.WithShared(), "permits": holdfast.WithLimit(2)} {
		t.Run(name, func(t *testing.T) {
			withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
				holder, observer := dialWired(t, e, zklock.Options{}), dialWired(t, e, zklock.Options{})
				for want := range 2 {
					observer.LoseEvents(true)
					if _, err := holder.Acquire(t.Context(), "k", option); err != nil {
						t.Fatal(err)
					}
					observer.LoseEvents(false)
					for info, err := range observer.Observe(inTime(t), "k") {
						if n := len(slices.Collect(info.Each())); err != nil || n != 1+want {
							t.Errorf("told %d holders of %d: %v", n, 1+want, err)
						}
						break
					}
					time.Sleep(time.Second)
				}
			})
		})
	}
}

// TestWait_EventLostAfterALongWait_AsksInTime: a wait that begins after a long one asks the leader as soon as the first one did.
func TestWait_EventLostAfterALongWait_AsksInTime(t *testing.T) {
	withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
		holder, waiter := dialWired(t, e, zklock.Options{}), dialWired(t, e, zklock.Options{})
		locks, granted := make(chan *holdfast.Lock, 3), make(chan *holdfast.Lock)
		for range cap(locks) { // so many that the waiter lists the queue once more
			go func() { locks <- acquire(t, holder, "k") }()
			time.Sleep(time.Second)
		}
		go func() { granted <- acquire(t, waiter, "k") }()
		time.Sleep(60 * virtualSession)
		for i := range cap(locks) {
			waiter.LoseEvents(i == cap(locks)-1)
			if err := (<-locks).Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		waiter.LoseEvents(false)
		began := time.Now()
		if <-granted; time.Since(began) > 3*virtualSession {
			t.Errorf("granted %v after the release", time.Since(began))
		}
	})
}

// all does something n times at once.
func all(n int, do func(i int)) {
	var done sync.WaitGroup
	for i := range n {
		done.Go(func() { do(i) })
	}
	done.Wait()
}

// A connection that comes and goes costs one look at what is watched, and not one for each time.
func TestFlappingConnection(t *testing.T) {
	const waiters = 1500
	synctest.Test(t, func(t *testing.T) {
		e := zkfake.New(zkfake.Config{Latency: func() time.Duration { return 20 * time.Millisecond }})
		t.Cleanup(e.Close)
		holder, waiter := dialWired(t, e, zklock.Options{}), dialWired(t, e, zklock.Options{})
		all(waiters, func(i int) { acquire(t, holder, fmt.Sprint(i)) })
		ctx, cancel := context.WithCancel(t.Context())
		var over sync.WaitGroup
		for i := range waiters {
			over.Go(func() { _, _ = waiter.Acquire(ctx, fmt.Sprint(i)) })
		}
		time.Sleep(virtualSession)
		for range 10 {
			waiter.Break()
			time.Sleep(700 * time.Millisecond)
		}
		before := waiter.requests.Load()
		time.Sleep(virtualSession)
		if n := waiter.requests.Load() - before; n > 3*waiters { // its own znodes, too
			t.Errorf("%d requests after the last connection, for %d watches", n, waiters)
		}
		cancel()
		over.Wait()
	})
}

// Z14. A server has diverged, and all addresses lead there. A client that waits for many znodes that only this server shows leaves it now
// and then.
func TestDivergedForMany(t *testing.T) {
	for _, waiters := range []int{1, 30, 300} {
		synctest.Test(t, func(t *testing.T) {
			e := zkfake.New(zkfake.Config{Members: 3, Latency: func() time.Duration { return 10 * time.Millisecond }})
			t.Cleanup(e.Close)
			follower := (e.Leader() + 1) % 3
			holder, waiter := dialMember(t, e, e.Leader(), zklock.Options{}), dialMember(t, e, follower, zklock.Options{})
			mine := acquire(t, waiter, "mine")
			all(waiters, func(i int) { acquire(t, holder, fmt.Sprint(i)) })
			diverge := e.Keep(follower, virtualRoot)
			if err := holder.Client.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			diverge()
			ctx, cancel := context.WithCancel(t.Context())
			var over sync.WaitGroup
			for i := range waiters {
				over.Go(func() { _, _ = waiter.Acquire(ctx, fmt.Sprint(i)) })
			}
			time.Sleep(virtualSession)
			const timeouts = 10
			dials, requests := waiter.dials.Load(), waiter.requests.Load()
			time.Sleep(timeouts * virtualSession)
			dials, requests = waiter.dials.Load()-dials, waiter.requests.Load()-requests
			if dials == 0 || dials > timeouts+1 || requests > int64(timeouts*(20+20*waiters)) {
				t.Errorf("%d connections and %d requests in %d session timeouts, for %d waiters", dials, requests, timeouts, waiters)
			}
			if err := mine.Err(); err != nil {
				t.Error(err)
			}
			cancel()
			over.Wait()
		})
	}
}

// A question that is asked while no server can be reached does not keep Close waiting.
func TestCloseWhileAsking(t *testing.T) {
	withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
		client, other := dialWired(t, e, zklock.Options{}), dialWired(t, e, zklock.Options{})
		acquire(t, other, "k")
		go func() {
			for range client.Observe(t.Context(), "k") { // until it is closed
			}
		}()
		time.Sleep(time.Second)
		client.Refuse(true)
		client.Break()
		time.Sleep(50 * virtualSession)
		closed := make(chan error, 1)
		go func() { closed <- client.Client.Close(inTime(t)) }()
		select {
		case <-closed:
		case <-time.After(3 * virtualSession):
			t.Error("Close does not return")
			client.Refuse(false)
		}
	})
}
