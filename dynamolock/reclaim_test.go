package dynamolock_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

// A copy of a write that reclaims arrives when somebody else has the key under the same owner: it ends no grant but the one
// that it was meant for.
func TestLateReclaim(t *testing.T) {
	reclaiming := []holdfast.Option{holdfast.WithOwner("worker"), holdfast.WithReclaim()}
	for nth := range 3 { // of the writes that are to take the key
		for _, again := range []bool{false, true} {
			t.Run(fmt.Sprint(nth+1, again), func(t *testing.T) {
				inEach(t, allModes, func(t *testing.T, h *harness) {
					former, a := h.pair(t)
					b := h.client(t)
					lost := former.hold(t, "k", holdfast.WithOwner("worker"))
					former.conn.Cut()
					var n atomic.Int64
					a.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
						if purposeOf(op) == acquire && n.Add(1) == int64(nth+1) {
							return dynamofake.DeliverLate(lease/2, dynamofake.Reset())
						}
						return dynamofake.Fault{}
					})
					mustRelease(t, a.hold(t, "k", reclaiming...))
					if again { // whoever it was meant for has come and gone, or not
						mustRelease(t, b.hold(t, "k", holdfast.WithOwner("worker")))
					}
					lock := b.hold(t, "k", holdfast.WithOwner("worker"))
					time.Sleep(lease)
					mustLive(t, lock)
					mustVerify(t, lock)
					mustRelease(t, lock)
					former.conn.Heal()
					<-lost.Done()
					time.Sleep(20 * time.Minute) // what calls have left is looked for
				})
			})
		}
	}
}

// A live holder renews its lock between the look of somebody who reclaims it and the write: it is reclaimed all the same.
func TestReclaimOfALiveHolder(t *testing.T) {
	bubble(t, dynamolock.Options{Heartbeat: 2 * time.Second}, func(t *testing.T, h *harness) {
		a, b := h.pair(t)
		lock := a.hold(t, "k", holdfast.WithOwner("worker"))
		b.conn.SetFault(always(dynamofake.Delay(b.Options().Timeout * 3 / 4)))
		next := b.hold(t, "k", holdfast.WithOwner("worker"), holdfast.WithReclaim())
		b.conn.SetFault(nil)
		<-lock.Done()
		mustVerify(t, next)
	})
}

// G13. A call that reclaims, and whose own client has the key meanwhile under the same name, says so, whatever failed before.
func TestReclaimBesideAnOwnLock(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a, b := h.pair(t)
		lock := a.hold(t, "k")
		owner := holdfast.WithOwner("o")
		result := make(chan error, 1)
		go func() {
			_, err := b.Acquire(within(t, 5*lease), "k", owner, holdfast.WithReclaim())
			result <- err
		}()
		time.Sleep(3 * poll)
		mustRelease(t, lock)
		b.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
			if in, ok := op.Input.(*dynamodb.GetItemInput); ok && !*in.ConsistentRead { // a poll
				b.conn.SetFault(nil)
				return dynamofake.Fail(io.ErrUnexpectedEOF)
			}
			return dynamofake.Fault{}
		})
		mine, err := b.TryAcquire(t.Context(), "k", owner)
		if err != nil {
			t.Fatal(err)
		}
		if err := <-result; !errors.Is(err, holdfast.ErrHeld) {
			t.Errorf("%v", err)
		}
		mustRelease(t, mine)
	})
}

// G13. D70. The same, and it waits behind another call of its client.
func TestReclaimBehindAndBesideAnOwnLock(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a, b := h.pair(t)
		lock := a.hold(t, "k")
		first := b.waits(t, "k")
		time.Sleep(poll)
		owner := holdfast.WithOwner("o")
		second := make(chan error, 1)
		go func() {
			_, err := b.Acquire(within(t, 5*lease), "k", owner, holdfast.WithReclaim())
			second <- err
		}()
		time.Sleep(3 * poll)
		mustRelease(t, lock)
		mine, err := b.TryAcquire(t.Context(), "k", owner)
		if err != nil {
			t.Fatal(err)
		}
		var held *holdfast.HeldError
		if err := <-second; !errors.As(err, &held) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		mustRelease(t, mine)
		mustRelease(t, <-first)
	})
}

// G13. D64. A lock that has ended, and is being given back, keeps its own client's calls that reclaim from nothing: they wait.
func TestReclaimWhileItIsGivenBack(t *testing.T) {
	inEach(t, allModes, func(t *testing.T, h *harness) {
		a := h.client(t)
		owner := holdfast.WithOwner("o")
		lock := a.hold(t, "k", owner)
		a.conn.SetFault(on(release, 1, dynamofake.Delay(3*time.Second)))
		if err := lock.Release(within(t, time.Second)); !errors.Is(err, holdfast.ErrReleasePending) {
			t.Fatal(err)
		}
		next, err := a.Acquire(within(t, lease), "k", owner, holdfast.WithReclaim())
		if err != nil {
			t.Fatal(err)
		}
		mustRelease(t, next)
	})
}

// E3. D64. A candidate that reclaims has lost its term in an outage, and stands again when that is over.
func TestReclaimingCandidateAfterAnOutage(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a := h.client(t)
		candidacy := []holdfast.Option{holdfast.WithOwner("o"), holdfast.WithReclaim()}
		election, err := a.Election("k", &holdfast.ElectionOptions{Candidacy: candidacy})
		if err != nil {
			t.Fatal(err)
		}
		terms := 0
		err = election.Run(within(t, 10*lease), func(ctx context.Context, _ *holdfast.Lock) error {
			if terms++; terms == 3 {
				return holdfast.ErrWithdrawn
			}
			a.conn.Cut()
			time.AfterFunc(lease+lease/4, a.conn.Heal)
			<-ctx.Done()
			return ctx.Err()
		})
		if err != nil {
			t.Errorf("after %d terms: %v", terms, err)
		}
	})
}
