package dynamolock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

const poll = dynamolock.DefaultPoll

// A release is noticed within a poll period, also in the middle of a lease, and
// however long that is.
func TestReleaseIsNoticed(t *testing.T) {
	bubble(t, dynamolock.Options{Lease: time.Hour}, func(t *testing.T, h *harness) {
		a, b := h.client(t), h.client(t)
		defer a.close(t)
		defer b.close(t)
		for i := range 20 {
			lock := a.hold(t, "k")
			granted := make(chan *holdfast.Lock)
			go func() { granted <- b.hold(t, "k") }()
			time.Sleep(poll + time.Duration(i)*poll/7)
			if err := lock.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			var next *holdfast.Lock
			late := took(func() { next = <-granted })
			if most := poll + h.db.Lag + 2*h.db.Latency; late > most {
				t.Errorf("noticed after %v, at most %v is allowed", late, most)
			}
			if err := next.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// However many wait in one client, one of them reads, once per period, and
// nothing is written.
func TestWaitersShareOnePoller(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a, b := h.client(t), h.client(t)
		defer a.close(t)
		lock := a.hold(t, "k")
		time.Sleep(h.db.Lag)
		const waiters = 100
		var mu sync.Mutex
		var tokens []holdfast.Token
		var wg sync.WaitGroup
		for range waiters {
			wg.Go(func() {
				lock, err := b.Acquire(t.Context(), "k")
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				tokens = append(tokens, lock.Token())
				mu.Unlock()
				if err := lock.Release(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		time.Sleep(3 * poll)
		if calls := b.conn.Calls(); calls["UpdateItem"] != 1 {
			t.Errorf("only the first has reason to write: %v", calls)
		}
		b.conn.ResetCounts()
		const periods = 60
		time.Sleep(periods * poll)
		if calls := b.conn.Calls(); calls["GetItem"] > periods+1 || calls["GetItem"] < periods-1 || len(calls) != 1 {
			t.Errorf("%d waiters, %d periods: %v", waiters, periods, calls)
		}
		if read, _ := b.conn.Consumed(); read > (periods+1)*0.5 {
			t.Errorf("they cost %v read units", read)
		}
		if err := lock.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		for i := range tokens[1:] {
			if tokens[i] >= tokens[i+1] {
				t.Fatalf("tokens do not rise: %v", tokens)
			}
		}
		b.close(t)
	})
}

// Whoever is first in line may give up, or fail; the next goes on, and asks no
// sooner than the first would have.
func TestTheLineGoesOn(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a, b := h.client(t), h.client(t)
		defer a.close(t)
		lock := a.hold(t, "k")
		var cancels []context.CancelFunc
		results := make(chan error)
		for range 10 {
			ctx, cancel := context.WithCancel(t.Context())
			cancels = append(cancels, cancel)
			go func() {
				_, err := b.Acquire(ctx, "k")
				results <- err
			}()
			synctest.Wait()
		}
		time.Sleep(2 * poll)
		b.conn.ResetCounts()
		for _, cancel := range cancels[:9] {
			time.Sleep(poll / 10)
			cancel()
			if err := <-results; !errors.Is(err, context.Canceled) || !errors.Is(err, holdfast.ErrHeld) {
				t.Error(err)
			}
		}
		if calls := b.conn.Calls(); calls["GetItem"] > 2 || calls["UpdateItem"] != 0 {
			t.Errorf("nine gave up within a period: %v", calls)
		}
		if err := lock.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-results; err != nil {
			t.Error(err)
		}
		cancels[9]()
		b.close(t)
	})
}

// Waiters that begin in the same moment do not stay in step.
func TestPollsAreSpread(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a := h.client(t)
		defer a.close(t)
		a.hold(t, "k")
		var mu sync.Mutex
		reads := make(map[int64]int) // tenth of a period: reads
		var clients []*client
		for range 40 {
			c := h.client(t)
			clients = append(clients, c)
			c.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
				if op.Name == "GetItem" {
					mu.Lock()
					defer mu.Unlock()
					reads[time.Now().UnixMilli()%poll.Milliseconds()*10/poll.Milliseconds()]++
				}
				return dynamofake.Fault{}
			})
			go func() { _, _ = c.Acquire(t.Context(), "k") }()
		}
		time.Sleep(20 * poll)
		mu.Lock()
		for tenth, n := range reads {
			if n > 40*20/2 {
				t.Errorf("%d of some 800 reads fall into tenth %d of the period: %v", n, tenth, reads)
			}
		}
		if len(reads) < 5 {
			t.Errorf("all reads fall into few parts of the period: %v", reads)
		}
		mu.Unlock()
		for _, c := range clients {
			c.close(t)
		}
	})
}

