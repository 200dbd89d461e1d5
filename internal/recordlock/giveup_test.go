package recordlock_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/driver/drivertest"
	"github.com/holdfast-go/holdfast/internal/recordlock"
	"github.com/holdfast-go/holdfast/internal/recordlock/memstore"
)

// An operator breaks a grant before the call knows of it. The call takes the key anew: it does not wait for the end of its own lease, a try
// is not refused, and no broken lock is granted.
func TestBrokenBeforeItIsKnown(t *testing.T) {
	for _, try := range []bool{false, true} {
		for _, shared := range []bool{false, true} {
			for _, refusedFor := range []time.Duration{2 * time.Second, lease / 2} {
				t.Run(fmt.Sprintf("try %v, shared %v, %v", try, shared, refusedFor), func(t *testing.T) {
					bubble(t, modes[0], func(t *testing.T, h *harness) {
						a, b := h.pair(t)
						began := time.Now()
						a.conn.SetFault(func(memstore.Op) memstore.Fault {
							switch since := time.Since(began); {
							case since == 0:
								return memstore.Fault{LoseReply: true, Err: io.ErrUnexpectedEOF}
							case since < refusedFor:
								return memstore.Fault{Err: refused}
							}
							return memstore.Fault{}
						})
						time.AfterFunc(time.Second, func() { b.breakIt(t, "k", false) })
						opts := []holdfast.Option{holdfast.WithRetry(holdfast.Retry{Initial: 10 * time.Millisecond, Max: 10 * time.Millisecond})}
						if shared {
							opts = append(opts, holdfast.WithShared())
						}
						acquire := a.Acquire
						if try {
							acquire = a.TryAcquire
						}
						lock, err := acquire(t.Context(), "k", opts...)
						if err != nil {
							t.Fatalf("after %v: %v", time.Since(began), err)
						}
						if d := time.Since(began) - refusedFor; d > 3*time.Second {
							t.Errorf("after %v", d)
						}
						time.Sleep(lease)
						mustVerify(t, lock)
						mustRelease(t, lock)
						h.isFree(t, "k")
					})
				})
			}
		}
	}
}

// A call that gives up during its write returns at once. Whenever the write arrives, the key is free in the end.
func TestGiveUpWithAWriteUnderWay(t *testing.T) {
	forEach(t, map[string]memstore.Fault{
		"slow":              {Late: time.Second},
		"slow reply":        {Delay: time.Second},
		"lost reply":        {LoseReply: true},
		"lost":              {Lose: true},
		"late":              {Late: time.Second, LoseReply: true, Err: nil},
		"later":             {Late: lease - time.Second, LoseReply: true, Err: nil},
		"after its timeout": {Delay: lease / 2},
	}, func(t *testing.T, h *harness, fault memstore.Fault) {
		a := h.client(t)
		a.conn.SetFault(on(acquire, 1, fault))
		ctx := within(t, 100*time.Millisecond)
		if d := took(func() {
			if _, err := a.Acquire(ctx, "k"); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, holdfast.ErrDisconnected) {
				t.Errorf("%v", err)
			}
		}); d != 100*time.Millisecond {
			t.Errorf("it returned after %v", d)
		}
		time.Sleep(2 * lease)
		h.isFree(t, "k")
		synctest.Wait()
		a.conn.Calls()
		time.Sleep(lease)
		if calls, _ := a.conn.Calls(); len(calls) != 0 {
			t.Errorf("two leases later, the client still asks: %v", calls)
		}
	})
}

// leaveLate has a client give up two calls for k. The write of the first arrives only when that time has passed; that of the second takes
// the key at once, and its answer comes when the worker that looks for the first has seen it.
func leaveLate(t *testing.T, c *client, late time.Duration) {
	t.Helper()
	c.conn.SetFault(on(acquire, 1, memstore.Fault{Late: late, LoseReply: true, Err: io.ErrUnexpectedEOF}))
	if _, err := c.TryAcquire(t.Context(), "k", once); err == nil {
		t.Fatal("granted")
	}
	c.conn.SetFault(on(acquire, 1, memstore.Fault{Delay: 3 * time.Second}))
	if _, err := c.Acquire(within(t, 50*time.Millisecond), "k"); err == nil {
		t.Fatal("granted")
	}
	time.Sleep(4 * time.Second)
}

