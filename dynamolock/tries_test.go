package dynamolock_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

// isHeld tries a key and insists that it is held, under the token of a lock.
func (c *client) isHeld(t testing.TB, key string, token holdfast.Token) {
	t.Helper()
	var held *holdfast.HeldError
	if _, err := c.TryAcquire(t.Context(), key); !errors.As(err, &held) || held.Holder.Token != token {
		t.Errorf("%v, want a HeldError of token %v", err, token)
	}
}

// costs checks what a client has sent since its counts were reset.
func (c *client) costs(t testing.TB, what string, writes, reads int, writeUnits, readUnits float64) {
	t.Helper()
	calls := c.conn.Calls()
	read, write := c.conn.Consumed()
	if calls["UpdateItem"] != writes || calls["GetItem"] > reads || write != writeUnits || read > readUnits {
		t.Errorf("%s: %v, %v write units, %v read units; want %d writes of %v units, at most %d reads of %v units",
			what, calls, write, read, writes, writeUnits, reads, readUnits)
	}
}

// What tries of a held key cost: one write, as the key may be free; then reads, paced, one
// for all that are made at the same time. Data that another has put into the item costs
// the holder's capacity for writes nothing.
func TestTriesOfAHeldKey(t *testing.T) {
	for _, size := range []int{0, 64 << 10} {
		alone(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
			write, read := 1.0, 1.0
			if size > 0 {
				write, read = 65, 17
			}
			a, b := h.pair(t)
			lock := a.hold(t, "k", holdfast.WithData(bytes.Repeat([]byte("x"), size)))
			b.conn.ResetCounts()
			for range 20 {
				b.isHeld(t, "k", lock.Token())
			}
			b.costs(t, "20 tries", 1, 19, write, 19*read)

			b.conn.ResetCounts()
			for began := time.Now(); time.Since(began) < 3*poll; {
				b.isHeld(t, "k", lock.Token())
			}
			b.costs(t, "tries without a pause, for three periods", 0, 31, 0, 31*read)

			b.conn.ResetCounts()
			var all sync.WaitGroup
			for range 100 {
				all.Go(func() { b.isHeld(t, "k", lock.Token()) })
			}
			all.Wait()
			b.costs(t, "100 tries at the same time", 0, 2, 0, 2*read)

			b.conn.ResetCounts()
			for range 5 {
				time.Sleep(2 * lease) // none of the beats in between was seen
				b.isHeld(t, "k", lock.Token())
			}
			b.costs(t, "tries more than a lease apart", 0, 5, 0, 5*read)

			b.conn.ResetCounts()
			for range 5 {
				if _, err := b.Acquire(t.Context(), "k", holdfast.WithWait(time.Millisecond)); !errors.Is(err, holdfast.ErrHeld) {
					t.Error(err)
				}
				time.Sleep(poll)
			}
			b.costs(t, "short waits, with the question who holds the key", 0, 10, 0, 10*read)
			if err := lock.Err(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A try succeeds as soon as nobody has the key, whatever became of its holder: its answer
// is never older than the try, however far eventually consistent reads lag behind.
func TestTryOfAKeyThatWasHeld(t *testing.T) {
	for _, mode := range []dynamolock.Mode{dynamolock.FailOpen, dynamolock.FailClosed, dynamolock.FailClosedFenced} {
		for name, end := range map[string]func(t *testing.T, h *harness, b *client, lock *holdfast.Lock){
			"released": func(t *testing.T, _ *harness, _ *client, lock *holdfast.Lock) {
				if err := lock.Release(t.Context()); err != nil {
					t.Error(err)
				}
			},
			"broken": func(t *testing.T, _ *harness, b *client, _ *holdfast.Lock) { b.breakIt(t, "k", true) },
			"deleted": func(_ *testing.T, h *harness, _ *client, _ *holdfast.Lock) {
				h.db.RemoveItem(tableName, item{"id": s("k")})
			},
		} {
			t.Run(mode.String()+"/"+name, func(t *testing.T) {
				bubble(t, dynamolock.Options{Mode: mode}, func(t *testing.T, h *harness) {
					h.db.Lag = lease
					a, b := h.pair(t)
					lock := a.hold(t, "k")
					time.Sleep(2 * lease) // an old read shows this holder
					b.isHeld(t, "k", lock.Token())
					b.isHeld(t, "k", lock.Token())
					end(t, h, b, lock)
					next, err := b.TryAcquire(t.Context(), "k")
					if err != nil {
						t.Fatal(err)
					}
					time.Sleep(lease)
					if err := next.Verify(t.Context()); err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}

// A try of a dead holder's key takes it over after the lease, by the second write.
func TestTriesTakeOver(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a := h.client(t)
		defer a.close(t)
		h.set("k", npm("7", "20000", "g"))
		a.conn.ResetCounts()
		began := time.Now()
		lock, err := a.TryAcquire(t.Context(), "k")
		for ; errors.Is(err, holdfast.ErrHeld); lock, err = a.TryAcquire(t.Context(), "k") {
			time.Sleep(poll)
		}
		if err != nil || lock.Token() != 8 {
			t.Fatalf("%v, %v", lock, err)
		}
		if d := time.Since(began); d < lease || d > lease+2*poll {
			t.Errorf("after %v", d)
		}
		if n := a.conn.Calls()["UpdateItem"]; n != 2 {
			t.Errorf("%d writes", n)
		}
		if n := dynamolock.Lines(a.Client); n != 0 {
			t.Errorf("%d keys are remembered after that", n)
		}
	})
}

// The key has changed hands since the last try: the new holder is named.
func TestTryNamesTheNextHolder(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a, b := h.pair(t)
		for range 3 {
			lock := a.hold(t, "k")
			b.isHeld(t, "k", lock.Token())
			time.Sleep(lease)
			b.isHeld(t, "k", lock.Token())
			if err := lock.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if n := b.conn.Calls()["UpdateItem"]; n != 1 {
			t.Errorf("%d writes", n)
		}
	})
}

// A client knows of its own locks that they are over: a try is one write then.
func TestTryAfterOwnRelease(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a := h.client(t)
		defer a.close(t)
		lock := a.hold(t, "k")
		a.isHeld(t, "k", lock.Token())
		if err := lock.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		a.conn.ResetCounts()
		if _, err := a.TryAcquire(t.Context(), "k"); err != nil {
			t.Fatal(err)
		}
		a.costs(t, "a try after the release", 1, 0, 1, 0)
	})
}

// The try that reads for others may be cancelled, or its read may fail: the others have
// their answer, or fail by themselves.
func TestSharedLook(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a, b := h.pair(t)
		lock := a.hold(t, "k")
		b.isHeld(t, "k", lock.Token())
		b.conn.SetFault(func(dynamofake.Op) dynamofake.Fault { return dynamofake.DelayReply(time.Second) })
		first, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		b.isHeld(t, "k", lock.Token()) // the next one is not sent at once
		all.Go(func() {
			if _, err := b.TryAcquire(first, "k"); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
		synctest.Wait()
		for range 10 {
			all.Go(func() { b.isHeld(t, "k", lock.Token()) })
		}
		time.Sleep(poll / 2) // the look is under way
		cancel()
		all.Wait()

		b.conn.SetFault(func(dynamofake.Op) dynamofake.Fault { return dynamofake.Fail(dynamofake.Throttled()) })
		for range 10 {
			all.Go(func() {
				if _, err := b.TryAcquire(t.Context(), "k", once); !errors.Is(err, holdfast.ErrDisconnected) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		b.conn.SetFault(nil)
		b.isHeld(t, "k", lock.Token())
	})
}

// AcquireAny waits for many held keys without a write, and gets the one that becomes free.
func TestAcquireAnyOfHeldKeys(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a, b := h.pair(t)
		var keys []string
		var held []*holdfast.Lock
		for i := range 100 {
			keys = append(keys, fmt.Sprint("k", i))
			held = append(held, a.hold(t, keys[i]))
		}
		if _, err := b.AcquireAny(t.Context(), keys); !errors.Is(err, holdfast.ErrHeld) {
			t.Fatal(err)
		}
		b.conn.ResetCounts()
		if _, err := b.AcquireAny(t.Context(), keys, holdfast.WithWait(time.Minute)); !errors.Is(err, holdfast.ErrHeld) {
			t.Fatal(err)
		}
		b.costs(t, "a minute", 0, 2000, 0, 2000)
		time.AfterFunc(poll, func() { _ = held[70].Release(t.Context()) })
		b.conn.ResetCounts()
		lock, err := b.AcquireAny(t.Context(), keys, holdfast.WithWait(time.Minute))
		if err != nil || lock.Key() != keys[70] {
			t.Fatal(lock, err)
		}
		if n := b.conn.Calls()["UpdateItem"]; n != 1 {
			t.Errorf("%d writes", n)
		}
	})
}

// What an hour costs with the default settings, as docs/dynamodb.md says.
func TestCostOfAnHour(t *testing.T) {
	const part, hour = 4, time.Hour / 4 // a quarter of one, to be exact
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		holder, waiter, trier := h.client(t), h.client(t), h.client(t)
		lock := holder.hold(t, "k")
		trier.isHeld(t, "k", lock.Token())
		wait := make(chan error)
		go func() {
			_, err := waiter.Acquire(t.Context(), "k", holdfast.WithWait(hour+time.Minute))
			wait <- err
		}()
		time.Sleep(time.Minute)
		for _, c := range []*client{holder, waiter, trier} {
			c.conn.ResetCounts()
		}
		for range int(hour / time.Minute) {
			time.Sleep(time.Minute)
			trier.isHeld(t, "k", lock.Token())
		}
		for what, units := range map[string]struct {
			*client
			read, write float64
		}{
			"a held lock": {holder, 0, 720. / part},
			"a waiter":    {waiter, 1800. / part, 0},
			"a try":       {trier, 60. / part, 0},
		} {
			read, write := units.conn.Consumed()
			if near := func(got, want float64) bool { return math.Abs(got-want) <= max(1, want/50) }; !near(read, units.read) || !near(write, units.write) {
				t.Errorf("%s: %v read and %v write units, want %v and %v", what, read, write, units.read, units.write)
			}
		}
		if err := <-wait; !errors.Is(err, holdfast.ErrHeld) {
			t.Error(err)
		}
		for _, c := range []*client{waiter, trier, holder} {
			c.close(t)
		}
	})
}

// There is no time to share a read, or to wait for the turn of one: what is answered is
// asked all the same.
func TestShortTryAfterARelease(t *testing.T) {
	for name, acquire := range map[string]func(t *testing.T, b *client) (*holdfast.Lock, error){
		"wait": func(t *testing.T, b *client) (*holdfast.Lock, error) {
			return b.Acquire(t.Context(), "k", holdfast.WithWait(poll/20))
		},
		"try": func(t *testing.T, b *client) (*holdfast.Lock, error) {
			return b.TryAcquire(within(t, poll/20), "k")
		},
	} {
		for _, others := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, others %v", name, others), func(t *testing.T) {
				bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
					a, b := h.pair(t)
					lock := a.hold(t, "k")
					b.isHeld(t, "k", lock.Token())
					b.isHeld(t, "k", lock.Token()) // by a read
					mustRelease(t, lock)
					if others {
						other := make(chan error)
						go func() {
							_, err := b.TryAcquire(t.Context(), "k")
							other <- err
						}()
						defer func() {
							if err := <-other; !errors.Is(err, holdfast.ErrHeld) {
								t.Errorf("the one that reads later: %v", err)
							}
						}()
						synctest.Wait()
					}
					if _, err := acquire(t, b); err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}
