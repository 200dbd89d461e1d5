package dynamolock_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

// After Break, the holder knows of it before anybody else gets the key, even a holder
// that is cut off. Then the next client gets the key at once.
func TestBreakTellsTheHolderFirst(t *testing.T) {
	for _, cut := range []bool{false, true} {
		alone(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
			a, b := h.pair(t)
			lock := a.hold(t, "k")
			time.Sleep(lease)
			most, want := a.Options().Heartbeat+poll+time.Second, holdfast.ErrBroken
			if cut {
				a.conn.Cut()
				// An old read may make the observation begin again.
				most, want = lease+poll+time.Second, holdfast.ErrLeaseExpired
			}
			began := time.Now()
			b.breakIt(t, "k", false)
			next := b.hold(t, "k")
			if !isDone(lock) {
				t.Errorf("cut %v: two holders", cut)
			}
			if d := time.Since(began); d > most {
				t.Errorf("cut %v: it took %v until the key was free", cut, d)
			}
			if !errors.Is(lock.Err(), want) || next.Token() <= lock.Token() {
				t.Errorf("%v; token %v after %v", lock.Err(), next.Token(), lock.Token())
			}
			a.conn.Heal()
			time.Sleep(lease)
		})
	}
}

// An operator breaks the lock of a dead holder again and again, as long as the key is not free: that delays nothing. Whoever
// has watched the item goes on counting, also if a replica shows it as it was before.
func TestBreakDelaysNothing(t *testing.T) {
	for name, opts := range map[string][]holdfast.Option{"alone": nil, "shared": {holdfast.WithShared()}} {
		for _, last := range []time.Duration{lease / 2, lease * 9 / 10, 2 * lease} { // of the breaks, one a second
			t.Run(fmt.Sprint(name, last), func(t *testing.T) {
				bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
					h.db.Lag = 2 * poll
					a, b := h.pair(t)
					c := h.client(t)
					lock := a.hold(t, "k", opts...)
					time.Sleep(h.db.Lag)
					a.conn.Cut()
					died := time.Now()
					var free time.Duration
					granted := make(chan *holdfast.Lock)
					go func() {
						next := b.hold(t, "k")
						free = time.Since(died)
						granted <- next
					}()
					time.Sleep(min(last, lease) / 2)
					for time.Since(died) < last {
						info, err := c.Inspect(t.Context(), "k")
						if err != nil {
							t.Fatal(err)
						}
						if info.Held && info.Token == lock.Token() {
							if err := c.Break(t.Context(), info); err != nil {
								t.Fatal(err)
							}
							if time.Since(died) < lease*3/4 { // it sees the break before its polls do
								b.isHeld(t, "k", lock.Token())
							}
						}
						time.Sleep(time.Second)
					}
					next := <-granted
					if free > lease+2*poll+h.db.Lag {
						t.Errorf("the key was free %v after its holder had died", free)
					}
					if !isDone(lock) || next.Token() <= lock.Token() {
						t.Errorf("two holders, or tokens %v and then %v", lock.Token(), next.Token())
					}
					a.conn.Heal()
					time.Sleep(lease)
				})
			})
		}
	}
}

// A break of what a heartbeat has renewed unseen tells nobody to go on counting: the holder may not know yet.
func TestBreakAfterAHeartbeat(t *testing.T) {
	for name, opts := range map[string][]holdfast.Option{"alone": nil, "shared": {holdfast.WithShared()}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, dynamolock.Options{Poll: lease / 2}, func(t *testing.T, h *harness) {
				a, b := h.pair(t)
				c := h.client(t)
				lock := a.hold(t, "k", opts...)
				granted := b.waits(t, "k")
				for range 100 { // at random, heartbeats come between the look and the break
					time.Sleep(lease / 4)
				}
				beats := lock.Deadline()
				for lock.Deadline().Equal(beats) {
					time.Sleep(time.Millisecond)
				}
				a.conn.Cut() // right after a heartbeat
				info, err := c.Inspect(t.Context(), "k")
				if err != nil {
					t.Fatal(err)
				}
				if err := c.Break(t.Context(), info); err != nil {
					t.Fatal(err)
				}
				next := <-granted
				if !isDone(lock) {
					t.Errorf("two holders: %v, with %v left, and %v", lock.Token(), time.Until(lock.Deadline()), next.Token())
				}
				a.conn.Heal()
				time.Sleep(lease)
			})
		})
	}
}