// A holder that is gone is taken over from when its lease is over on the
// observer's clock, not a poll period later, and never before.
func TestTakeover(t *testing.T) {
	for _, foreign := range []time.Duration{1500 * time.Millisecond, 5 * time.Second, lease, 3 * time.Minute} {
		t.Run(fmt.Sprint(foreign), func(t *testing.T) {
			bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
				a := h.client(t)
				defer a.close(t)
				h.set("k", npm("7", fmt.Sprint(foreign.Milliseconds()), "g"))
				time.Sleep(h.db.Lag)
				var lock *holdfast.Lock
				d := took(func() { lock = a.hold(t, "k") })
				if most := foreign + 3*h.db.Latency; d < foreign || d > most {
					t.Errorf("it took %v, want from %v to %v", d, foreign, most)
				}
				if lock.Token() != 8 {
					t.Errorf("token %v, want 8", lock.Token())
				}
			})
		})
	}
}

// An item that changes is that of a holder who lives, whatever changed. One that
// only an old replica shows again is not.
func TestNoTakeoverFromTheLiving(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		h.db.Lag = 3 * time.Second
		a := h.client(t)
		waits := make(chan error)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			_, err := a.Acquire(ctx, "k")
			waits <- err
		}()
		for i := range 20 { // a holder that renews late, but in time
			h.set("k", npm("7", "20000", string(rune('a'+i))))
			time.Sleep(lease - 50*time.Millisecond)
			if i := h.item("k"); tokenOf(i) != 7 {
				t.Fatalf("taken over from a holder that had renewed its lease: %v", i)
			}
		}
		cancel()
		if err := <-waits; !errors.Is(err, holdfast.ErrHeld) {
			t.Error(err)
		}
		a.close(t)
	})
}

// Clocks that are set wrong change nothing: neither the holder's nor the
// observer's.
func TestWallClocksAreNotCompared(t *testing.T) {
	for _, jump := range []time.Duration{-time.Hour, time.Hour} {
		for _, holders := range []bool{true, false} {
			bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
				a, b := h.client(t), h.client(t)
				defer a.close(t)
				defer b.close(t)
				if holders {
					a.clock.Jump(jump)
				} else {
					b.clock.Jump(jump)
				}
				lock := a.hold(t, "k")
				ctx, cancel := context.WithTimeout(t.Context(), 3*lease)
				defer cancel()
				if _, err := b.Acquire(ctx, "k"); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("a clock %v off: %v", jump, err)
				}
				if err := lock.Err(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// The wall clock goes forward by an hour under a holder: the machine may have
// been suspended, so it gives its locks up, and nobody else has them before.
func TestClockSetForwardUnderAHolder(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a, b := h.client(t), h.client(t)
		defer a.close(t)
		defer b.close(t)
		lock := a.hold(t, "k")
		done := make(chan bool)
		go func() {
			b.hold(t, "k")
			done <- isDone(lock)
		}()
		time.Sleep(lease)
		a.clock.Jump(time.Hour)
		if err := lock.Err(); !errors.Is(err, holdfast.ErrClockJump) {
			t.Error(err)
		}
		if !<-done {
			t.Error("two holders")
		}
	})
}

// With TrustLocalTime, a lock whose time has passed is taken at once; one whose
// item tells no time is watched, as always.
func TestTrustLocalTime(t *testing.T) {
	bubble(t, dynamolock.Options{TrustLocalTime: true}, func(t *testing.T, h *harness) {
		a := h.client(t)
		defer a.close(t)
		dead := npm("7", "20000", "g")
		dead["lockAcquiredTimeUnixMs"] = n(fmt.Sprint(time.Now().Add(-lease - 2*time.Second).UnixMilli()))
		h.set("dead", dead)
		if d := took(func() { a.hold(t, "dead") }); d > time.Second {
			t.Errorf("it took %v", d)
		}
		fresh := npm("7", "20000", "g")
		fresh["lockAcquiredTimeUnixMs"] = n(fmt.Sprint(time.Now().Add(-lease / 2).UnixMilli()))
		h.set("fresh", fresh)
		if d := took(func() { a.hold(t, "fresh") }); d < lease/2 || d > lease/2+3*time.Second {
			t.Errorf("it took %v", d)
		}
		h.set("untold", npm("7", "20000", "g"))
		if d := took(func() { a.hold(t, "untold") }); d < lease {
			t.Errorf("it took %v", d)
		}
	})
}

// Who only ever tries still finds out that a holder is gone.
func TestTriesObserve(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a := h.client(t)
		defer a.close(t)
		h.set("k", npm("7", "20000", "g"))
		for _, want := range []bool{false, false, true} {
			lock, err := a.TryAcquire(t.Context(), "k")
			if (err == nil) != want || (err != nil && !errors.Is(err, holdfast.ErrHeld)) {
				t.Errorf("%v, %v, want success %v", lock, err, want)
			}
			time.Sleep(lease * 2 / 3)
		}
	})
}

