package holdfast_test

import (
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
		_, err := holdfast.New(driver.Config{Margin: c.configured}, holdfast.Hooks{}, func(h driver.Host) (driver.Driver, error) {
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

// Without renewal, a lease ends its locks at sent + length - margin, neither sooner nor
// later, without a call.
func TestLeaseEnds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l, b, _ := openFake(t)
		time.Sleep(time.Second)
		locks := []*holdfast.Lock{acquire(t, l, "a"), acquire(t, l, "b")}
		done := locks[0].Done()
		time.Sleep(validity - time.Second - 1)
		synctest.Wait()
		if closed(done) || !b.lease.Live() {
			t.Error("a nanosecond early, and the lock has ended")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if !closed(done) || b.lease.Live() {
			t.Error("on time, and the lock is live")
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
		time.Sleep(want - 1)
		synctest.Wait()
		if closed(done) {
			t.Error("a nanosecond early, and the lock has ended")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if !closed(done) {
			t.Error("on time, and the lock is live: its timer is that of the longer lease")
		}
		if err := lock.Err(); !errors.Is(err, holdfast.ErrLeaseExpired) {
			t.Errorf("Err: %v", err)
		}
	})
}

// If the shorter length puts the end into the past, the lease ends at once. A lease that
// was nearly over is not prolonged.
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

// The renewal of a lease that was over by the clock serves later locks only,
// whoever looks first.
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

// Timers serve goroutines that wait; calls read the clock, with or without timers.
func TestPauseIsSeenByEveryCall(t *testing.T) {
	bubble(t, func(t *testing.T) {
		calls := map[string]func(*holdfast.Lock) bool{
			"Err":      func(k *holdfast.Lock) bool { return k.Err() != nil },
			"Done":     func(k *holdfast.Lock) bool { return closed(k.Done()) },
			"Context":  func(k *holdfast.Lock) bool { return contextOf(t.Context(), k).Err() != nil },
			"Deadline": func(k *holdfast.Lock) bool { return !k.Deadline().After(time.Now()) && closed(k.Done()) },
			"Extend":   func(k *holdfast.Lock) bool { return errors.Is(k.Extend(time.Hour), holdfast.ErrLost) },
			"Verify":   func(k *holdfast.Lock) bool { return errors.Is(k.Verify(t.Context()), holdfast.ErrLost) },
			"Release":  func(k *holdfast.Lock) bool { return errors.Is(k.Release(t.Context()), holdfast.ErrLost) },
		}
		for name, call := range calls {
			l, _, c := openFake(t) // of its own: the first call ends all locks of a lease
			lock := acquire(t, l, name)
			waiting := lock.Done()
			c.Pause()
			time.Sleep(validity)
			synctest.Wait()
			if closed(waiting) {
				t.Error("the pause holds no timer back")
			}
			if !call(lock) {
				t.Errorf("%s does not look at the clock", name)
			}
			c.Resume()
			synctest.Wait()
			if !closed(waiting) {
				t.Errorf("Done is open after %s and the pause", name)
			}
		}
	})
}

func TestClockJump(t *testing.T) {
	for _, c := range []struct {
		name string
		jump time.Duration
		want error
	}{
		{"within the validity", validity - 1, nil},
		{"beyond it", validity, holdfast.ErrClockJump},
		{"by a day", 24 * time.Hour, holdfast.ErrClockJump},
		{"back", -24 * time.Hour, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				l, b, fake := openFake(t)
				lock := acquire(t, l, "k")
				fake.Jump(c.jump)
				if err := lock.Err(); !errors.Is(err, c.want) || (c.want == nil) != (err == nil) {
					t.Fatalf("Err: %v, want %v", err, c.want)
				}
				b.lease.Renew(b.host.Now())
				if c.want == nil {
					// From the renewal on, the wall clock that was set is the one.
					time.Sleep(validity - 1)
					if err := lock.Err(); err != nil {
						t.Errorf("renewed: %v", err)
					}
					time.Sleep(time.Nanosecond)
					if err := lock.Err(); !errors.Is(err, holdfast.ErrLeaseExpired) {
						t.Errorf("at the end: %v", err)
					}
					return
				}
				if lock.Err() == nil {
					t.Error("a renewal revived it")
				}
				if err := acquire(t, l, "next").Err(); err != nil {
					t.Errorf("after the renewal: %v", err)
				}
			})
		})
	}
}

// Each call sees a jump by itself.
func TestClockJumpIsSeenByDeadline(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l, _, fake := openFake(t)
		lock := acquire(t, l, "k")
		fake.Jump(leaseLength)
		if left := time.Until(lock.Deadline()); left > 0 {
			t.Errorf("the machine slept past the lease, and Deadline is %v from now", left)
		}
	})
}

// Without a call to the lock, Done reports a jump at the next renewal.
func TestClockJumpIsNoticedByRenewal(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l, b, fake := openFake(t)
		done := acquire(t, l, "k").Done()
		fake.Jump(leaseLength)
		b.lease.Renew(b.host.Now())
		if !closed(done) {
			t.Error("Done is open")
		}
	})
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

// The shorter of TTL and lease is the cause, also when nobody looked before
// both had passed.
func TestTTLAgainstLease(t *testing.T) {
	for _, c := range []struct {
		ttl  time.Duration
		want error
	}{
		{time.Second, holdfast.ErrTTLExpired},
		{validity - 1, holdfast.ErrTTLExpired},
		{validity, holdfast.ErrLeaseExpired}, // a tie is a loss: it is told as such
		{validity + 1, holdfast.ErrLeaseExpired},
		{time.Hour, holdfast.ErrLeaseExpired},
		{math.MaxInt64, holdfast.ErrLeaseExpired},
	} {
		for _, paused := range []bool{false, true} {
			bubble(t, func(t *testing.T) {
				l, b, fake := openFake(t)
				lock := acquire(t, l, "k", holdfast.WithTTL(c.ttl))
				if paused {
					fake.Pause()
				}
				time.Sleep(2 * leaseLength)
				b.lease.Renew(b.host.Now())
				if err := lock.Err(); !errors.Is(err, c.want) {
					t.Errorf("TTL %v, lease valid for %v, paused %v: %v, want %v", c.ttl, validity, paused, err, c.want)
				}
				if c.ttl < validity && lock.Deadline().Sub(lock.Deadline().Add(-c.ttl)) != c.ttl {
					t.Errorf("the deadline is %v", lock.Deadline())
				}
			})
		}
	}
}

// A client goes on after a pause that was longer than its lease.
func TestAcquireAfterTheLeaseIsOver(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l, _, _ := openFake(t)
		lost := acquire(t, l, "k")
		time.Sleep(leaseLength)
		if lock := acquire(t, l, "k"); lock.Err() != nil || !errors.Is(lost.Err(), holdfast.ErrLeaseExpired) {
			t.Errorf("%v, and before the pause %v", lock.Err(), lost.Err())
		}
	})
}
