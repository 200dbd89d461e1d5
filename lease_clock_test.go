package holdfast_test

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

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
