package dynamolock_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
)

// D65. A key is wanted in another mode than that of its holder, who has died, by programs that end when they are refused: none of
// them would watch the item for a lease. So they wait, as for any holder that seems to be dead.
func TestMismatchWithTheDead(t *testing.T) {
	limit := func(n int) []holdfast.Option { return []holdfast.Option{holdfast.WithLimit(n)} }
	forEach(t, map[string][2][]holdfast.Option{
		"another limit": {limit(1), limit(2)},
		"a lock":        {limit(1), nil},
		"a reader":      {limit(1), {shared}},
		"not a lock":    {nil, limit(1)},
		"not a reader":  {{shared}, limit(1)},
	}, func(t *testing.T, h *harness, modes [2][]holdfast.Option) {
		a, b := h.pair(t)
		dead := a.hold(t, "k", modes[0]...)
		a.conn.Cut()
		time.Sleep(lease / 2)
		if _, err := b.Acquire(within(t, time.Second), "k", modes[1]...); !errors.Is(err, holdfast.ErrMismatch) {
			t.Errorf("the holder may live: %v", err)
		}
		time.Sleep(10 * lease)
		next := h.client(t) // which has not seen the key
		lock, err := next.Acquire(within(t, 2*lease), "k", modes[1]...)
		if err != nil {
			t.Fatal(err)
		}
		if dead.Err() == nil {
			t.Error("both hold the key")
		}
		mustRelease(t, lock)
		a.conn.Heal()
		time.Sleep(lease)
	})
}

// A holder whose clock is behind by more than its lease seems to be dead, until its next heartbeat.
func TestMismatchWithAWrongClock(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a, b := h.pair(t)
		b.clock.Jump(10 * lease)
		two := holdfast.WithLimit(2)
		lock := a.hold(t, "k", two)
		for range 2 {
			began := time.Now()
			_, err := b.Acquire(within(t, 2*lease), "k")
			if took := time.Since(began); !errors.Is(err, holdfast.ErrMismatch) || took > lease/2 {
				t.Errorf("after %v: %v", took, err)
			}
			mustRelease(t, h.client(t).hold(t, "k", two))
		}
		for name := range h.item("k") {
			if strings.Contains(name, "Intent") {
				t.Error("who is to be refused keeps others out")
			}
		}
		mustLive(t, lock)
	})
}

// Two calls of one client begin at once, before either has seen the key. The one behind is told that the key is in use in another
// way, as soon as the first has seen that.
func TestMismatchOfTheSecond(t *testing.T) {
	forEach(t, map[string][]holdfast.Option{"limit": {holdfast.WithLimit(2)}, "lock": nil, "reader": {shared}},
		func(t *testing.T, h *harness, other []holdfast.Option) {
			a, b := h.pair(t)
			lock := a.hold(t, "k", holdfast.WithLimit(1))
			first, second := make(chan error, 1), make(chan error, 1)
			go func() {
				_, err := b.Acquire(t.Context(), "k", holdfast.WithLimit(1))
				first <- err
			}()
			time.Sleep(time.Millisecond) // less than an answer takes
			go func() {
				_, err := b.Acquire(within(t, 5*lease), "k", other...)
				second <- err
			}()
			var mismatch *holdfast.MismatchError
			if err := <-second; !errors.As(err, &mismatch) {
				t.Errorf("%v, want a MismatchError", err)
			}
			if len(first) > 0 {
				t.Error("only when the first had ended")
			}
			mustRelease(t, lock)
			if err := <-first; err != nil {
				t.Error(err)
			}
		})
}

// D45. It is behind two others that both want the key in one way, of which the first takes it; or behind one, and a holder that had
// seemed to be dead writes again.
func TestMismatchOfTheLast(t *testing.T) {
	one, two := holdfast.WithLimit(1), holdfast.WithLimit(2)
	isTold := func(t *testing.T, b *client) {
		t.Helper()
		if _, err := b.Acquire(within(t, 5*lease), "k", two); !errors.Is(err, holdfast.ErrMismatch) {
			t.Errorf("%v, want a MismatchError", err)
		}
	}
	waits := func(t *testing.T, b *client) (ended <-chan error) {
		end := make(chan error, 1)
		go func() {
			_, err := b.Acquire(within(t, 6*lease), "k", one)
			end <- err
		}()
		time.Sleep(time.Millisecond) // less than an answer takes
		return end
	}
	cases := map[string]func(t *testing.T, h *harness){
		"taken by their own client": func(t *testing.T, h *harness) {
			b := h.client(t)
			first, second := waits(t, b), waits(t, b)
			isTold(t, b)
			if err := <-first; err != nil {
				t.Error(err)
			}
			<-second
		},
		"its clock was wrong": func(t *testing.T, h *harness) {
			a, b := h.pair(t)
			b.clock.Jump(10 * lease)
			lock := a.hold(t, "k", one)
			first := waits(t, b)
			isTold(t, b)
			mustLive(t, lock)
			<-first
		},
	}
	for name, run := range cases {
		t.Run(name, func(t *testing.T) { bubble(t, dynamolock.Options{}, run) })
	}
}