// Whoever breaks a grant that is broken already writes nothing, and has what they want.
func TestBreakTwice(t *testing.T) {
	for name, opts := range map[string][]holdfast.Option{"alone": nil, "shared": {holdfast.WithShared()}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
				a, b := h.pair(t)
				a.hold(t, "k", opts...)
				a.conn.Cut()
				info := b.breakIt(t, "k", false)
				marked := h.item("k")
				if err := b.Break(t.Context(), info); err != nil {
					t.Errorf("by what was known before: %v", err)
				}
				b.breakIt(t, "k", false)
				if after := h.item("k"); !reflect.DeepEqual(after, marked) {
					t.Errorf("the second break has changed\n%v to\n%v", marked, after)
				}
				if err := b.BreakNow(t.Context(), info); err != nil {
					t.Errorf("now, after all: %v", err)
				}
				h.isFree(t, "k")
				if err := b.Break(t.Context(), info); !errors.Is(err, holdfast.ErrChanged) {
					t.Errorf("of a key that is free: %v", err)
				}
				a.conn.Heal()
				time.Sleep(lease)
			})
		})
	}
}

// BreakNow, and Break of a lock that never expires, free the key at once, before the holder knows.
func TestBreakNow(t *testing.T) {
	inEach(t, allModes, func(t *testing.T, h *harness) {
		a, b := h.pair(t)
		breakIt := b.Break
		if h.options.Mode == dynamolock.FailOpen {
			breakIt = b.BreakNow
		}
		lock := a.hold(t, "k", holdfast.WithData([]byte("d")))
		info := b.breakIt(t, "k", h.options.Mode == dynamolock.FailOpen)
		if err := breakIt(t.Context(), info); !errors.Is(err, holdfast.ErrChanged) {
			t.Errorf("for the second time: %v", err)
		}
		next, err := b.TryAcquire(t.Context(), "k")
		if err != nil || h.options.Mode != dynamolock.FailClosed && next.Token() <= lock.Token() {
			t.Fatalf("%v, %v", next, err)
		}
		if d := took(func() { <-lock.Done() }); d > a.Options().Heartbeat+time.Second || !errors.Is(lock.Err(), holdfast.ErrBroken) {
			t.Errorf("after %v: %v", d, lock.Err())
		}
		time.Sleep(lease)
		if err := breakIt(t.Context(), info); !errors.Is(err, holdfast.ErrChanged) {
			t.Errorf("of another grant by now: %v", err)
		}
		done, cancel := context.WithCancel(t.Context())
		cancel()
		if err := breakIt(done, info); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		for _, grant := range []string{"", "x", "a:b:c", "leased:x:", "leased:1:short", "guid:B:!", "guid:B:AAAA", "guid:S:AAAA", "leased:-1:"} {
			if err := breakIt(t.Context(), holdfast.Info{Key: "k", Held: true, Holder: holdfast.Holder{Grant: grant}}); !errors.Is(err, holdfast.ErrInvalid) {
				t.Errorf("grant %q: %v", grant, err)
			}
		}
		mustVerify(t, next)
		b.close(t)
		if err := breakIt(t.Context(), info); !errors.Is(err, holdfast.ErrClosed) {
			t.Error(err)
		}
	})
}

// Break also ends grants of the npm client, of either kind, and no grant but the given one.
func TestBreakForeign(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a := h.client(t)
		items := map[string]item{
			"open":   npm("7", "20000", "g"),
			"closed": {"owner": s("node"), "guid": b(strings.Repeat("g", 64))},
		}
		for key, i := range items {
			h.set(key, i)
			info, err := a.Inspect(t.Context(), key)
			if err != nil || !info.Held || info.Owner != "node" {
				t.Errorf("%s: %+v, %v", key, info, err)
			}
			if key != "open" { // a heartbeat may come in between
				other := item{"owner": s("node"), "guid": b(strings.Repeat("h", 64))}
				h.set(key, other)
				if err := a.Break(t.Context(), info); !errors.Is(err, holdfast.ErrChanged) {
					t.Errorf("%s, held by another by now: %v", key, err)
				}
				h.set(key, i)
			} else {
				h.set(key, npm("7", "20000", "h"))
			}
			if err := a.Break(t.Context(), info); err != nil {
				t.Errorf("%s: %v", key, err)
			}
			if d := took(func() { a.hold(t, key) }); key != "open" && d > time.Second || d > lease+poll+time.Second {
				t.Errorf("%s: it was free after %v", key, d)
			}

			again := key + " again"
			h.set(again, i)
			a.breakIt(t, again, true)
			if _, err := a.TryAcquire(t.Context(), again); err != nil {
				t.Errorf("%s, now: %v", key, err)
			}
		}
	})
}

// If the reply to a break is lost, the break is carried out once.
func TestLostReplyToBreak(t *testing.T) {
	inEachLoss(t, allModes, func(t *testing.T, h *harness, fault dynamofake.Fault) {
		a, b := h.pair(t)
		a.hold(t, "k")
		b.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
			if op.Name == "GetItem" { // by Inspect
				return dynamofake.Fault{}
			}
			b.conn.SetFault(nil)
			return fault
		})
		b.breakIt(t, "k", false)
		time.Sleep(lease) // the holder learns of it
	})
}

