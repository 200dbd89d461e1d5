package recordlock_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/recordlock/memstore"
)

// Clocks that are set wrong change nothing, the holder's or the observer's.
func TestWallClocksAreNotCompared(t *testing.T) {
	for _, jump := range []time.Duration{-time.Hour, time.Hour} {
		for _, holders := range []bool{true, false} {
			bubble(t, modes[0], func(t *testing.T, h *harness) {
				a, b := h.pair(t)
				if holders {
					a.clock.Jump(jump)
				} else {
					b.clock.Jump(jump)
				}
				lock := a.hold(t, "k")
				ctx := within(t, 3*lease)
				if _, err := b.Acquire(ctx, "k"); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("a clock %v off: %v", jump, err)
				}
				mustLive(t, lock)
			})
		}
	}
}

// An item that changes belongs to a live holder. A change that only an old replica shows does not count.
func TestNoTakeoverFromTheLiving(t *testing.T) {
	bubble(t, modes[0], func(t *testing.T, h *harness) {
		h.store.Lag = 3 * time.Second
		a := h.client(t)
		waits := make(chan error)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			_, err := a.Acquire(ctx, "k")
			waits <- err
		}()
		for i := range 20 { // a holder that renews late, but in time
			h.store.Put("k", stranger(7, lease, string(rune('a'+i))))
			time.Sleep(lease - 50*time.Millisecond)
			if i := h.store.Record("k"); i.Token != 7 {
				t.Fatalf("taken over from a holder that had renewed its lease: %v", i)
			}
		}
		cancel()
		if err := <-waits; !errors.Is(err, holdfast.ErrHeld) {
			t.Error(err)
		}
	})
}

// With TrustLocalTime, a client takes over an expired lock at once, if the item has a time.
func TestTrustLocalTime(t *testing.T) {
	bubble(t, modes[0], func(t *testing.T, h *harness) {
		h.opts.TrustLocalTime = true
		a := h.client(t)
		for _, c := range []struct{ age, least, most time.Duration }{
			{lease + 2*time.Second, 0, time.Second},
			{lease / 2, lease / 2, lease/2 + 3*time.Second},
			{0, lease, 2 * lease}, // no time
		} {
			key, i := fmt.Sprint(c.age), stranger(7, lease, "g")
			if c.age > 0 {
				i.Holders[0].Touched = time.Now().Add(-c.age)
			}
			h.store.Put(key, i)
			if d := took(func() { a.hold(t, key) }); d < c.least || d > c.most {
				t.Errorf("the item is %v old: it took %v", c.age, d)
			}
		}
	})
}

// A try by which a program begins that then ends finds out that the holder is dead, if it may, whatever holds the key, and whatever
// the holder's clock shows. A try of several keys watches all of them at the same time.
func TestTakeoverByATry(t *testing.T) {
	shared, permit := holdfast.WithShared(), holdfast.WithLimit(2)
	type takeover struct {
		dead, live, waits, want []holdfast.Option
		ahead                   time.Duration
		try                     func(ctx context.Context, c *client) error
	}
	keys := []string{"j", "k", "l"}
	forEach(t, map[string]takeover{
		"alone":             {},
		"the clock is slow": {ahead: -lease},
		"the clock is fast": {ahead: lease},
		"TryDo": {try: func(ctx context.Context, c *client) error {
			return c.TryDo(ctx, "k", func(context.Context, *holdfast.Lock) error { return nil })
		}},
		"TryAcquireAll": {try: func(ctx context.Context, c *client) error {
			_, err := c.TryAcquireAll(ctx, keys)
			return err
		}},
		"beside an own lock": {try: func(ctx context.Context, c *client) error {
			var held *holdfast.HeldError
			if _, err := c.Acquire(ctx, "own"); err != nil {
				return err
			}
			if _, err := c.TryAcquireAll(ctx, []string{"k", "own"}); !errors.As(err, &held) || held.Key != "own" || !held.Own {
				return fmt.Errorf("not by this client: %w", err)
			}
			_, err := c.TryAcquire(ctx, "k")
			return err
		}},
		"AcquireAny": {try: func(ctx context.Context, c *client) error {
			_, err := c.AcquireAny(ctx, keys)
			return err
		}},
		"readers":               {dead: []holdfast.Option{shared}},
		"alone, for a reader":   {want: []holdfast.Option{shared}},
		"a permit, for another": {dead: []holdfast.Option{permit}, live: []holdfast.Option{permit}, want: []holdfast.Option{permit}},
		"permits, for a lock":   {dead: []holdfast.Option{permit}},
		"a reader and a writer that waits, for a reader": {
			dead: []holdfast.Option{shared}, waits: []holdfast.Option{}, want: []holdfast.Option{shared},
		},
	}, func(t *testing.T, h *harness, c takeover) {
		a, b := h.client(t), h.client(t)
		a.clock.Jump(c.ahead)
		for _, key := range keys {
			a.hold(t, key, c.dead...)
		}
		switch {
		case c.live != nil:
			h.client(t).hold(t, "k", c.live...)
		case c.waits != nil:
			go func() { _, _ = b.Acquire(t.Context(), "k", c.waits...) }()
			time.Sleep(3 * poll) // it keeps others out
		case c.dead != nil:
			b.hold(t, "k", c.dead...)
		}
		a.dies(t)
		b.dies(t)
		time.Sleep(10 * lease)
		if c.try == nil {
			c.try = func(ctx context.Context, client *client) error {
				lock, err := client.TryAcquire(ctx, "k", c.want...)
				if err == nil {
					mustVerify(t, lock)
				}
				return err
			}
		}
		var err error
		took := took(func() { err = c.try(t.Context(), h.client(t)) })
		if err != nil || took < lease-poll || took > lease+2*poll {
			t.Fatalf("%v, after %v", err, took)
		}
	})
}

