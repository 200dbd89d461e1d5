package dynamolock_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
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

// G13. A lock that has ended, and is being given back, keeps its own client's calls that reclaim from nothing: they wait.
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
