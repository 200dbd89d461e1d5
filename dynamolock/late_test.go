package dynamolock_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver/drivertest"
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

// The first write of an acquisition, which was repeated for want of a reply, arrives when the lock is over or the
// call was given up. It is refused, or the client undoes it: it leaves the key held by nobody.
func TestLateRequests(t *testing.T) {
	type test struct {
		late  []time.Duration // by which the first writes arrive late
		after time.Duration   // when the last has arrived, and has been undone
		use   func(t *testing.T, a, b *client) (last holdfast.Token)
	}
	forEach(t, map[string]test{
		"released": {[]time.Duration{lease / 2}, lease / 2, func(t *testing.T, a, _ *client) holdfast.Token {
			lock := a.hold(t, "k")
			mustRelease(t, lock)
			return lock.Token()
		}},
		"released after heartbeats": {[]time.Duration{lease * 3 / 2}, lease / 2, func(t *testing.T, a, _ *client) holdfast.Token {
			lock := a.hold(t, "k")
			time.Sleep(lease)
			mustRelease(t, lock)
			return lock.Token()
		}},
		// ... whose guid hides the first.
		"another holder in between": {[]time.Duration{time.Second}, lease, func(t *testing.T, a, b *client) holdfast.Token {
			mustRelease(t, a.hold(t, "k"))
			mustRelease(t, b.hold(t, "k"))
			return 0
		}},
		// A worker asks four times in a lease, at least.
		"broken": {[]time.Duration{lease / 2}, 3*lease/4 + time.Second, func(t *testing.T, a, b *client) holdfast.Token {
			lock := a.hold(t, "k")
			b.breakIt(t, "k", false)
			<-lock.Done()
			return 0
		}},
		// The lock stays broken: what takes the key for it has another token.
		"broken at once": {[]time.Duration{time.Second}, 0, func(t *testing.T, a, b *client) holdfast.Token {
			lock := a.hold(t, "k")
			b.breakIt(t, "k", true)
			mustRelease(t, b.hold(t, "k"))
			time.Sleep(5 * lease)
			if err := lock.Err(); err == nil {
				t.Errorf("token %d is still valid for its holder", lock.Token())
			}
			if err := lock.Release(t.Context()); !errors.Is(err, holdfast.ErrLost) {
				t.Errorf("Release = %v, want ErrLost", err)
			}
			return 0
		}},
		// To undo the first is not enough.
		"two, and given up": {[]time.Duration{lease / 2, 2 * time.Second}, lease/2 + time.Second, func(t *testing.T, a, b *client) holdfast.Token {
			if _, err := a.TryAcquire(t.Context(), "k", holdfast.WithRetry(holdfast.Retry{Attempts: 2})); err == nil {
				t.Fatal("granted")
			}
			time.Sleep(lease / 4)
			mustRelease(t, b.hold(t, "k"))
			return 0
		}},
	}, func(t *testing.T, h *harness, c test) {
		a, b := h.pair(t)
		a.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
			if purposeOf(op) != acquire || len(c.late) == 0 {
				return dynamofake.Fault{}
			}
			d := c.late[0]
			c.late = c.late[1:]
			return dynamofake.DeliverLate(d, dynamofake.Reset())
		})
		last := c.use(t, a, b)
		time.Sleep(c.after)
		if i := h.item("k"); len(c.late) > 0 || leaseOf(i) != 1 || last != 0 && tokenOf(i) != last {
			t.Errorf("held by nobody: %v", i)
		}
		if d := took(func() { b.hold(t, "k") }); d > lease/2 {
			t.Errorf("the next one waits for %v", d)
		}
	})
}

// odd is an API behind a wrapper, or of a server that returns less.
type odd struct {
	dynamolock.API
	twice  bool // sends each write twice, and returns the second reply
	silent bool // does not return the item on which a condition failed
	refuse item // refuses each write because of this item
	writes atomic.Int32
}

func (o *odd) UpdateItem(
	ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options),
) (*dynamodb.UpdateItemOutput, error) {
	o.writes.Add(1)
	if o.refuse != nil {
		return nil, &types.ConditionalCheckFailedException{Item: o.refuse}
	}
	if o.twice {
		_, _ = o.API.UpdateItem(ctx, in, opts...)
	}
	out, err := o.API.UpdateItem(ctx, in, opts...)
	var failed *types.ConditionalCheckFailedException
	if o.silent && errors.As(err, &failed) {
		failed.Item = nil
	}
	return out, err
}

// odd returns a client of such an API.
func (h *harness) odd(t *testing.T, api *odd) *client {
	t.Helper()
	return h.clientOn(t, &drivertest.Clock{}, func(conn *dynamofake.Client) dynamolock.API {
		api.API = conn
		return api
	})
}

// A release that was refused, even for no readable reason, was not carried out: the lock had been lost.
func TestRefusedReleaseIsNotUnanswered(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		c, b := h.odd(t, &odd{silent: true}), h.client(t)
		lock := c.hold(t, "k")
		b.breakIt(t, "k", true)
		b.hold(t, "k")
		var asked atomic.Bool
		c.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
			if op.Name == "GetItem" && !asked.Swap(true) {
				return dynamofake.Fail(dynamofake.ServerError())
			}
			return dynamofake.Fault{}
		})
		if err := lock.Release(t.Context()); !errors.Is(err, holdfast.ErrBroken) {
			t.Errorf("%v, want ErrBroken", err)
		}
	})
}

// A write that should succeed but never does ends in an error, not in a busy loop.
func TestRefusedForNoReason(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		api := &odd{refuse: npm("7", "1", "g")}
		c := h.odd(t, api)
		_, errAcquire := c.Acquire(t.Context(), "k")
		_, errTry := c.TryAcquire(t.Context(), "k")
		if !errors.Is(errAcquire, dynamolock.ErrItem) || !errors.Is(errTry, dynamolock.ErrItem) {
			t.Errorf("%v, %v", errAcquire, errTry)
		}
		if n := api.writes.Load(); n > 10 { // 5 a call
			t.Errorf("%d writes", n)
		}
	})
}