// D67. Somebody breaks the lock of a dead holder, or of one of two: that is no sign of life.
func TestMismatchWithTheBroken(t *testing.T) {
	for name, opts := range map[string][]holdfast.Option{"semaphore": {holdfast.WithLimit(3)}, "readers": {shared}, "lock": nil} {
		for _, now := range []bool{false, true} {
			t.Run(name+" now "+strconv.FormatBool(now), func(t *testing.T) {
				bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
					a, b := h.pair(t)
					a.hold(t, "k", opts...)
					if opts != nil {
						a.hold(t, "k", opts...)
					}
					a.conn.Cut()
					time.Sleep(10 * lease)
					result := make(chan error, 1)
					go func() {
						_, err := b.Acquire(within(t, 2*lease), "k", holdfast.WithLimit(2))
						result <- err
					}()
					time.Sleep(lease / 2)
					h.client(t).breakIt(t, "k", now)
					if err := <-result; err != nil {
						t.Error(err)
					}
					a.conn.Heal()
					time.Sleep(lease)
				})
			})
		}
	}
}

// D68. What the client remembered of the holder is older than its last sign of life, after which it died in an outage: only what
// the call has seen itself counts.
func TestMismatchAfterAnOutage(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		b := h.client(t)
		touch := func(guid string) {
			i := npm("7", strconv.FormatInt(lease.Milliseconds(), 10), guid)
			i["lockAcquiredTimeUnixMs"] = n(strconv.FormatInt(time.Now().UnixMilli(), 10))
			h.set("k", i)
		}
		touch("a")
		time.Sleep(lease / 4)
		limit := holdfast.WithLimit(1)
		if _, err := b.TryAcquire(t.Context(), "k", limit); !errors.Is(err, holdfast.ErrMismatch) {
			t.Fatal(err)
		}
		b.conn.Cut()
		time.Sleep(lease / 2)
		touch("b")
		time.Sleep(lease * 3 / 8) // a lease after its first sign of life, but not after that was seen
		time.AfterFunc(2*lease, b.conn.Heal)
		go func() { _, _ = b.Acquire(within(t, lease), "k") }()
		time.Sleep(time.Millisecond) // the next is behind it
		if _, err := b.Acquire(within(t, 5*lease), "k", limit); err != nil {
			t.Error(err)
		}
	})
}

// D73. A call that wants the key as something else than it is in use as waits for the leases of holders that have died. Others of its
// client, that come later and want it as what it is, do not wait for that: they get what is free, and the first is refused.
func TestMismatchBeforeOthers(t *testing.T) {
	one, two := []holdfast.Option{holdfast.WithLimit(1)}, []holdfast.Option{holdfast.WithLimit(2)}
	for name, c := range map[string]struct {
		dead, first, second []holdfast.Option
		most                time.Duration // until the second has the key
	}{
		"a free permit":        {two, nil, two, 3 * poll},
		"a reader's":           {[]holdfast.Option{shared}, two, []holdfast.Option{shared}, 3 * poll},
		"a lock":               {nil, two, nil, lease + 3*poll},
		"a permit of the dead": {one, nil, one, lease + 3*poll},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
				a, b := h.pair(t)
				a.hold(t, "k", c.dead...)
				a.conn.Cut()
				time.Sleep(10 * lease)
				refused := make(chan error, 1)
				go func() {
					_, err := b.Acquire(within(t, 5*lease), "k", c.first...)
					refused <- err
				}()
				time.Sleep(3 * poll)
				began := time.Now()
				lock, err := b.Acquire(within(t, 2*lease), "k", c.second...)
				if err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took > c.most {
					t.Errorf("it had to wait for %v", took)
				}
				if err := <-refused; !errors.Is(err, holdfast.ErrMismatch) || time.Since(began) > c.most+3*poll {
					t.Errorf("the first, after %v: %v", time.Since(began), err)
				}
				mustRelease(t, lock)
				a.conn.Heal()
				time.Sleep(lease)
			})
		})
	}
}

