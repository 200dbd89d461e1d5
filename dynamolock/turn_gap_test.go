package dynamolock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

// asksTurn has the item of a key say that somebody asks for a turn, who is gone.
func (h *harness) asksTurn(key string) {
	i := h.item(key)
	limit := " -1"
	if v, ok := i["holdfastLimit"].(*types.AttributeValueMemberN); ok {
		limit = " " + v.Value
	}
	i[turnAttribute] = b(strings.Repeat("A", 64) + "20000 1000" + limit)
	h.set(key, i)
}

// D55. Permits that are released one after the other do not prolong the time in which others are to go first.
func TestGapOfManyPermits(t *testing.T) {
	forEach(t, map[string]time.Duration{"one per poll": poll, "faster than looks": poll / 18}, func(t *testing.T, h *harness, every time.Duration) {
		const limit = 100
		a := h.client(t)
		var locks []*holdfast.Lock
		for range limit {
			locks = append(locks, a.hold(t, "k", holdfast.WithLimit(limit)))
		}
		h.asksTurn("k")
		granted := make(chan time.Time, 1)
		go func() {
			a.hold(t, "k", holdfast.WithLimit(limit))
			granted <- time.Now()
		}()
		time.Sleep(3 * poll)
		began := time.Now()
		for _, lock := range locks {
			mustRelease(t, lock)
			time.Sleep(every)
		}
		if d := (<-granted).Sub(began); d > 4*poll {
			t.Errorf("granted %v after the first permit was free", d)
		}
	})
}

// D55. A writer that gives way goes on keeping readers out.
func TestIntentInTheGap(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a, b := h.pair(t)
		var mine []*holdfast.Lock
		for range 60 {
			mine = append(mine, a.hold(t, "k", holdfast.WithShared()))
		}
		old := b.hold(t, "k", holdfast.WithShared())
		granted := a.waits(t, "k")
		time.Sleep(3 * poll)
		h.asksTurn("k")
		var joined atomic.Int32
		for range 3 {
			go func() {
				if lock, err := b.Acquire(t.Context(), "k", holdfast.WithShared()); err == nil {
					joined.Add(1)
					time.Sleep(poll)
					mustRelease(t, lock)
				}
			}()
		}
		for _, lock := range mine {
			mustRelease(t, lock)
			time.Sleep(poll)
		}
		if n := joined.Load(); n > 0 {
			t.Errorf("%d readers have come before the writer", n)
		}
		mustRelease(t, old)
		mustRelease(t, <-granted)
		time.Sleep(time.Minute)
	})
}

// D55. A wait that would leave no time for a request after the gap takes its chance, and for one that is cancelled in the gap the key is held.
func TestGapAndDeadline(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a := h.client(t)
		lock := a.hold(t, "k")
		h.asksTurn("k")
		mustRelease(t, lock)
		lock, err := a.Acquire(within(t, 2*poll+2*time.Millisecond), "k")
		if err != nil {
			t.Fatal(err)
		}
		h.asksTurn("k")
		mustRelease(t, lock)
		time.Sleep(3 * poll)
		lock = a.hold(t, "k")
		h.asksTurn("k")
		mustRelease(t, lock)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(poll, cancel)
		if _, err := a.Acquire(ctx, "k"); !errors.Is(err, context.Canceled) || !errors.Is(err, holdfast.ErrHeld) {
			t.Error(err)
		}
	})
}

// D55. A wait that would leave no time takes its chance also behind another one of its client that gives way.
func TestGapBehindAnother(t *testing.T) {
	forEach(t, map[string]time.Duration{"ends in the gap": poll / 2, "ends soon after it": 2*poll + 2*time.Millisecond}, func(t *testing.T, h *harness, wait time.Duration) {
		a := h.client(t)
		lock := a.hold(t, "k")
		h.asksTurn("k")
		mustRelease(t, lock)
		granted := a.waits(t, "k")
		time.Sleep(10 * time.Millisecond)
		lock, err := a.Acquire(t.Context(), "k", holdfast.WithWait(wait))
		if err != nil {
			t.Errorf("nobody has the key: %v", err)
		} else {
			mustRelease(t, lock)
		}
		mustRelease(t, <-granted)
	})
}

// D55. A request for a turn that is lost does not keep a line from looking.
func TestTurnDropped(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a, b := h.pair(t)
		lock := a.hold(t, "k")
		asked := make(chan struct{}, 100)
		b.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
			if !asksForTurn(op) {
				return dynamofake.Fault{}
			}
			asked <- struct{}{}
			return dynamofake.Drop()
		})
		granted := b.waits(t, "k")
		<-asked
		time.Sleep(100 * time.Millisecond)
		mustRelease(t, lock)
		if late := took(func() { mustRelease(t, <-granted) }); late > 2*poll {
			t.Errorf("granted after %v", late)
		}
	})
}

// D55. Who comes back after a while has not been denied the key meanwhile.
func TestDeniedLongAgo(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a, b := h.pair(t)
		early := 0
		for k := range 30 {
			key := fmt.Sprint(k)
			lock := a.hold(t, key)
			if _, err := b.Acquire(within(t, 2*poll), key); err == nil {
				t.Fatal("granted")
			}
			mustRelease(t, lock)
			time.Sleep(time.Hour)
			lock = a.hold(t, key)
			_, _ = b.Acquire(within(t, 2*poll), key)
			if h.item(key)[turnAttribute] != nil {
				early++
			}
			mustRelease(t, lock)
		}
		if early > 0 {
			t.Errorf("of 30, %d asked for a turn within two polls", early)
		}
	})
}

// D55. A client that gives up and waits again, at once, gets its turn.
func TestTurnOfShortWaits(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a, b := h.pair(t)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		var all sync.WaitGroup
		had := 0
		all.Go(func() {
			for ctx.Err() == nil {
				if lock, err := a.Acquire(ctx, "k"); err == nil {
					time.Sleep(poll)
					mustRelease(t, lock)
				}
			}
		})
		for ctx.Err() == nil && had < 10 {
			if lock, err := b.Acquire(ctx, "k", holdfast.WithWait(2*poll)); err == nil {
				had++
				mustRelease(t, lock)
			}
		}
		cancel()
		all.Wait()
		if had < 10 {
			t.Errorf("granted %d times in ten minutes", had)
		}
	})
}

// D55. A release whose reply was lost gives way, too.
func TestTurnAfterALostReply(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a, b := h.pair(t)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
		defer cancel()
		var losing atomic.Int64
		a.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
			if purposeOf(op) == release && losing.Add(1)%2 == 1 {
				return dynamofake.LoseReply(context.DeadlineExceeded)
			}
			return dynamofake.Fault{}
		})
		var all sync.WaitGroup
		var had [2]int
		for k, c := range []*client{a, b} {
			all.Go(func() {
				for {
					lock, err := c.Acquire(ctx, "k")
					if err != nil {
						return
					}
					had[k]++
					time.Sleep(poll / 2)
					mustRelease(t, lock)
				}
			})
		}
		all.Wait()
		if had[1] < had[0]/2 {
			t.Errorf("they have had the key %v times", had)
		}
	})
}
