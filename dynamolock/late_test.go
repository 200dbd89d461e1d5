package dynamolock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

// A heartbeat that arrives a second time, after later ones, does not restore the guid
// that an observer saw a lease ago: the observer would take over a live lock.
func TestHeartbeatArrivesTwice(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a, b := h.pair(t)
		beats := make(chan *dynamodb.UpdateItemInput, 1)
		a.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
			if purposeOf(op) == beat {
				select {
				case beats <- op.Input.(*dynamodb.UpdateItemInput):
				default: // not the first
				}
			}
			return dynamofake.Fault{}
		})
		lock := a.hold(t, "k")
		first := <-beats
		time.Sleep(100 * time.Millisecond)
		if _, err := b.TryAcquire(t.Context(), "k"); err == nil {
			t.Fatal("granted")
		}
		time.Sleep(lease)                                      // more heartbeats
		_, err := h.db.Client().UpdateItem(t.Context(), first) // the copy
		var refused *types.ConditionalCheckFailedException
		if !errors.As(err, &refused) {
			t.Errorf("the copy of the first heartbeat: %v, want that its condition fails", err)
		}
		next, err := b.TryAcquire(t.Context(), "k")
		if err == nil && lock.Err() == nil {
			t.Errorf("two holders: %v with %v left, and %v", lock.Token(), time.Until(lock.Deadline()), next.Token())
		}
	})
}

// A broken lock stays broken, even if the first request of its own acquisition arrives
// afterwards and takes the key: that has another token.
func TestLateRequestAfterBreakNow(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a, b := h.pair(t)
		a.conn.SetFault(on(acquire, 1, dynamofake.DeliverLate(time.Second, dynamofake.Reset())))
		lock := a.hold(t, "k")
		b.breakIt(t, "k", true)
		next := b.hold(t, "k")
		if err := next.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * lease)
		if lock.Err() == nil {
			t.Errorf("token %d is still valid for its holder after %d; Verify: %v", lock.Token(), next.Token(), lock.Verify(t.Context()))
		}
		if err := lock.Release(t.Context()); !errors.Is(err, holdfast.ErrLost) {
			t.Errorf("Release = %v, want ErrLost", err)
		}
		if i := h.item("k"); leaseOf(i) != 1 {
			t.Errorf("held for nobody: %v", i)
		}
	})
}

// If the first request of an acquisition takes the key after the lock was broken, the
// client releases it, as it does after a release.
func TestLateRequestAfterBreak(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a, b := h.pair(t)
		a.conn.SetFault(on(acquire, 1, dynamofake.DeliverLate(lease/2, dynamofake.Reset())))
		lock := a.hold(t, "k")
		b.breakIt(t, "k", false)
		<-lock.Done()
		time.Sleep(3*lease/4 + time.Second) // a worker asks four times in a lease, at least
		if i := h.item("k"); leaseOf(i) != 1 {
			t.Errorf("held for nobody: %v", i)
		}
		if d := took(func() { b.hold(t, "k") }); d > lease/2 {
			t.Errorf("the next one waits for %v", d)
		}
	})
}

// Two requests without a reply may both arrive late: undoing the first is not enough.
func TestTwoLateRequests(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a, b := h.pair(t)
		late := []time.Duration{lease / 2, 2 * time.Second}
		a.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
			if purposeOf(op) != acquire || len(late) == 0 {
				return dynamofake.Fault{}
			}
			d := late[0]
			late = late[1:]
			return dynamofake.DeliverLate(d, dynamofake.Reset())
		})
		if _, err := a.TryAcquire(t.Context(), "k", holdfast.WithRetry(holdfast.Retry{Attempts: 2})); err == nil {
			t.Fatal("granted")
		}
		time.Sleep(lease / 4)
		if len(late) != 0 {
			t.Fatal(late)
		}
		if err := b.hold(t, "k").Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(lease/2 + time.Second)
		if i := h.item("k"); leaseOf(i) != 1 {
			t.Errorf("held for nobody: %v", i)
		}
		if d := took(func() { b.hold(t, "k") }); d > lease/2 {
			t.Errorf("the next one waits for %v", d)
		}
	})
}

// Like TestAcquireSentTwice, but the caller has given up before the reply: the item that
// the write has met is its own, and is released.
func TestSentTwiceAndGivenUp(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		c, _ := h.odd(t, &odd{twice: true})
		defer c.Close(t.Context())
		b := h.client(t)
		defer b.close(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := c.TryAcquire(ctx, "k"); err == nil {
			t.Fatal("granted")
		}
		time.Sleep(lease / 2)
		if i := h.item("k"); i != nil && leaseOf(i) != 1 {
			t.Errorf("held for nobody: %v", i)
		}
	})
}