// A client with two writes without an answer closes: Close reports that the key may stay held.
func TestFreedForAnotherAndClosed(t *testing.T) {
	inEach(t, modes[1:], func(t *testing.T, h *harness) {
		a := h.client(t)
		leaveLate(t, a, 2*time.Minute)
		err := a.Close(context.WithoutCancel(t.Context()))
		time.Sleep(20 * time.Minute)
		if len(h.store.Record("k").Holders) > 0 && err == nil {
			t.Error("Close = nil, and the key is held for ever")
		}
	})
}

// The first write of an acquisition has no answer, is repeated, and arrives after the lock has ended or the call was given up. The store
// refuses it, or the client removes its grant.
func TestLateRequests(t *testing.T) {
	type test struct {
		late  []time.Duration // by which the first writes arrive late
		after time.Duration   // when the last has arrived, and has been undone
		use   func(t *testing.T, a, b *client) (last holdfast.Token)
	}
	both := []time.Duration{lease / 2, 2 * time.Second}
	forEach(t, map[string]test{
		"released": {[]time.Duration{lease / 2}, lease / 2, func(t *testing.T, a, _ *client) holdfast.Token {
			lock := a.hold(t, "k")
			mustRelease(t, lock)
			return lock.Token()
		}},
		"released after heartbeats": {[]time.Duration{lease * 3 / 2}, lease / 2, func(t *testing.T, a, _ *client) holdfast.Token {
			lock := a.hold(t, "k")
			time.Sleep(lease)
			mustRelease(t, lock)
			return lock.Token()
		}},
		// ... whose guid hides the first.
		"another holder in between": {[]time.Duration{time.Second}, lease, func(t *testing.T, a, b *client) holdfast.Token {
			mustRelease(t, a.hold(t, "k"))
			mustRelease(t, b.hold(t, "k"))
			return 0
		}},
		// A worker asks four times in a lease, at least.
		"broken": {[]time.Duration{lease / 2}, 3*lease/4 + time.Second, func(t *testing.T, a, b *client) holdfast.Token {
			lock := a.hold(t, "k")
			b.breakIt(t, "k", false)
			<-lock.Done()
			return 0
		}},
		// The lock stays broken, and the next grant has another token.
		"broken at once": {[]time.Duration{time.Second}, 0, func(t *testing.T, a, b *client) holdfast.Token {
			lock := a.hold(t, "k")
			b.breakIt(t, "k", true)
			mustRelease(t, b.hold(t, "k"))
			time.Sleep(5 * lease)
			if err := lock.Err(); err == nil {
				t.Errorf("token %d is still valid for its holder", lock.Token())
			}
			if err := lock.Release(t.Context()); !errors.Is(err, holdfast.ErrLost) {
				t.Errorf("Release = %v, want ErrLost", err)
			}
			return 0
		}},
		// To undo the first is not enough.
		"two, and given up": {both, lease/2 + time.Second, func(t *testing.T, a, b *client) holdfast.Token {
			if _, err := a.TryAcquire(t.Context(), "k", holdfast.WithRetry(holdfast.Retry{Attempts: 2})); err == nil {
				t.Fatal("granted")
			}
			time.Sleep(lease / 4)
			mustRelease(t, b.hold(t, "k"))
			return 0
		}},
	}, func(t *testing.T, h *harness, c test) {
		a, b := h.pair(t)
		a.conn.SetFault(func(op memstore.Op) memstore.Fault {
			if purposeOf(op) != acquire || len(c.late) == 0 {
				return memstore.Fault{}
			}
			d := c.late[0]
			c.late = c.late[1:]
			return memstore.Fault{Late: d, LoseReply: true, Err: errReset}
		})
		last := c.use(t, a, b)
		time.Sleep(c.after)
		if i := h.store.Record("k"); len(c.late) > 0 || len(i.Holders) > 0 || last != 0 && i.Token != last {
			t.Errorf("held by nobody: %v", i)
		}
		if d := took(func() { b.hold(t, "k") }); d > lease/2 {
			t.Errorf("the next one waits for %v", d)
		}
	})
}

