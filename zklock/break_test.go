package zklock_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/zkfake"
	"github.com/holdfast-go/holdfast/zklock"
)

// Z28. A holder hears of a break by its next heartbeats if no event tells it, however many locks it has.
func TestBreakOfOneAmongMany(t *testing.T) {
	withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
		holder, other := dialWired(t, e, zklock.Options{}), dialWired(t, e, zklock.Options{})
		var locks []*holdfast.Lock
		for i := range 12 {
			locks = append(locks, acquire(t, holder, fmt.Sprint(i)))
		}
		holder.LoseEvents(true)
		for _, lock := range locks {
			time.Sleep(virtualSession)
			info, err := other.Inspect(inTime(t), lock.Key())
			if err != nil {
				t.Fatal(err)
			}
			if err := other.Client.Break(inTime(t), info); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			<-lock.Done()
			if late := time.Since(began); late > virtualSession/2 || !errors.Is(lock.Err(), holdfast.ErrBroken) {
				t.Errorf("%s: ended %v after it was broken: %v", lock.Key(), late, lock.Err())
			}
		}
	})
}

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