// D77. Somebody breaks a lock, and others have the key, when it is released; the first answer to that is lost. What the repetition meets
// shows that the lock was broken: the release was not carried out.
func TestBrokenAndTakenBeforeALostReply(t *testing.T) {
	permit := []holdfast.Option{holdfast.WithLimit(1)}
	forEach(t, map[string][2][]holdfast.Option{"lock": {}, "reader": {{shared}, nil}, "permit": {permit, permit}},
		func(t *testing.T, h *harness, opts [2][]holdfast.Option) {
			for _, fault := range []dynamofake.Fault{dynamofake.LoseReply(nil), dynamofake.Drop()} {
				for _, released := range []bool{false, true} {
					a, b := h.pair(t)
					lock := a.hold(t, "k", opts[0]...)
					b.breakIt(t, "k", true)
					next := b.hold(t, "k", opts[1]...)
					if released {
						mustRelease(t, next)
					}
					a.conn.SetFault(on(release, 1, fault))
					if err := lock.Release(t.Context()); !errors.Is(err, holdfast.ErrBroken) {
						t.Errorf("the next one released: %v; %v, want ErrBroken", released, err)
					}
					if !released {
						mustRelease(t, next)
					}
				}
			}
		})
}

// A holder whose grant was broken learns just that, however often the key was granted again, and to whom.
func TestBrokenAndTaken(t *testing.T) {
	for _, owner := range []string{"other", "worker"} {
		for _, grants := range []int{1, 3} {
			for _, released := range []bool{false, true} {
				alone(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
					a, b := h.pair(t)
					lock := a.hold(t, "k", holdfast.WithOwner("worker"))
					b.breakIt(t, "k", true)
					next := b.hold(t, "k", holdfast.WithOwner(owner))
					for range grants - 1 {
						mustRelease(t, next)
						next = b.hold(t, "k", holdfast.WithOwner(owner))
					}
					var err error
					if released {
						err = lock.Release(t.Context())
					} else {
						<-lock.Done()
						err = lock.Err()
					}
					for _, cause := range []error{holdfast.ErrBroken, holdfast.ErrTakenOver, holdfast.ErrReclaimed} {
						if errors.Is(err, cause) != (cause == holdfast.ErrBroken) {
							t.Errorf("%s, %d grants: %v", owner, grants, err)
						}
					}
					time.Sleep(lease)
					mustVerify(t, next)
				})
			}
		}
	}
}

// A lock that is reclaimed does not report the break of an earlier grant.
func TestReclaimedAfterABreak(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a, b := h.pair(t)
		first := b.hold(t, "k")
		a.breakIt(t, "k", true)
		<-first.Done()
		lock := a.hold(t, "k", holdfast.WithOwner("worker"))
		b.hold(t, "k", holdfast.WithOwner("worker"), holdfast.WithReclaim())
		<-lock.Done()
		if err := lock.Err(); !errors.Is(err, holdfast.ErrReclaimed) || errors.Is(err, holdfast.ErrBroken) {
			t.Error(err)
		}
	})
}

// Nobody holds an item with a lease of 0 ms: it is shown as free, and can be acquired.
func TestLeaseOfZero(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a := h.client(t)
		h.set("k", npm("7", "0", "g"))
		if info, err := a.Inspect(t.Context(), "k"); err != nil || info.Held {
			t.Errorf("%+v, %v", info, err)
		}
		if keys, err := a.list(t, ""); err != nil || len(keys) > 0 {
			t.Errorf("%q, %v", keys, err)
		}
		lock, err := a.TryAcquire(t.Context(), "k")
		if err != nil || lock.Token() != 8 {
			t.Fatalf("%v, %v", lock, err)
		}
		if n := a.conn.Calls()["UpdateItem"]; n != 1 {
			t.Errorf("%d writes", n)
		}
	})
}

// Error messages stay short, whatever another program has written into an item.
func TestLongOwner(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a := h.client(t)
		i := npm("7", "20000", "g")
		i["owner"] = s(strings.Repeat("\u00e4\n", 100_000))
		i["lockAcquiredTimeUnixMs"] = n(fmt.Sprint(time.Now().UnixMilli()))
		h.set("k", i)
		_, err := a.TryAcquire(t.Context(), "k")
		if !errors.Is(err, holdfast.ErrHeld) || len(err.Error()) > 2048 {
			t.Errorf("%d bytes: %.300v", len(err.Error()), err)
		}
		i["leaseDurationMs"] = n(strings.Repeat("9", 38))
		i["fencingToken"] = s(strings.Repeat("x", 100_000))
		h.set("k", i)
		if _, err := a.TryAcquire(t.Context(), "k"); !errors.Is(err, dynamolock.ErrItem) || len(err.Error()) > 2048 {
			t.Errorf("%.300v", err)
		}
	})
}
