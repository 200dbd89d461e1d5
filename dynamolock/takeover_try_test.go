package dynamolock_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

// tries takes the key by a client that has not seen it before, as a program does that tries once and ends.
func tries(t *testing.T, h *harness, opts ...holdfast.Option) (*holdfast.Lock, error) {
	t.Helper()
	return h.client(t).TryAcquire(t.Context(), "k", opts...)
}

// dies has a client reach nothing any more, until the test ends.
func (c *client) dies(t *testing.T) {
	t.Helper()
	c.conn.Cut()
	c.closed = true
	t.Cleanup(func() {
		c.conn.Heal()
		_ = c.Client.Close(context.Background()) // its lease was over long ago
	})
}

// D54. A try by which a program begins that then ends finds out that the holder is dead, if it may, whatever holds the key.
func TestTakeoverByATry(t *testing.T) {
	shared, permit := holdfast.WithShared(), holdfast.WithLimit(2)
	type takeover struct{ dead, live, waits, want []holdfast.Option }
	forEach(t, map[string]takeover{
		"alone":                 {},
		"readers":               {dead: []holdfast.Option{shared}},
		"alone, for a reader":   {want: []holdfast.Option{shared}},
		"a permit, for another": {dead: []holdfast.Option{permit}, live: []holdfast.Option{permit}, want: []holdfast.Option{permit}},
		"permits, for a lock":   {dead: []holdfast.Option{permit}},
		"a reader and a writer that waits, for a reader": {
			dead: []holdfast.Option{shared}, waits: []holdfast.Option{}, want: []holdfast.Option{shared},
		},
	}, func(t *testing.T, h *harness, c takeover) {
		a, b := h.client(t), h.client(t)
		a.hold(t, "k", c.dead...)
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
		var lock *holdfast.Lock
		var err error
		took := took(func() { lock, err = tries(t, h, c.want...) })
		if err != nil || took < lease-poll || took > lease+2*poll {
			t.Fatalf("%v, after %v", err, took)
		}
		mustVerify(t, lock)
	})
}

// D54. A holder that lives is not waited for; nor is one whose clock is wrong, or the client's own, for longer than until its next
// heartbeat.
func TestTakeoverOfALiveHolder(t *testing.T) {
	for name, jumps := range map[string]struct{ holder, other time.Duration }{
		"right clocks": {}, "the holder's clock is slow": {holder: -lease}, "the other's is fast": {other: 24 * time.Hour},
		"the holder's clock is fast": {holder: lease},
	} {
		for kind, opts := range map[string][]holdfast.Option{"alone": nil, "shared": {holdfast.WithShared()}} {
			t.Run(name+", "+kind, func(t *testing.T) {
				bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
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

// D54. What ends while a try watches it is taken at once; and a try that is given up leaves nothing.
func TestTakeoverMeanwhile(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a := h.client(t)
		lock := a.hold(t, "k")
		a.dies(t)
		time.Sleep(3 * lease)
		ctx, cancel := context.WithTimeout(t.Context(), lease/2)
		defer cancel()
		var held *holdfast.HeldError
		if _, err := h.client(t).TryAcquire(ctx, "k"); !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &held) || held.LastHeard.IsZero() {
			t.Errorf("given up: %v, %+v", err, held)
		}
		other := h.client(t)
		go func() {
			time.Sleep(lease / 2)
			other.breakIt(t, "k", true)
		}()
		b := h.client(t)
		var err error
		d := took(func() { lock, err = b.TryAcquire(t.Context(), "k") })
		if err != nil || d < lease/2 || d > lease/2+2*poll {
			t.Fatalf("%v, after %v", err, d)
		}
		mustRelease(t, lock)
	})
}

// D54, D46. A break of the dead holder's lock, before a try or while it watches, ends the watch of nobody.
func TestTakeoverAndBreak(t *testing.T) {
	for name, after := range map[string]time.Duration{"before": 0, "meanwhile": lease / 2} {
		for kind, opts := range map[string][]holdfast.Option{"alone": nil, "shared": {holdfast.WithShared()}} {
			t.Run(name+", "+kind, func(t *testing.T) {
				bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
					a, other := h.client(t), h.client(t)
					a.hold(t, "k", opts...)
					a.dies(t)
					time.Sleep(10 * lease)
					broken := make(chan struct{})
					go func() {
						defer close(broken)
						time.Sleep(after)
						other.breakIt(t, "k", false)
					}()
					if after == 0 {
						<-broken
					}
					var err error
					if d := took(func() { _, err = tries(t, h) }); err != nil || d > lease+2*poll {
						t.Errorf("%v, after %v", err, d)
					}
					<-broken
				})
			})
		}
	}
}

// D54. A writer that died keeps readers out for a lease, also those that try once and end while another reader lives, or after somebody
// has broken a grant.
func TestTakeoverBehindADeadWriter(t *testing.T) {
	forEach(t, map[string]bool{"a reader lives": false, "it was broken": true}, func(t *testing.T, h *harness, broken bool) {
		reader, writer := h.client(t), h.client(t)
		lock := reader.hold(t, "k", holdfast.WithShared())
		go func() { _, _ = writer.Acquire(t.Context(), "k") }()
		time.Sleep(3 * poll) // it keeps others out
		writer.dies(t)
		if broken {
			reader.dies(t)
		}
		time.Sleep(10 * lease)
		if broken {
			h.client(t).breakIt(t, "k", false)
		}
		next, err := tries(t, h, holdfast.WithShared())
		if err != nil {
			t.Fatal(err)
		}
		mustRelease(t, next)
		if !broken {
			mustVerify(t, lock)
		}
	})
}