// A holder that lives is not waited for; nor is one whose clock is wrong, or the client's own, for longer than until its next
// heartbeat.
func TestTakeoverOfALiveHolder(t *testing.T) {
	for name, jumps := range map[string]struct{ holder, other time.Duration }{
		"right clocks": {}, "the holder's clock is slow": {holder: -lease}, "the other's is fast": {other: 24 * time.Hour},
		"the holder's clock is fast": {holder: lease},
	} {
		for kind, opts := range map[string][]holdfast.Option{"alone": nil, "shared": {holdfast.WithShared()}} {
			t.Run(name+", "+kind, func(t *testing.T) {
				bubble(t, modes[0], func(t *testing.T, h *harness) {
					a := h.client(t)
					a.clock.Jump(jumps.holder)
					lock := a.hold(t, "k", opts...)
					time.Sleep(10*lease + lease/10)
					b := h.client(t)
					b.clock.Jump(jumps.other)
					var err error
					most := lease/4 + 2*poll // a heartbeat
					if jumps.holder >= 0 && jumps.other == 0 {
						most = poll / 2
					}
					if d := took(func() { _, err = b.TryAcquire(t.Context(), "k") }); !errors.Is(err, holdfast.ErrHeld) || d > most {
						t.Errorf("%v, after %v", err, d)
					}
					mustVerify(t, lock)
				})
			})
		}
	}
}

// TestTakeover_OneReadFails_GoesOn: one throttled read late in the watch of a dead holder does not end the try.
func TestTakeover_OneReadFails_GoesOn(t *testing.T) {
	for name, c := range map[string]struct{ holder, after time.Duration }{
		"at the end": {lease, lease - poll/2}, "after the own lease": {3 * lease, 2 * lease},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, modes[0], func(t *testing.T, h *harness) {
				h.setLease(c.holder)
				a := h.client(t)
				h.setLease(lease)
				b := h.client(t)
				a.hold(t, "k")
				a.dies(t)
				time.Sleep(3 * c.holder)
				began, failed := time.Now(), false
				b.conn.SetFault(func(op memstore.Op) memstore.Fault {
					if failed || op.Name != "Read" || time.Since(began) < c.after {
						return memstore.Fault{}
					}
					failed = true
					return memstore.Fault{Err: throttled}
				})
				if _, err := b.TryAcquire(t.Context(), "k"); err != nil || !failed {
					t.Errorf("a read failed: %v, the try: %v", failed, err)
				}
			})
		})
	}
}

// LastHeard is the last heartbeat by the holder's clock, alone or shared; a holder that is silent for longer than its lease seems dead.
func TestLastHeard(t *testing.T) {
	for kind, opts := range map[string][]holdfast.Option{"alone": nil, "shared": {holdfast.WithShared()}} {
		for name, ahead := range map[string]time.Duration{"right": 0, "slow": -lease, "fast": lease} {
			t.Run(kind+", "+name+" clock", func(t *testing.T) {
				bubble(t, modes[0], func(t *testing.T, h *harness) {
					a := h.client(t)
					a.clock.Jump(ahead)
					a.hold(t, "k", opts...)
					heard := func() time.Time {
						_, err := h.client(t).TryAcquire(within(t, poll), "k")
						var held *holdfast.HeldError
						if !errors.As(err, &held) {
							t.Fatal(err)
						}
						for info := range held.Holder.Each() {
							if info.LastHeard.IsZero() || !info.LastHeard.Equal(held.LastHeard) {
								t.Errorf("Holder.LastHeard %v, LastHeard %v", info.LastHeard, held.LastHeard)
							}
							if past := time.Since(info.LastHeard); info.SeemsDead(time.Now()) != (past > lease) {
								t.Errorf("SeemsDead is %v after %v", past <= lease, past)
							}
						}
						return held.LastHeard
					}
					time.Sleep(3 * lease)
					if silent := time.Since(heard()) + ahead; silent < 0 || silent > h.opts.Heartbeat+poll {
						t.Errorf("heard %v ago", silent)
					}
					a.dies(t)
					last := heard()
					time.Sleep(3 * lease / 2)
					if now := heard(); now != last {
						t.Errorf("heard at %v after its death, at %v before", now, last)
					}
				})
			})
		}
	}
}

