package dynamolock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

// Break lets the holder know before anybody else has the key, also when the
// holder hears nothing; then the next one has it at once.
func TestBreakTellsTheHolderFirst(t *testing.T) {
	for _, cut := range []bool{false, true} {
		bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
			a, b := h.pair(t)
			lock := a.hold(t, "k")
			time.Sleep(lease)
			info, err := b.Inspect(t.Context(), "k")
			if err != nil {
				t.Fatal(err)
			}
			if cut {
				a.conn.Cut()
			}
			began := time.Now()
			if err := b.Break(t.Context(), info); err != nil {
				t.Fatal(err)
			}
			next := b.hold(t, "k")
			if !isDone(lock) {
				t.Errorf("cut %v: two holders", cut)
			}
			d, most := time.Since(began), a.Options().Heartbeat+poll+time.Second
			if cut {
				most = lease + poll + time.Second // an old read may have the observation begin anew
			}
			if d > most {
				t.Errorf("cut %v: it took %v until the key was free", cut, d)
			}
			want := holdfast.ErrBroken
			if cut {
				want = holdfast.ErrLeaseExpired
			}
			if !errors.Is(lock.Err(), want) || next.Token() <= lock.Token() {
				t.Errorf("%v; token %v after %v", lock.Err(), next.Token(), lock.Token())
			}
			a.conn.Heal()
			time.Sleep(lease)
		})
	}
}

func TestBreakNow(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a, b := h.client(t), h.client(t)
		defer a.close(t)
		lock := a.hold(t, "k", holdfast.WithData([]byte("d")))
		info := b.breakIt(t, "k", true)
		next, err := b.TryAcquire(t.Context(), "k")
		if err != nil || next.Token() <= lock.Token() {
			t.Fatalf("%v, %v", next, err)
		}
		<-lock.Done()
		if !errors.Is(lock.Err(), holdfast.ErrBroken) {
			t.Error(lock.Err())
		}
		if err := b.BreakNow(t.Context(), info); !errors.Is(err, holdfast.ErrChanged) {
			t.Error(err)
		}
		done, cancel := context.WithCancel(t.Context())
		cancel()
		for want, err := range map[error]error{
			holdfast.ErrInvalid: b.BreakNow(t.Context(), holdfast.Info{Key: "k"}),
			context.Canceled:    b.BreakNow(done, info),
		} {
			if !errors.Is(err, want) {
				t.Errorf("%v, want %v", err, want)
			}
		}
		for _, grant := range []string{"x", "a:b:c", "leased:x:", "leased:1:short", "guid:B:!", "guid:N:AAAA", "leased:-1:"} {
			if err := b.BreakNow(t.Context(), holdfast.Info{Key: "k", Held: true, Grant: grant}); !errors.Is(err, holdfast.ErrInvalid) {
				t.Errorf("grant %q: %v", grant, err)
			}
		}
		if err := next.Verify(t.Context()); err != nil {
			t.Error(err)
		}
		b.close(t)
		if err := b.BreakNow(t.Context(), info); !errors.Is(err, holdfast.ErrClosed) {
			t.Error(err)
		}
	})
}

// Grants of the npm client, of either kind, are broken as well, and only those.
func TestBreakForeign(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a := h.client(t)
		defer a.close(t)
		items := map[string]item{
			"open":   npm("7", "20000", "g"),
			"closed": {"owner": s("node"), "guid": b("guid")},
			"text":   {"owner": s("node"), "guid": s("guid")},
		}
		for key, i := range items {
			h.set(key, i)
			info, err := a.Inspect(t.Context(), key)
			if err != nil || !info.Held || info.Owner != "node" {
				t.Errorf("%s: %+v, %v", key, info, err)
			}
			if key != "open" { // a heartbeat may come in between
				other := item{"owner": s("node"), "guid": b("another")}
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
		}
	})
}

// A break whose reply is lost is carried out once.
func TestLostReplyToBreak(t *testing.T) {
	for _, mode := range []dynamolock.Mode{dynamolock.FailOpen, dynamolock.FailClosed, dynamolock.FailClosedFenced} {
		for name, fault := range lost {
			t.Run(mode.String()+"/"+name, func(t *testing.T) {
				bubble(t, dynamolock.Options{Mode: mode}, func(t *testing.T, h *harness) {
					a, b := h.pair(t)
					a.hold(t, "k")
					info, err := b.Inspect(t.Context(), "k")
					if err != nil {
						t.Fatal(err)
					}
					left := 1
					b.conn.SetFault(func(dynamofake.Op) dynamofake.Fault {
						if left--; left < 0 {
							return dynamofake.Fault{}
						}
						return fault
					})
					if err := b.Break(t.Context(), info); err != nil {
						t.Error(err)
					}
					time.Sleep(lease) // the holder learns of it
				})
			})
		}
	}
}

// Whoever has the key after a break, under whatever name, and however often it was
// granted since: the holder whose grant was broken hears that it was, and what it
// does about its own lock leaves that of the other alone.
func TestBrokenAndTaken(t *testing.T) {
	for _, owner := range []string{"other", "worker"} {
		for _, grants := range []int{1, 3} {
			for _, released := range []bool{false, true} {
				bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
					a, b := h.pair(t)
					lock := a.hold(t, "k", holdfast.WithOwner("worker"))
					b.breakIt(t, "k", true)
					next := b.hold(t, "k", holdfast.WithOwner(owner))
					for range grants - 1 {
						if err := next.Release(t.Context()); err != nil {
							t.Fatal(err)
						}
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
					if err := next.Verify(t.Context()); err != nil {
						t.Errorf("the successor: %v", err)
					}
				})
			}
		}
	}
}

// What a reclaim or a takeover ends is not broken, also if an earlier grant of
// the key was.
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

// An item with a lease of 0 ms is held by nobody: it is shown as free, and can be had.
func TestLeaseOfZero(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a := h.client(t)
		defer a.close(t)
		h.set("k", npm("7", "0", "g"))
		if info, err := a.Inspect(t.Context(), "k"); err != nil || info.Held {
			t.Errorf("%+v, %v", info, err)
		}
		for info, err := range a.List(t.Context(), "") {
			t.Errorf("%+v, %v", info, err)
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

// What another program has written into an item makes no message of its size.
func TestLongOwner(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a := h.client(t)
		defer a.close(t)
		i := npm("7", "20000", "g")
		i["owner"] = s(strings.Repeat("\u00e4\n", 100_000))
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