// D75. An old replica shows an earlier sign of life of a holder that has died: that is no later one.
func TestMismatchWithTheDeadOnAnOldReplica(t *testing.T) {
	for name, opts := range map[string][]holdfast.Option{"semaphore": {holdfast.WithLimit(3)}, "lock": nil} {
		t.Run(name, func(t *testing.T) {
			bubble(t, dynamolock.Options{Lease: 2 * time.Second}, func(t *testing.T, h *harness) {
				h.db.Lag = 4 * time.Second
				a, b := h.pair(t)
				a.hold(t, "k", opts...)
				time.Sleep(10 * time.Second)
				a.conn.Cut()
				time.Sleep(2500 * time.Millisecond) // its last heartbeat is a lease ago, and not on all replicas
				if _, err := b.Acquire(within(t, 10*time.Second), "k", holdfast.WithLimit(2)); err != nil {
					t.Error(err)
				}
				a.conn.Heal()
				time.Sleep(10 * time.Second)
			})
		})
	}
}

// D78. An old replica shows what was there before the grant of a holder that has died since: that it is seen once more is no sign of life.
func TestMismatchWithTheDeadBeforeTheirGrant(t *testing.T) {
	three := []holdfast.Option{holdfast.WithLimit(3)}
	for name, opts := range map[string][]holdfast.Option{"semaphore": three, "lock": nil} {
		for _, before := range []string{"nothing", "released", "held"} {
			t.Run(name+" after "+before, func(t *testing.T) {
				bubble(t, dynamolock.Options{Lease: 2 * time.Second}, func(t *testing.T, h *harness) {
					h.db.Lag = 4 * time.Second
					a, b := h.pair(t)
					if before != "nothing" {
						lock := a.hold(t, "k", opts...)
						if before == "held" {
							time.Sleep(10 * time.Second)
						}
						mustRelease(t, lock)
					}
					if before == "released" {
						time.Sleep(10 * time.Second)
					}
					a.hold(t, "k", opts...)
					a.conn.Cut()
					time.Sleep(2500 * time.Millisecond) // it is over, and not on all replicas
					if _, err := b.Acquire(within(t, 10*time.Second), "k", holdfast.WithLimit(2)); err != nil {
						t.Error(err)
					}
					a.conn.Heal()
					time.Sleep(10 * time.Second)
				})
			})
		}
	}
}

// An item that somebody has deleted, or put back as it was long before, is noticed by the next poll all the same.
func TestSmallerTokenIsNoticed(t *testing.T) {
	forEach(t, map[string]func(h *harness){
		"deleted":    func(h *harness) { h.db.RemoveItem(tableName, item{"id": s("k")}) },
		"put back":   func(h *harness) { h.set("k", npm("7", "1", "a")) },
		"by another": func(h *harness) { h.set("k", npm("7", "20000", "a")); h.set("k", npm("7", "1", "a")) },
	}, func(t *testing.T, h *harness, change func(h *harness)) {
		a, b := h.pair(t)
		a.hold(t, "k")
		a.conn.Cut()
		waits := b.waits(t, "k")
		time.Sleep(3 * poll)
		b.conn.ResetCounts()
		time.Sleep(3 * poll)
		if n := b.conn.Calls()["GetItem"]; n > 4 {
			t.Errorf("%d reads in three periods in which nothing changed", n)
		}
		change(h)
		if d := took(func() { mustRelease(t, <-waits) }); d > 2*poll {
			t.Errorf("it had to wait for %v", d)
		}
		a.conn.Heal()
		time.Sleep(lease)
	})
}

// Who waits is not in the item: when all have let go of a key, another use of it may come first, and then who has waited is refused. On
// engines with a queue a waiter keeps what the key is. WithLimit says so.
func TestWaiterDoesNotKeepTheLimit(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a, b, c := h.client(t), h.client(t), h.client(t)
		lock := a.hold(t, "k", holdfast.WithLimit(1))
		waited := make(chan error, 1)
		go func() {
			_, err := b.Acquire(t.Context(), "k", holdfast.WithLimit(1))
			waited <- err
		}()
		time.Sleep(lease)
		mustRelease(t, lock)
		next := c.hold(t, "k", holdfast.WithLimit(2))
		var mismatch *holdfast.MismatchError
		if err := <-waited; !errors.As(err, &mismatch) || mismatch.Have != 2 || mismatch.Want != 1 {
			t.Errorf("who has waited: %v, want a MismatchError", err)
		}
		mustRelease(t, next)
	})
}
