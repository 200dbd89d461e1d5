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

// A heartbeat that is under way when the lock is released arrives after the
// release: it must not bring the item back.
func TestHeartbeatAfterRelease(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a := h.client(t)
		defer a.close(t)
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
			if err := lock.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}); d > time.Second {
			t.Errorf("Release waited %v for the heartbeat", d)
		}
		time.Sleep(lease)
		if i := h.item("k"); leaseOf(i) != 1 {
			t.Errorf("the item is held again: %v", i)
		}
	})
}

// A heartbeat that fails is repeated until the lease is over, and not a moment
// longer.
func TestFailedHeartbeats(t *testing.T) {
	for name, err := range map[string]error{
		"throttled": dynamofake.Throttled(), "throttling": dynamofake.Throttling(), "500": dynamofake.ServerError(),
		"reset": dynamofake.Reset(), "denied": dynamofake.Denied(),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
				a, b := h.pair(t)
				lock := a.hold(t, "k")
				events := a.Events()
				<-events.Ready()
				time.Sleep(lease)
				failures := 1
				if name == "reset" {
					failures = 2 // one broken connection is not reported
				}
				a.conn.SetFault(on(beat, failures, dynamofake.Fail(err)))
				<-events.Disconnected()
				<-events.Ready()
				if err := lock.Verify(t.Context()); err != nil {
					t.Fatalf("after one failure: %v", err)
				}

				a.conn.SetFault(func(dynamofake.Op) dynamofake.Fault { return dynamofake.Fail(err) })
				<-events.Disconnected()
				deadline := lock.Deadline()
				next := make(chan *holdfast.Lock)
				go func() {
					lock := b.hold(t, "k")
					next <- lock
				}()
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
		})
	}
}

// A slow lock delays no other: no heartbeat, no Close.
func TestNothingIsHeldUp(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a, b := h.client(t), h.client(t)
		defer b.close(t)
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
		a.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
			if keyOf(op) == "1" {
				return dynamofake.Drop()
			}
			return dynamofake.Fault{}
		})
		<-locks[0].Done()
		time.Sleep(2 * lease)
		for _, lock := range locks[1:] {
			if err := lock.Err(); err != nil {
				t.Errorf("%q: %v", lock.Key(), err)
			}
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

// The lease counts from before a request was sent, not from its reply: others count it
// from then on.
func TestLeaseCountsFromTheSending(t *testing.T) {
	const slow = 3 * time.Second
	for _, of := range []purpose{acquire, beat} {
		bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
			a := h.client(t)
			defer a.close(t)
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

// late is a clock whose timers fire when the test says so, in the order in which
// they were set.
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

// A process that was stopped past its deadline does not keep others from the key: its
// heartbeat is due and runs first, but too late.
func TestNoHeartbeatAfterTheDeadline(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		timers := &late{}
		o, conn := h.options, h.db.Client()
		c, err := dynamolock.New(clock.With(t.Context(), timers), conn, &o)
		if err != nil {
			t.Fatal(err)
		}
		lock, err := c.Acquire(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(lease)
		conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
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
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// WithReclaim reclaims from previous incarnations, not from another call of the same
// client that is just being granted the key.
func TestReclaimSparesACallUnderWay(t *testing.T) {
	for _, mode := range []dynamolock.Mode{dynamolock.FailOpen, dynamolock.FailClosed, dynamolock.FailClosedFenced} {
		bubble(t, dynamolock.Options{Mode: mode}, func(t *testing.T, h *harness) {
			a := h.client(t)
			defer a.close(t)
			a.conn.SetFault(on(acquire, 1, dynamofake.DelayReply(time.Second)))
			first := make(chan *holdfast.Lock)
			go func() { first <- a.hold(t, "k", holdfast.WithOwner("worker")) }()
			time.Sleep(h.db.Latency)
			if _, err := a.TryAcquire(t.Context(), "k", holdfast.WithOwner("worker"), holdfast.WithReclaim()); !errors.Is(err, holdfast.ErrHeld) {
				t.Errorf("%v: %v", mode, err)
			}
			lock := <-first
			time.Sleep(lease)
			if err := lock.Verify(t.Context()); err != nil {
				t.Errorf("%v: %v", mode, err)
			}
		})
	}
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
		a.close(t)
	})
}

// Servers close connections that were idle, sometimes under a request. That is no reason
// to report an outage.
func TestOneBrokenConnectionIsNoOutage(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a := h.client(t)
		defer a.close(t)
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
		if err := lock.Err(); err != nil {
			t.Error(err)
		}
	})
}
