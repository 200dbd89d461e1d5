package holdfast_test

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

// What the clocks have seen comes first: here the machine slept past the lease, and the first to act then is an engine that hears
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
		if at, cause := other.Ended(); !at.Mono.Equal(time.Now()) || !errors.Is(cause, driver.ErrBroken) {
			t.Errorf("it ended %v from now: %v", time.Until(at.Mono), cause)
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

// R12. Of a TTL and a lease that are both over after a suspend, the one that was over first is the cause of the end.
func TestSuspendPastTTLAndLease(t *testing.T) {
	for _, c := range []struct {
		ttl  time.Duration
		want error
	}{
		{validity / 2, holdfast.ErrTTLExpired},
		{validity - 1, holdfast.ErrTTLExpired},
		{validity, holdfast.ErrClockJump}, // a tie is a loss
		{validity + 1, holdfast.ErrClockJump},
		{time.Hour, holdfast.ErrClockJump},
	} {
		for first, look := range map[string]func(*holdfast.Lock, *driver.Lease, driver.Host){
			"the lock":     func(k *holdfast.Lock, _ *driver.Lease, _ driver.Host) { _ = k.Err() },
			"a renewal":    func(_ *holdfast.Lock, l *driver.Lease, h driver.Host) { l.Renew(h.Now()) },
			"the engine":   func(_ *holdfast.Lock, l *driver.Lease, _ driver.Host) { l.End(driver.ErrSessionExpired) },
			"a later call": func(*holdfast.Lock, *driver.Lease, driver.Host) { time.Sleep(time.Second) },
		} {
			bubble(t, func(t *testing.T) {
				l, b, clock := openFake(t)
				events := l.Events()
				lock := acquire(t, l, "k", holdfast.WithTTL(c.ttl))
				clock.Pause()
				clock.Jump(2 * time.Hour)
				look(lock, b.lease, b.host)
				if err := lock.Err(); !errors.Is(err, c.want) {
					t.Errorf("TTL %v, lease valid for %v, %s looks first: %v, want %v", c.ttl, validity, first, err, c.want)
				}
				if expired := len(events.TTLExpired()) == 1; expired != errors.Is(c.want, holdfast.ErrTTLExpired) || len(events.Lost()) == 1 == expired {
					t.Errorf("TTL %v, %s looks first: %d events that it has expired, %d of a loss", c.ttl, first, len(events.TTLExpired()), len(events.Lost()))
				}
				clock.Resume()
				mustClose(t, l)
			})
		}
	}
}