// What is remembered of keys that are only tried is bounded.
func TestManyKeysTried(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		h.db.Latency = 0
		a := h.client(t)
		defer a.close(t)
		for i := range 1200 {
			key := fmt.Sprint(i)
			h.set(key, npm("7", "20000", "g"))
			if _, err := a.TryAcquire(t.Context(), key); !errors.Is(err, holdfast.ErrHeld) {
				t.Fatal(err)
			}
		}
		if n := dynamolock.Lines(a.Client); n > 1024 {
			t.Errorf("%d keys are remembered", n)
		}
	})
}

// The state of the connection, of clients that hold, wait, or do nothing.
func TestConnectionEvents(t *testing.T) {
	for name, use := range map[string]func(t *testing.T, c *client){
		"holding": func(t *testing.T, c *client) { c.hold(t, "k") },
		"waiting": func(t *testing.T, c *client) {
			go func() { _, _ = c.Acquire(t.Context(), "theirs") }()
			time.Sleep(poll)
		},
		"idle": func(t *testing.T, c *client) {
			time.AfterFunc(poll, func() {
				retry := holdfast.WithRetry(holdfast.Retry{Attempts: 1})
				if _, err := c.TryAcquire(context.Background(), "k", retry); !errors.Is(err, holdfast.ErrDisconnected) {
					t.Error(err)
				}
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
				a, b := h.client(t), h.client(t)
				defer b.close(t)
				b.hold(t, "theirs")
				events := a.Events()
				<-events.Ready()
				use(t, a)
				a.conn.Cut()
				<-events.Disconnected()
				time.Sleep(lease)
				a.conn.Heal()
				d := took(func() { <-events.Ready() })
				if most := a.Options().Heartbeat + a.Options().Timeout + poll; d > most {
					t.Errorf("Ready after %v, want at most %v", d, most)
				}
				a.close(t)
			})
		})
	}
}

// A waiter that reclaims takes what another client gets under its owner name while
// it waits, and waits no longer for what its own client has.
func TestReclaimWhileWaiting(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a, b, c := h.client(t), h.client(t), h.client(t)
		defer a.close(t)
		defer b.close(t)
		defer c.close(t)
		stranger := c.hold(t, "k")
		type result struct {
			lock *holdfast.Lock
			err  error
		}
		results := make(chan result, 2)
		wait := func(opts ...holdfast.Option) {
			go func() {
				lock, err := a.Acquire(t.Context(), "k", append(opts, holdfast.WithOwner("worker"))...)
				results <- result{lock, err}
			}()
			synctest.Wait()
		}
		wait(holdfast.WithReclaim())
		time.Sleep(poll)
		i := h.item("k")
		i["owner"], i["guid"] = &types.AttributeValueMemberS{Value: "worker"}, &types.AttributeValueMemberB{Value: []byte("another process")}
		h.set("k", i)
		var r result
		if d := took(func() { r = <-results }); r.err != nil || d > poll+time.Second {
			t.Fatalf("after %v: %v, %v", d, r.lock, r.err)
		}
		<-stranger.Done()
		if err := r.lock.Release(t.Context()); err != nil {
			t.Fatal(err)
		}

		stranger = c.hold(t, "k")
		wait()
		time.Sleep(poll)
		wait(holdfast.WithReclaim())
		time.Sleep(poll)
		if err := stranger.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		first, second := <-results, <-results
		if first.err != nil {
			first, second = second, first
		}
		if first.err != nil || !errors.Is(second.err, holdfast.ErrHeld) {
			t.Errorf("%v, %v; one has it, the other is told ErrHeld", first.err, second.err)
		}
		if err := first.lock.Verify(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
