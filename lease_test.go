package holdfast_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

func TestMargin(t *testing.T) {
	for _, c := range []struct{ configured, lease, want time.Duration }{
		{0, 10 * time.Second, 500 * time.Millisecond},
		{0, time.Second, 50 * time.Millisecond},
		{0, 200 * time.Millisecond, 50 * time.Millisecond},
		{0, 60 * time.Millisecond, 30 * time.Millisecond},
		{0, 0, 0},
		{time.Second, 10 * time.Second, time.Second},
		{time.Second, time.Second, 500 * time.Millisecond},
		{time.Nanosecond, 10 * time.Second, time.Nanosecond},
		{math.MaxInt64, 10 * time.Second, 5 * time.Second},
	} {
		var host driver.Host
		_, err := holdfast.New(driver.Config{Margin: c.configured}, nil, func(h driver.Host) (driver.Driver, error) {
			host = h
			return &engine{}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := host.Margin(c.lease); got != c.want {
			t.Errorf("margin %v, lease %v: %v, want %v", c.configured, c.lease, got, c.want)
		}
	}
}

// endsIn insists that a channel is closed after d, to the nanosecond.
func endsIn(t *testing.T, d time.Duration, done <-chan struct{}) {
	t.Helper()
	time.Sleep(d - 1)
	synctest.Wait()
	if closed(done) {
		t.Error("a nanosecond early, and the lock has ended")
	}
	time.Sleep(time.Nanosecond)
	synctest.Wait()
	if !closed(done) {
		t.Error("on time, and the lock is live")
	}
}

// Without renewal, a lease ends its locks at sent + length - margin, without a call.
func TestLeaseEnds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l, b, _ := openFake(t)
		time.Sleep(time.Second)
		locks := []*holdfast.Lock{acquire(t, l, "a"), acquire(t, l, "b")}
		done := locks[0].Done()
		endsIn(t, validity-time.Second, done)
		if b.lease.Live() {
			t.Error("the lease is live")
		}
		for _, lock := range locks {
			if !errors.Is(lock.Err(), holdfast.ErrLeaseExpired) {
				t.Errorf("Err: %v, want ErrLeaseExpired", lock.Err())
			}
		}
		if b.ended.Load() != 2 {
			t.Errorf("%d of 2 keys were given back: the engine may have them still", b.ended.Load())
		}
	})
}

func TestRenew(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l, b, _ := openFake(t)
		lock := acquire(t, l, "k")
		began := time.Now()
		for i := range 10 {
			time.Sleep(validity - 1)
			sent := b.host.Now()
			b.lease.Renew(sent)
			if got := lock.Deadline().Sub(began); got != time.Duration(i+1)*(validity-1)+validity {
				t.Fatalf("renewal %d: the deadline is %v after the grant", i, got)
			}
		}
		// A reply to an older request does not shorten the lease.
		deadline := lock.Deadline()
		late := b.host.Now()
		late = late.Add(-time.Second)
		b.lease.Renew(late)
		if lock.Deadline() != deadline {
			t.Errorf("an older renewal moved the deadline by %v", lock.Deadline().Sub(deadline))
		}
		time.Sleep(validity)
		if err := lock.Err(); !errors.Is(err, holdfast.ErrLeaseExpired) {
			t.Errorf("Err: %v", err)
		}
	})
}

// A shortened lease ends by itself when the shorter one would have, and stays short.
func TestLimit(t *testing.T) {
	const short = leaseLength / 4
	bubble(t, func(t *testing.T) {
		l, b, _ := openFake(t)
		lock := acquire(t, l, "k")
		done := lock.Done()
		time.Sleep(time.Second)
		began, sent := time.Now(), b.host.Now()
		b.lease.Limit(sent, 2*leaseLength)
		if got := lock.Deadline().Sub(began); got != validity-time.Second {
			t.Errorf("a longer length moved the deadline to %v from now", got)
		}
		b.lease.Limit(sent, short)
		want := short - b.host.Margin(short)
		if got := lock.Deadline().Sub(began); got != want {
			t.Errorf("the deadline is %v from now, want %v", got, want)
		}
		time.Sleep(time.Second)
		b.lease.Renew(b.host.Now())
		b.lease.Limit(b.host.Now(), leaseLength) // later, and longer
		b.lease.Renew(b.host.Now())
		if got := lock.Deadline().Sub(began); got != time.Second+want {
			t.Errorf("renewed, the deadline is %v from then, want %v", got, time.Second+want)
		}
		endsIn(t, want, done)
		if err := lock.Err(); !errors.Is(err, holdfast.ErrLeaseExpired) {
			t.Errorf("Err: %v", err)
		}
	})
}

// If the shorter length puts the end into the past, the lease ends at once. It is never prolonged.
func TestLimitInThePast(t *testing.T) {
	const short = leaseLength / 4
	bubble(t, func(t *testing.T) {
		l, b, _ := openFake(t)
		lock := acquire(t, l, "k")
		sent := b.host.Now()
		time.Sleep(validity - time.Second)
		deadline := lock.Deadline()
		b.lease.Limit(b.host.Now(), short)
		if got := lock.Deadline().Sub(deadline); got != 0 && short > time.Second {
			t.Errorf("the deadline moved by %v", got)
		}
		b.lease.Limit(sent, short/2)
		synctest.Wait()
		if !closed(lock.Done()) || b.lease.Live() {
			t.Error("the lock is live after its lease is over")
		}
	})
}

