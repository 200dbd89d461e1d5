package recordlock_test

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/recordlock/memstore"
	"github.com/holdfast-go/holdfast/locktest/logtest"
)

// A heartbeat that arrives after the release does not bring the item back.
func TestHeartbeatAfterRelease(t *testing.T) {
	bubble(t, modes[0], func(t *testing.T, h *harness) {
		a := h.client(t)
		lock := a.hold(t, "k")
		late := make(chan struct{}, 1)
		a.conn.SetFault(func(op memstore.Op) memstore.Fault {
			if purposeOf(op) == beat {
				late <- struct{}{}
				return memstore.Fault{Late: time.Second, LoseReply: true, Err: nil}
			}
			return memstore.Fault{}
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
		"throttled": throttled, "throttling": throttled, "500": errServer,
		"reset": errReset, "denied": denied.Err,
	}, func(t *testing.T, h *harness, err error) {
		logs := h.log()
		a, b := h.pair(t)
		lock, forgotten := a.hold(t, "k", holdfast.WithData([]byte("SECRET"))), a.hold(t, "forgotten")
		events := a.Events()
		<-events.Ready()
		time.Sleep(lease)
		a.conn.SetFault(on(beat, 1, memstore.Fault{Err: err, Permanent: err == denied.Err}))
		time.Sleep(lease)
		mustLive(t, lock)

		a.conn.SetFault(always(memstore.Fault{Err: err, Permanent: err == denied.Err}))
		released := make(chan error, 1)
		go func() { released <- forgotten.Release(t.Context()) }()
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
		h.store.Delete("forgotten") // as Time to Live does: no client has broken the lock
		a.conn.SetFault(nil)
		if got := <-released; err == throttled && (!errors.Is(got, holdfast.ErrLost) || !errors.Is(got, holdfast.ErrLeaseExpired)) {
			t.Errorf("Release of a lock that the store has forgotten: %v", got)
		}
		time.Sleep(lease)
		logs.Check(t, []string{"SECRET"},
			logtest.Want{Text: "connected", Level: slog.LevelInfo}, logtest.Want{Text: "disconnected", Level: slog.LevelWarn},
			logtest.Want{Text: "heartbeat failed", Level: slog.LevelDebug, Attrs: "key owner token error"})
	})
}

// A slow lock delays no other: no heartbeat, no Close.
func TestNothingIsHeldUp(t *testing.T) {
	bubble(t, modes[0], func(t *testing.T, h *harness) {
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
		a.conn.SetFault(func(op memstore.Op) (fault memstore.Fault) {
			if op.Key == "1" {
				fault = memstore.Fault{Lose: true}
			}
			return fault
		})
		<-locks[0].Done()
		time.Sleep(2 * lease)
		for _, lock := range locks[1:] {
			mustLive(t, lock)
		}
		a.conn.SetFault(nil)
		if d := took(func() { mustClose(t, a) }); d > h.opts.Heartbeat+time.Second {
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
		bubble(t, modes[0], func(t *testing.T, h *harness) {
			a := h.client(t)
			a.conn.SetFault(on(of, 1000, memstore.Fault{Delay: slow}))
			lock := a.hold(t, "k")
			for range 30 {
				touched := h.store.Record("k").Holders[0].Touched
				if most := touched.Add(lease - margin + time.Millisecond); lock.Deadline().After(most) {
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
	bubble(t, modes[0], func(t *testing.T, h *harness) {
		timers := &late{}
		a := h.openOn(t, timers, nil)
		lock := a.hold(t, "k")
		time.Sleep(lease)
		a.conn.SetFault(func(op memstore.Op) memstore.Fault {
			if purposeOf(op) == beat {
				t.Error("a heartbeat was sent for a lock that is over")
			}
			return memstore.Fault{}
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
	bubble(t, modes[0], func(t *testing.T, h *harness) {
		a := h.client(t)
		lock := a.hold(t, "k")
		a.conn.Cut()
		d := took(func() {
			if err := lock.Verify(t.Context()); !errors.Is(err, holdfast.ErrLeaseExpired) {
				t.Error(err)
			}
		})
		if d > lease+h.opts.Heartbeat+h.opts.Timeout {
			t.Errorf("it returned after %v", d)
		}
		a.conn.Heal()
		time.Sleep(lease)
	})
}

// Servers close idle connections, sometimes under a request: that is no outage.
func TestOneBrokenConnectionIsNoOutage(t *testing.T) {
	bubble(t, modes[0], func(t *testing.T, h *harness) {
		a := h.client(t)
		events := a.Events()
		<-events.Ready()
		lock := a.hold(t, "k")
		for range 5 {
			a.conn.SetFault(on(beat, 1, memstore.Fault{Err: errReset}))
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

func mustSet(t testing.TB, lock *holdfast.Lock, data string) {
	t.Helper()
	if err := lock.SetData(t.Context(), []byte(data)); err != nil {
		t.Errorf("SetData: %v", err)
	}
}

// onData injects a fault into the first requests that write some data.
func onData(data string, times int, fault memstore.Fault) func(memstore.Op) memstore.Fault {
	var sent atomic.Int64
	return func(op memstore.Op) memstore.Fault {
		if purposeOf(op) == beat && string(op.Holder.Data) == data && sent.Add(1) <= int64(times) {
			return fault
		}
		return memstore.Fault{}
	}
}

// TestDataThatIsThrottled: the table has no capacity for the data, but for heartbeats. The lock lives on,
// and its holder hears of a break.
func TestDataThatIsThrottled(t *testing.T) {
	inEach(t, modes, func(t *testing.T, h *harness) {
		a, b := h.pair(t)
		lock := a.hold(t, "k")
		a.conn.SetFault(onData("big", math.MaxInt, memstore.Fault{Err: throttled}))
		set := make(chan error, 1)
		began := time.Now()
		go func() { set <- lock.SetData(t.Context(), []byte("big")) }()
		a.conn.Calls()
		time.Sleep(5 * lease)
		mustLive(t, lock)
		if n, most := a.requests(), 20*int(time.Since(began)/h.opts.Heartbeat); n > most {
			t.Errorf("%d requests, at most %d expected", n, most)
		}
		info, err := b.Inspect(t.Context(), "k")
		if err == nil {
			err = b.Break(t.Context(), info)
		}
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * h.opts.Heartbeat)
		if err := lock.Err(); !errors.Is(err, holdfast.ErrBroken) {
			t.Errorf("after a break: %v", err)
		}
		if err := <-set; !errors.Is(err, holdfast.ErrBroken) {
			t.Errorf("SetData: %v", err)
		}
		a.conn.SetFault(nil)
	})
}

// Answers take longer than the pause between two beats. SetData is confirmed.
func TestSetDataWhereAnswersAreSlow(t *testing.T) {
	bubble(t, modes[0], func(t *testing.T, h *harness) {
		h.opts.Heartbeat = time.Second
		a := h.client(t)
		lock := a.hold(t, "k")
		a.conn.SetFault(always(memstore.Fault{Delay: 3 * time.Second / 2}))
		time.Sleep(lease)
		if err := lock.SetData(within(t, 5*time.Second), []byte("data")); err != nil {
			t.Error(err)
		}
		a.conn.SetFault(nil)
	})
}

// A request of SetData arrives late. It changes nothing once a later one, a heartbeat or the release was there.
func TestLateData(t *testing.T) {
	const late = 2 * time.Second
	for name, use := range map[string]func(t *testing.T, a, b *client, lock *holdfast.Lock) (want string){
		"repeated, then a later call": func(t *testing.T, _, _ *client, lock *holdfast.Lock) string {
			mustSet(t, lock, "old")
			mustSet(t, lock, "new")
			return "new"
		},
		"given up, then a later call": func(t *testing.T, _, _ *client, lock *holdfast.Lock) string {
			if err := lock.SetData(within(t, time.Millisecond), []byte("old")); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("given up: %v", err)
			}
			mustSet(t, lock, "new")
			return "new"
		},
		"given up, and a later call removed it": func(t *testing.T, _, _ *client, lock *holdfast.Lock) string {
			_ = lock.SetData(within(t, time.Millisecond), []byte("old"))
			mustSet(t, lock, "")
			return ""
		},
		"released, the next holder": func(t *testing.T, _, b *client, lock *holdfast.Lock) string {
			_ = lock.SetData(within(t, time.Millisecond), []byte("old"))
			mustRelease(t, lock)
			b.hold(t, "k", holdfast.WithData([]byte("next")))
			return "next"
		},
		"released, the same client again": func(t *testing.T, a, _ *client, lock *holdfast.Lock) string {
			_ = lock.SetData(within(t, time.Millisecond), []byte("old"))
			mustRelease(t, lock)
			a.hold(t, "k")
			return ""
		},
		"broken, the next holder": func(t *testing.T, _, b *client, lock *holdfast.Lock) string {
			_ = lock.SetData(within(t, time.Millisecond), []byte("old"))
			b.breakIt(t, "k", true)
			b.hold(t, "k", holdfast.WithData([]byte("next")))
			return "next"
		},
	} {
		t.Run(name, func(t *testing.T) {
			inEach(t, modes, func(t *testing.T, h *harness) {
				a, b := h.pair(t)
				lock := a.hold(t, "k")
				a.conn.SetFault(onData("old", 1, memstore.Fault{Late: late, LoseReply: true, Err: errReset}))
				want := use(t, a, b, lock)
				if got := h.data("k"); got != want {
					t.Errorf("at first %q, want %q", got, want)
				}
				time.Sleep(2 * late)
				if got := h.data("k"); got != want {
					t.Errorf("later %q, want %q", got, want)
				}
			})
		})
	}
}
