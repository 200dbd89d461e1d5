package dynamolock_test

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

// A heartbeat that arrives after the release does not bring the item back.
func TestHeartbeatAfterRelease(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a := h.client(t)
		lock := a.hold(t, "k")
		late := make(chan struct{}, 1)
		a.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
			if purposeOf(op) == beat {
				late <- struct{}{}
				return dynamofake.DeliverLate(time.Second, nil)
			}
			return dynamofake.Fault{}
		})
		<-late
		if d := took(func() {
			mustRelease(t, lock)
		}); d > time.Second {
			t.Errorf("Release waited %v for the heartbeat", d)
		}
		time.Sleep(lease)
		h.isFree(t, "k")
	})
}

// A heartbeat that fails is repeated until the lease is over, and not a moment longer.
func TestFailedHeartbeats(t *testing.T) {
	forEach(t, map[string]error{
		"throttled": dynamofake.Throttled(), "throttling": dynamofake.Throttling(), "500": dynamofake.ServerError(),
		"reset": dynamofake.Reset(), "denied": dynamofake.Denied(),
	}, func(t *testing.T, h *harness, err error) {
		a, b := h.pair(t)
		lock := a.hold(t, "k")
		events := a.Events()
		<-events.Ready()
		time.Sleep(lease)
		a.conn.SetFault(on(beat, 1, dynamofake.Fail(err)))
		time.Sleep(lease)
		mustLive(t, lock)

		a.conn.SetFault(always(dynamofake.Fail(err)))
		<-events.Disconnected()
		deadline := lock.Deadline()
		next := b.waits(t, "k")
		<-lock.Done()
		if late := time.Since(deadline); late < 0 || late > time.Millisecond || !errors.Is(lock.Err(), holdfast.ErrLeaseExpired) {
			t.Errorf("it ended %v after its deadline: %v", late, lock.Err())
		}
		select {
		case <-next:
			t.Error("another had the key before the holder knew")
		default:
		}
		if next := <-next; next.Token() <= lock.Token() {
			t.Errorf("token %v after %v", next.Token(), lock.Token())
		}
		a.conn.SetFault(nil)
		time.Sleep(lease)
	})
}

// A slow lock delays no other: no heartbeat, no Close.
func TestNothingIsHeldUp(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a, b := h.client(t), h.client(t)
		b.hold(t, "theirs")
		var locks []*holdfast.Lock
		for _, key := range []string{"1", "2", "3", "4"} {
			locks = append(locks, a.hold(t, key))
		}
		waits := make(chan error)
		go func() {
			_, err := a.Acquire(t.Context(), "theirs")
			waits <- err
		}()
		// From now on, no request for the first key gets a reply.
		a.conn.SetFault(func(op dynamofake.Op) (fault dynamofake.Fault) {
			if keyOf(op) == "1" {
				fault = dynamofake.Drop()
			}
			return fault
		})
		<-locks[0].Done()
		time.Sleep(2 * lease)
		for _, lock := range locks[1:] {
			mustLive(t, lock)
		}
		a.conn.SetFault(nil)
		if d := took(func() { a.close(t) }); d > a.Options().Heartbeat+time.Second {
			t.Errorf("Close took %v", d)
		}
		if err := <-waits; !errors.Is(err, holdfast.ErrClosed) {
			t.Errorf("the waiter: %v", err)
		}
	})
}

// The lease counts from before a request was sent, as others count it, not from its reply.
func TestLeaseCountsFromTheSending(t *testing.T) {
	const slow = 3 * time.Second
	for _, of := range []purpose{acquire, beat} {
		alone(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
			a := h.client(t)
			a.conn.SetFault(on(of, 1000, dynamofake.DelayReply(slow)))
			lock := a.hold(t, "k")
			for range 30 {
				touched := time.UnixMilli(number(h.item("k")["lockAcquiredTimeUnixMs"]))
				if most := touched.Add(lease - lease/20 + time.Millisecond); lock.Deadline().After(most) {
					t.Fatalf("slow %s: Deadline is %v after the last touch of the item", of, lock.Deadline().Sub(touched))
				}
				time.Sleep(time.Second)
			}
		})
	}
}

// late is a clock whose timers fire when the test says so, in the order in which they were set.
type late struct {
	clock.Real
	due []func()
}

type lateTimer struct{}

func (lateTimer) Stop() bool { return false }

func (l *late) AfterFunc(_ time.Duration, f func()) driver.Timer {
	l.due = append(l.due, f)
	return lateTimer{}
}

// A process that was stopped past its deadline sends no heartbeat, although that is due and runs first.
func TestNoHeartbeatAfterTheDeadline(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		timers := &late{}
		a := h.clientOn(t, timers, nil)
		lock := a.hold(t, "k")
		time.Sleep(lease)
		a.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
			if purposeOf(op) == beat {
				t.Error("a heartbeat was sent for a lock that is over")
			}
			return dynamofake.Fault{}
		})
		for _, f := range timers.due {
			f()
		}
		<-lock.Done()
		if err := lock.Err(); !errors.Is(err, holdfast.ErrLeaseExpired) {
			t.Error(err)
		}
	})
}

// Verify asks while there is something to verify, and no longer.
func TestVerifyEndsWithTheLock(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a := h.client(t)
		lock := a.hold(t, "k")
		a.conn.Cut()
		d := took(func() {
			if err := lock.Verify(t.Context()); !errors.Is(err, holdfast.ErrLeaseExpired) {
				t.Error(err)
			}
		})
		if d > lease+a.Options().Heartbeat+a.Options().Timeout {
			t.Errorf("it returned after %v", d)
		}
		a.conn.Heal()
		time.Sleep(lease)
	})
}

// Servers close idle connections, sometimes under a request: that is no outage.
func TestOneBrokenConnectionIsNoOutage(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a := h.client(t)
		events := a.Events()
		<-events.Ready()
		lock := a.hold(t, "k")
		for range 5 {
			a.conn.SetFault(on(beat, 1, dynamofake.Fail(dynamofake.Reset())))
			time.Sleep(lease)
		}
		select {
		case e := <-events.Disconnected():
			t.Errorf("%+v", e)
		case e := <-events.Ready():
			t.Errorf("%+v", e)
		default:
		}
		mustLive(t, lock)
	})
}