// The renewal of a lease that was over by the clock serves later locks only, in any order of looks.
func TestRenewalRevivesNothing(t *testing.T) {
	for name, look := range map[string]func(*engine, *holdfast.Lock){
		"Renew looks first": func(b *engine, _ *holdfast.Lock) { b.lease.Renew(b.host.Now()) },
		"Err looks first":   func(b *engine, k *holdfast.Lock) { k.Err(); b.lease.Renew(b.host.Now()) },
		"another's Err does": func(b *engine, k *holdfast.Lock) {
			b.lease.Live()
			b.lease.Renew(b.host.Now())
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				l, b, c := openFake(t)
				old := acquire(t, l, "old")
				c.Pause()
				time.Sleep(validity)
				look(b, old)
				young := acquire(t, l, "young")
				c.Resume()
				if !errors.Is(old.Err(), holdfast.ErrLeaseExpired) || !closed(old.Done()) {
					t.Errorf("the old lock: %v", old.Err())
				}
				time.Sleep(validity - 1)
				if err := young.Err(); err != nil {
					t.Errorf("the young lock: %v", err)
				}
				if !old.Deadline().Before(young.Deadline()) {
					t.Errorf("the old lock's deadline is %v", old.Deadline())
				}
			})
		})
	}
}

// A suspend ends a lock, and the context of its work, without a call, a renewal or a timer of its own.
func TestSuspendIsNoticed(t *testing.T) {
	for name, c := range map[string]struct {
		jumps []time.Duration
		opts  []holdfast.Option
		want  error
	}{
		"lease":          {[]time.Duration{leaseLength}, nil, holdfast.ErrClockJump},
		"two naps":       {[]time.Duration{leaseLength / 2, leaseLength / 2}, nil, holdfast.ErrClockJump},
		"TTL":            {[]time.Duration{leaseLength / 2}, []holdfast.Option{holdfast.WithTTL(leaseLength / 3)}, holdfast.ErrTTLExpired},
		"set back":       {[]time.Duration{-leaseLength}, nil, nil},
		"back and again": {[]time.Duration{-leaseLength, leaseLength}, nil, holdfast.ErrClockJump}, // as a suspend would look
		// The deadline comes between two looks, long after the only jump.
		"a short one":               {[]time.Duration{leaseLength / 2, 0, 0, 0, 0, 0}, nil, holdfast.ErrClockJump},
		"a short one, before a TTL": {[]time.Duration{leaseLength / 2, 0, 0}, []holdfast.Option{holdfast.WithTTL(leaseLength * 7 / 10)}, holdfast.ErrTTLExpired},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				l, _, fake := openFake(t)
				lock := acquire(t, l, "k", c.opts...)
				ctx, cancel := lock.Context(t.Context())
				defer cancel()
				done := ctx.Done() // a later call of Done compares the clocks
				time.Sleep(300 * time.Millisecond)
				for _, by := range c.jumps {
					fake.Jump(by)
					time.Sleep(holdfast.ClockLook)
				}
				synctest.Wait()
				if got := closed(done); got != (c.want != nil) {
					t.Errorf("the work was ended: %v", got)
				}
				if err := context.Cause(ctx); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
					t.Errorf("the cause of its end: %v, want %v", err, c.want)
				}
			})
		})
	}
}

func TestLeaseEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l, b, _ := openFake(t)
		a, c := acquire(t, l, "a"), acquire(t, l, "b", holdfast.WithTTL(time.Second))
		b.lease.End(holdfast.ErrSessionExpired)
		b.lease.End(holdfast.ErrTakenOver)
		b.lease.Renew(b.host.Now())
		for _, lock := range []*holdfast.Lock{a, c} {
			if !errors.Is(lock.Err(), holdfast.ErrSessionExpired) || !closed(lock.Done()) {
				t.Errorf("Err: %v", lock.Err())
			}
		}
		if b.lease.Live() {
			t.Error("a lease that was ended is live")
		}
		_, err := l.Acquire(t.Context(), "late", holdfast.WithRetry(holdfast.Retry{Attempts: 1}))
		if !errors.Is(err, holdfast.ErrSessionExpired) {
			t.Errorf("a grant under a lease that was ended: %v", err)
		}
		synctest.Wait()
		if b.ended.Load() != 3 {
			t.Errorf("%d of 3 keys were given back", b.ended.Load())
		}
	})
}

// An end by the clocks comes first: here the machine slept past the lease, and the first to act then is an engine that hears
// that the session is over.
func TestEndAfterAJump(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l, b, clock := openFake(t)
		lock := acquire(t, l, "k")
		time.Sleep(time.Second)
		clock.Jump(time.Hour)
		b.lease.End(driver.ErrSessionExpired)
		if err := lock.Err(); !errors.Is(err, holdfast.ErrClockJump) {
			t.Errorf("%v, want ErrClockJump", err)
		}
	})
}

// A lock that the engine ends has ended then, and not when its lease would have.
func TestMomentOfTheEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l, b, _ := openFake(t)
		lock := acquire(t, l, "k")
		var other driver.Tenant
		if err := b.lease.Attach(&other, func() {}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		b.lease.End(driver.ErrBroken)
		if cause := other.Ended(); !errors.Is(cause, driver.ErrBroken) {
			t.Errorf("it ended: %v", cause)
		}
		if d := time.Until(lock.Deadline()); d != 0 {
			t.Errorf("Deadline is %v from now", d)
		}
	})
}

// A lease that has said that it is not live does not become so again, when the clock is set back.
func TestLiveIsKept(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l, b, clock := openFake(t)
		lock := acquire(t, l, "k")
		time.Sleep(time.Second)
		clock.Jump(time.Hour)
		live := b.lease.Live()
		clock.Jump(-time.Hour)
		if err := lock.Err(); live || !errors.Is(err, holdfast.ErrClockJump) {
			t.Errorf("live %v, and then the lock: %v", live, err)
		}
	})
}