// ... and a writer that lives is not waited for.
func TestTakeoverBehindALiveWriter(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		reader, writer := h.client(t), h.client(t)
		lock := reader.hold(t, "k", holdfast.WithShared())
		granted := writer.waits(t, "k")
		time.Sleep(10 * lease)
		waited := took(func() {
			if _, err := tries(t, h, holdfast.WithShared()); !errors.Is(err, holdfast.ErrHeld) {
				t.Errorf("%v", err)
			}
		})
		if most := reader.Options().Heartbeat + 2*poll; waited > most {
			t.Errorf("it took %v to find out that the writer lives, at most %v is allowed", waited, most)
		}
		mustRelease(t, lock)
		mustRelease(t, <-granted)
	})
}

// D54. A try that watches finds that its own first write has taken the key after all.
func TestTakeoverMeetsItself(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a, other := h.client(t), h.client(t)
		a.hold(t, "k")
		a.dies(t)
		time.Sleep(10 * lease)
		b := h.client(t)
		b.conn.SetFault(on(acquire, 1, dynamofake.DeliverLate(lease/2+3*poll/4, io.ErrUnexpectedEOF)))
		go func() {
			time.Sleep(lease/2 + poll/2)
			other.breakIt(t, "k", true)
		}()
		retry := holdfast.WithRetry(holdfast.Retry{Initial: 10 * time.Millisecond, Max: 10 * time.Millisecond})
		lock, err := b.TryAcquire(t.Context(), "k", retry)
		if err != nil {
			t.Fatal(err)
		}
		mustRelease(t, lock)
	})
}

// D54. A job of cron, each run of which is a process of its own that tries once, goes on after a crash, whatever the clock of the machine
// that crashed. While a clock that is fast has not passed, a run is refused at once.
func TestCronJobAfterACrash(t *testing.T) {
	const period = lease / 2
	forEach(t, map[string]time.Duration{"right": 0, "a lease slow": -lease, "a lease fast": lease}, func(t *testing.T, h *harness, ahead time.Duration) {
		a := h.client(t)
		a.clock.Jump(ahead)
		a.hold(t, "job")
		time.Sleep(3 * lease)
		a.dies(t)
		died := time.Now()
		for ran := false; !ran; time.Sleep(period) {
			began := time.Now()
			err := h.client(t).TryDo(t.Context(), "job", func(context.Context, *holdfast.Lock) error { ran = true; return nil })
			silent, took := began.Sub(died)+a.Options().Heartbeat-ahead, time.Since(began)
			switch {
			case ran != (err == nil), err != nil && !errors.Is(err, holdfast.ErrHeld):
				t.Fatal(err)
			case !ran && took > poll && ahead >= 0, silent > lease+a.Options().Heartbeat && !ran, took > lease+2*poll:
				t.Fatalf("%v after the crash: %v, after %v", began.Sub(died), err, took)
			}
		}
		if after := time.Since(died); after < lease-a.Options().Heartbeat {
			t.Errorf("it ran %v after the crash", after)
		}
	})
}

// D54. Tries of several keys watch all holders that seem to be dead at the same time, hold nothing meanwhile, and end with the first
// holder that lives; a try of any key takes what is free first.
func TestTakeoverOfSeveral(t *testing.T) {
	keys := []string{"a", "b", "c"}
	type several struct {
		live    string
		behind  time.Duration // the clock of its holder
		any     bool
		granted bool
		most    time.Duration
	}
	forEach(t, map[string]several{
		"all are dead":                     {granted: true, most: lease + 2*poll},
		"one lives":                        {live: "c", most: poll / 2},
		"one lives, and its clock is slow": {live: "c", behind: 2 * lease, most: lease/4 + 2*poll},
		"any, and all are dead":            {any: true, granted: true, most: lease + 2*poll},
		"any, and one lives":               {any: true, live: "a", behind: 2 * lease, granted: true, most: lease + 2*poll},
	}, func(t *testing.T, h *harness, c several) {
		a, b := h.client(t), h.client(t)
		b.clock.Jump(-c.behind)
		for _, key := range keys {
			if key == c.live {
				b.hold(t, key)
			} else {
				a.hold(t, key)
			}
		}
		a.dies(t)
		time.Sleep(10*lease + lease/10)
		var err error
		waited := took(func() {
			if c.any {
				_, err = h.client(t).AcquireAny(t.Context(), keys)
			} else {
				_, err = h.client(t).TryAcquireAll(t.Context(), keys)
			}
		})
		if (err == nil) != c.granted || err != nil && !errors.Is(err, holdfast.ErrHeld) || waited > c.most {
			t.Errorf("%v, after %v", err, waited)
		}
	})
}

// TestTakeover_OneReadFails_GoesOn: one throttled read late in the watch of a dead holder does not end the try.
func TestTakeover_OneReadFails_GoesOn(t *testing.T) {
	for name, c := range map[string]struct{ holder, after time.Duration }{
		"at the end": {lease, lease - poll/2}, "after the own lease": {3 * lease, 2 * lease},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
				a, b := h.client(t, func(o *dynamolock.Options) { o.Lease = c.holder }), h.client(t)
				a.hold(t, "k")
				a.dies(t)
				time.Sleep(3 * c.holder)
				began, failed := time.Now(), false
				b.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
					if failed || op.Name != "GetItem" || time.Since(began) < c.after {
						return dynamofake.Fault{}
					}
					failed = true
					return dynamofake.Fail(&types.ProvisionedThroughputExceededException{})
				})
				if _, err := b.TryAcquire(t.Context(), "k"); err != nil || !failed {
					t.Errorf("a read failed: %v, the try: %v", failed, err)
				}
			})
		})
	}
}
