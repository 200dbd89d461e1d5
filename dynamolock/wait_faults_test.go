package dynamolock_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

// Many wait for a key when writes begin to fail. When they succeed again, one of them
// writes: what was refused needs no answer, so the others need not write again.
func TestWaitersAfterThrottling(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		b := h.client(t)
		b.conn.SetFault(always(dynamofake.Fail(dynamofake.Throttled())))
		const waiters = 50
		granted := make(chan *holdfast.Lock)
		for range waiters {
			go func() {
				lock, err := b.Acquire(t.Context(), "k")
				if err != nil {
					t.Error(err)
				}
				granted <- lock
			}()
		}
		time.Sleep(5 * poll)
		b.conn.SetFault(nil)
		b.conn.ResetCounts()
		lock := <-granted
		time.Sleep(lease)
		if n := b.conn.Calls()["UpdateItem"]; n > 10 {
			t.Errorf("%d writes", n)
		}
		for range waiters - 1 {
			mustRelease(t, lock)
			lock = <-granted
		}
		mustRelease(t, lock)
	})
}

// A waiter whose write got no answer writes again, also after another one was refused: the
// item may be its own.
func TestWaiterWithAnUnansweredWrite(t *testing.T) {
	for name, held := range map[string]bool{"at first": false, "after a wait": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
				b := h.client(t)
				unanswered, refused, patience := int64(1), int64(3), lease/2
				if held { // the first write tells who has it
					h.set("k", npm("7", "20000", "g"))
					time.Sleep(h.db.Lag) // else a poll may find the key free, and one more write would be refused
					unanswered, refused, patience = 2, 4, lease+lease/2
				}
				var sent atomic.Int64
				b.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
					if purposeOf(op) == acquire {
						switch sent.Add(1) {
						case unanswered:
							return dynamofake.LoseReply(nil)
						case refused:
							return dynamofake.Fail(dynamofake.Throttled())
						}
					}
					return dynamofake.Fault{}
				})
				first := make(chan error)
				go func() {
					lock, err := b.Acquire(within(t, patience), "k")
					if err == nil {
						err = lock.Release(t.Context())
					}
					first <- err
				}()
				synctest.Wait()
				second := b.waits(t, "k")
				if err := <-first; err != nil {
					t.Error(err)
				}
				mustRelease(t, <-second)
			})
		})
	}
}
