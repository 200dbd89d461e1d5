package zklock_test

import (
	"fmt"
	"slices"
	"strings"
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

// Z48. The first who waits for a permit has missed that one is free.
func TestPermitEventLost(t *testing.T) {
	for _, names := range []zklock.Names{zklock.CuratorNames, zklock.KazooNames} {
		t.Run(names.String(), func(t *testing.T) {
			withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
				holder, waiter := dialWired(t, e, zklock.Options{Names: names}), dialWired(t, e, zklock.Options{Names: names})
				lock, err := holder.Acquire(t.Context(), "k", holdfast.WithLimit(1))
				if err != nil {
					t.Fatal(err)
				}
				granted := make(chan error, 1)
				go func() {
					_, err := waiter.Acquire(inTime(t), "k", holdfast.WithLimit(1))
					granted <- err
				}()
				time.Sleep(time.Second)
				waiter.LoseEvents(true)
				if err := lock.Release(t.Context()); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				waiter.LoseEvents(false)
				if err := <-granted; err != nil {
					t.Error(err)
				}
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

// Z48. Many have waited long when the connection is lost. What happened meanwhile is found by the look at everything that follows each
// connection: that takes no further one, though some ask before it is over. Where all events are lost, it takes one.
func TestOneConnectionForMany(t *testing.T) {
	const waiters = 1000
	for name, loses := range map[string]bool{"the connection is lost": false, "all events are lost": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := zkfake.New(zkfake.Config{Latency: func() time.Duration { return 10 * time.Millisecond }})
				t.Cleanup(e.Close)
				holder, waiter := dialWired(t, e, zklock.Options{}), dialWired(t, e, zklock.Options{})
				locks, done, granted := make([]*holdfast.Lock, waiters), make(chan error, waiters), make(chan error, waiters)
				all := func(from <-chan error) {
					t.Helper()
					for range waiters {
						if err := <-from; err != nil {
							t.Error(err)
						}
					}
				}
				key := func(i int) string { return fmt.Sprint(strings.Repeat("k", 300), i) } // go-zookeeper sets watches again in several parts
				for i := range waiters {
					go func() {
						var err error
						locks[i], err = holder.Acquire(t.Context(), key(i))
						done <- err
					}()
				}
				all(done)
				for i := range waiters {
					go func() {
						_, err := waiter.Acquire(t.Context(), key(i))
						granted <- err
					}()
				}
				time.Sleep(2*virtualSession - 500*time.Millisecond)
				if loses {
					waiter.LoseEvents(true)
				} else {
					waiter.Refuse(true)
					waiter.Break()
				}
				for _, lock := range locks {
					go func() { done <- lock.Release(t.Context()) }()
				}
				all(done)
				time.Sleep(time.Second)
				waiter.Refuse(false)
				dials := waiter.dials.Load()
				all(granted)
				if more := waiter.dials.Load() - dials; more > 1 {
					t.Errorf("%d connections", more)
				}
			})
		})
	}
}