// taking acquires and releases k, and sends what comes of it.
func (c *client) taking(t *testing.T, opts ...holdfast.Option) <-chan error {
	result := make(chan error, 1)
	ctx := within(t, 10*lease)
	go func() {
		lock, err := c.Acquire(ctx, "k", opts...)
		if err == nil {
			err = lock.Release(context.Background())
		}
		result <- err
	}()
	return result
}

// A late write takes the key for a call that is not the first of its client's line.
func TestSecondInLineMeetsItsLateWrite(t *testing.T) {
	inEach(t, modes, func(t *testing.T, h *harness) {
		a, b := h.pair(t)
		held := a.hold(t, "k")
		time.Sleep(time.Second)
		first, second := b.secondInLine(t)
		mustRelease(t, held)
		released := time.Now()
		if err1, err2 := <-first, <-second; err1 != nil || err2 != nil || time.Since(released) > lease/2 {
			t.Errorf("after %v: %v; %v", time.Since(released), err1, err2)
		}
		time.Sleep(20 * time.Minute) // until no write without an answer can arrive, whichever got the key
	})
}

// secondInLine starts two calls that wait for a key. A late write of the second is about to arrive, and by then the first leads the line.
func (c *client) secondInLine(t *testing.T) (first, second <-chan error) {
	t.Helper()
	const late = 4 * time.Second
	var sent atomic.Int64
	c.conn.SetFault(func(op memstore.Op) memstore.Fault {
		if purposeOf(op) == acquire {
			switch sent.Add(1) {
			case 1:
				return memstore.Fault{Err: refused}
			case 2:
				return memstore.Fault{Late: late, LoseReply: true, Err: io.ErrUnexpectedEOF}
			}
		}
		return memstore.Fault{}
	})
	retry := func(pause time.Duration) holdfast.Option {
		return holdfast.WithRetry(holdfast.Retry{Initial: pause, Max: pause})
	}
	first = c.taking(t, retry(2*time.Second)) // it rests while the second writes, and is back before that write arrives
	time.Sleep(20 * time.Millisecond)
	second = c.taking(t, retry(100*time.Millisecond))
	time.Sleep(late - 30*time.Millisecond)
	return first, second
}

// R15. The caller's Retry panics, and the caller recovers, as net/http does. The client frees the grant of the unanswered write.
func TestRetryPanics(t *testing.T) {
	inEach(t, modes, func(t *testing.T, h *harness) {
		a, b := h.pair(t)
		a.conn.SetFault(on(acquire, 1, memstore.Fault{LoseReply: true, Err: io.ErrUnexpectedEOF}))
		func() {
			defer func() {
				if recover() == nil {
					t.Error("Retry was not asked")
				}
			}()
			_, _ = a.Acquire(t.Context(), "k", holdfast.WithRetry(holdfast.Retry{Delay: func(int) (time.Duration, bool) { panic("in Delay") }}))
		}()
		if err := <-b.taking(t); err != nil {
			t.Error(err)
		}
	})
}

// mute is a store whose answer to a Take is late, and lacks the record.
type mute struct{ recordlock.Store }

func (m mute) Take(ctx context.Context, key string, h recordlock.Holder, mode driver.Mode) (recordlock.Record, bool, error) {
	_, done, err := m.Store.Take(ctx, key, h, mode)
	time.Sleep(time.Second)
	return recordlock.Record{}, done, err
}

// The answer to a write lacks the grant. The key is free in the end, also if the call had given up before the answer.
func TestAnswerWithoutTheGrant(t *testing.T) {
	inEach(t, modes, func(t *testing.T, h *harness) {
		a := h.openOn(t, &drivertest.Clock{}, func(store recordlock.Store) recordlock.Store { return mute{store} })
		for _, d := range []time.Duration{100 * time.Millisecond, time.Minute} {
			if _, err := a.Acquire(within(t, d), "k"); err == nil {
				t.Fatal("granted")
			}
			time.Sleep(2 * lease)
			h.isFree(t, "k")
		}
	})
}