// Where leases never expire, a silent holder seems neither dead nor alive.
func TestLastHeardFailClosed(t *testing.T) {
	inEach(t, modes[1:], func(t *testing.T, h *harness) {
		a, b := h.pair(t)
		a.hold(t, "k")
		time.Sleep(3 * lease)
		if info, err := b.Inspect(t.Context(), "k"); err != nil || !info.Held || !info.LastHeard.IsZero() || info.SeemsDead(time.Now()) {
			t.Errorf("%+v, %v", info, err)
		}
	})
}

// The machine is suspended while the request is under way: that counts for the lease, too.
func TestSuspendedWhileAcquiring(t *testing.T) {
	for _, percent := range []time.Duration{30, 50, 60, 70, 80, 85, 90} {
		t.Run(fmt.Sprint(int(percent), "% of a lease"), func(t *testing.T) {
			bubble(t, modes[0], func(t *testing.T, h *harness) {
				a := h.client(t)
				a.conn.SetFault(on(acquire, 1, memstore.Fault{Delay: time.Second}))
				go func() {
					time.Sleep(500 * time.Millisecond)
					a.clock.Jump(lease * percent / 100)
				}()
				lock := a.hold(t, "k")
				time.Sleep(2 * lease)
				mustLive(t, lock)
			})
		})
	}
}

// A writer that died while it waited does not keep a vacant key from readers that try once.
func TestTryAfterADeadWriter(t *testing.T) {
	bubble(t, modes[0], func(t *testing.T, h *harness) {
		a, b := h.pair(t)
		lock := a.hold(t, "k", shared)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = b.Acquire(ctx, "k")
		}()
		time.Sleep(lease / 2)
		b.conn.Cut()
		mustRelease(t, lock)
		time.Sleep(lease + time.Second)
		if _, err := h.client(t).TryAcquire(t.Context(), "k", shared); err != nil {
			t.Error(err)
		}
		cancel()
		<-done
		b.conn.Heal()
	})
}

// A late copy of a write that reclaims arrives when another client holds the key under the same owner. It ends no other grant than the one
// that it names.
func TestLateReclaim(t *testing.T) {
	reclaiming := []holdfast.Option{holdfast.WithOwner("worker"), holdfast.WithReclaim()}
	for nth := range 3 { // of the writes that are to take the key
		for _, again := range []bool{false, true} {
			t.Run(fmt.Sprint(nth+1, again), func(t *testing.T) {
				inEach(t, modes, func(t *testing.T, h *harness) {
					former, a := h.pair(t)
					b := h.client(t)
					lost := former.hold(t, "k", holdfast.WithOwner("worker"))
					former.conn.Cut()
					var n atomic.Int64
					a.conn.SetFault(func(op memstore.Op) memstore.Fault {
						if purposeOf(op) == acquire && n.Add(1) == int64(nth+1) {
							return memstore.Fault{Late: lease / 2, LoseReply: true, Err: errReset}
						}
						return memstore.Fault{}
					})
					mustRelease(t, a.hold(t, "k", reclaiming...))
					if again {
						mustRelease(t, b.hold(t, "k", holdfast.WithOwner("worker")))
					}
					lock := b.hold(t, "k", holdfast.WithOwner("worker"))
					time.Sleep(lease)
					mustLive(t, lock)
					mustVerify(t, lock)
					mustRelease(t, lock)
					former.conn.Heal()
					<-lost.Done()
					time.Sleep(20 * time.Minute) // until no write without an answer can arrive
				})
			})
		}
	}
}

// G13. A lock that has ended, and is being given back, keeps its own client's calls that reclaim from nothing: they wait.
func TestReclaimWhileItIsGivenBack(t *testing.T) {
	inEach(t, modes, func(t *testing.T, h *harness) {
		a := h.client(t)
		owner := holdfast.WithOwner("o")
		lock := a.hold(t, "k", owner)
		a.conn.SetFault(on(release, 1, memstore.Fault{Late: 3 * time.Second}))
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
