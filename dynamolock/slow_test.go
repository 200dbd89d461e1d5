package dynamolock_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

// beatsOf slows down the requests for a key, and counts its beats.
func beatsOf(key string, latency time.Duration, beats *atomic.Int64) func(dynamofake.Op) dynamofake.Fault {
	return func(op dynamofake.Op) dynamofake.Fault {
		if keyOf(op) != key {
			return dynamofake.Fault{}
		}
		if purposeOf(op) == beat {
			beats.Add(1)
		}
		return dynamofake.DelayReply(latency)
	}
}

// One partition answers late, though within Timeout, and all others at once: its locks live, and cost no more beats than others.
func TestSlowPartition(t *testing.T) {
	busy := map[string]func(t *testing.T, h *harness, a *client){
		"alone": func(*testing.T, *harness, *client) {},
		"other locks": func(t *testing.T, _ *harness, a *client) {
			for i := range 4 {
				a.hold(t, fmt.Sprint("other", i))
			}
		},
		"a waiter": func(t *testing.T, h *harness, a *client) {
			h.client(t).hold(t, "theirs")
			go func() { _, _ = a.Acquire(t.Context(), "theirs") }()
		},
	}
	for what, begin := range busy {
		for _, latency := range []time.Duration{300, 450, 600, 1000, 1500, 2000, 3000} {
			latency *= time.Millisecond
			alone(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
				a := h.client(t)
				begin(t, h, a)
				var beats atomic.Int64
				a.conn.SetFault(beatsOf("slow", latency, &beats))
				lock := a.hold(t, "slow")
				time.Sleep(20 * lease)
				if err := lock.Err(); err != nil {
					t.Errorf("%s, answers after %v: %v", what, latency, err)
				}
				if n, most := beats.Load(), int64(20*lease/a.Options().Heartbeat)*6/5; n > most {
					t.Errorf("%s, answers after %v: %d beats, want at most %d", what, latency, n, most)
				}
				a.conn.SetFault(nil)
			})
		}
	}
}

// Conflicts with transactions are answers, quick ones: after a while of nothing else, dead connections cost no lock.
func TestConflictsAreQuick(t *testing.T) {
	for phase := range 8 {
		alone(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
			a := h.client(t)
			lock := a.hold(t, "k")
			time.Sleep(lease + lease*time.Duration(phase)/8)
			a.conn.SetFault(always(dynamofake.Fail(dynamofake.TransactionConflict())))
			time.Sleep(lease / 2)
			a.conn.SetFault(nil)
			time.Sleep(time.Second)
			var dead atomic.Int32
			dead.Store(10)
			a.conn.SetFault(func(dynamofake.Op) dynamofake.Fault {
				if dead.Add(-1) >= 0 {
					return dynamofake.Drop()
				}
				return dynamofake.Fault{}
			})
			time.Sleep(2 * lease)
			mustLive(t, lock)
			a.conn.SetFault(nil)
		})
	}
}

// However long leases are, a call that failed is tried again soon, and the end of an outage is noticed soon.
func TestLongLeases(t *testing.T) {
	for _, long := range []time.Duration{time.Hour, 24 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			var ready atomic.Bool
			h := newHarness(t, &dynamolock.Options{Lease: long})
			h.options.OnEvent = onConnection(ready.Store)
			a := h.client(t)
			lock := a.hold(t, "k")
			a.conn.SetFault(on(release, 1, dynamofake.LoseReply(dynamofake.Reset())))
			if took := took(func() { mustRelease(t, lock) }); took > 5*time.Second {
				t.Errorf("lease of %v: a release of which one reply was lost took %v", long, took)
			}
			a.conn.SetFault(always(dynamofake.Fail(dynamofake.ServerError())))
			_, _ = a.TryAcquire(within(t, 5*time.Second), "x", once)
			time.Sleep(10 * time.Hour)
			a.conn.SetFault(nil)
			began := time.Now()
			for !ready.Load() && time.Since(began) < time.Hour {
				time.Sleep(time.Second)
			}
			if took := time.Since(began); took > time.Minute {
				t.Errorf("lease of %v: the end of an outage was noticed after %v", long, took)
			}
		})
	}
}
