package recordlock_test

import (
	"cmp"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/recordlock"
	"github.com/holdfast-go/holdfast/internal/recordlock/memstore"
)

// onConnection returns an OnEvent that tells whether the engine is reachable.
func onConnection(tell func(ready bool)) func(holdfast.Event) {
	return func(e holdfast.Event) {
		if e.Kind == holdfast.Ready || e.Kind == holdfast.Disconnected {
			tell(e.Kind == holdfast.Ready)
		}
	}
}

// Ten connections that die silently, one after the other, cost no lock.
func TestDeadConnections(t *testing.T) {
	for _, m := range modes {
		const second, ms = time.Second, time.Millisecond
		for _, c := range []struct {
			locks         int
			latency, once time.Duration // of all answers, and of one that comes some heartbeats before
			dead          int32
			o             recordlock.Options // 0 is the default
		}{
			{locks: 1, dead: 10},
			{locks: 3, dead: 10},
			{1, 250 * ms, 0, 10, recordlock.Options{}},
			{3, 250 * ms, 0, 10, recordlock.Options{}},
			{1, 0, 2 * second, 10, recordlock.Options{}},
			{1, 0, 0, 6, recordlock.Options{Timeout: 6900 * ms}},
			{1, 0, 0, 5, recordlock.Options{Heartbeat: 6600 * ms, Timeout: 6100 * ms}},
			{1, 0, 0, 6, recordlock.Options{Heartbeat: second, Timeout: 8900 * ms}},
			{1, 0, 0, 8, recordlock.Options{Timeout: 5 * second}},
			{3, 0, 0, 10, recordlock.Options{Timeout: 6900 * ms}},
		} {
			bubble(t, m, func(t *testing.T, h *harness) {
				h.opts.Heartbeat = cmp.Or(c.o.Heartbeat, h.opts.Heartbeat)
				h.opts.Timeout = cmp.Or(c.o.Timeout, h.opts.Timeout)
				a := h.client(t)
				slow := memstore.Fault{Delay: c.latency}
				a.conn.SetFault(always(slow))
				var held []*holdfast.Lock
				for _, key := range []string{"a", "b", "c"}[:c.locks] {
					held = append(held, a.hold(t, key))
				}
				a.conn.SetFault(always(memstore.Fault{Delay: max(c.latency, c.once)}))
				time.Sleep(lease)
				a.conn.SetFault(always(slow))
				time.Sleep(3 * lease)
				var dead atomic.Int32
				dead.Store(c.dead)
				a.conn.SetFault(func(memstore.Op) memstore.Fault {
					if dead.Add(-1) >= 0 {
						return memstore.Fault{Lose: true}
					}
					return slow
				})
				time.Sleep(2 * lease)
				for _, lock := range held {
					mustLive(t, lock)
				}
				if n := dead.Load(); n >= 0 {
					t.Errorf("%d dead connections are left", n)
				}
			})
		}
	}
}

// A slow table costs no lock either: the short limits apply only after fast replies.
func TestSlowAnswers(t *testing.T) {
	for _, latency := range []time.Duration{100 * time.Millisecond, time.Second, 2 * time.Second, 3 * time.Second} {
		bubble(t, modes[0], func(t *testing.T, h *harness) {
			a := h.client(t)
			lock := a.hold(t, "k")
			time.Sleep(lease)
			a.conn.SetFault(always(memstore.Fault{Delay: latency}))
			time.Sleep(20 * lease)
			mustLive(t, lock)
			a.conn.Calls()
			time.Sleep(10 * lease)
			if n, most := a.requests(), 60; n > most {
				t.Errorf("%v: %d heartbeats in ten leases", latency, n)
			}
			a.conn.SetFault(nil)
		})
	}
}

// beatsOf slows down the requests for a key, and counts its beats.
func beatsOf(key string, latency time.Duration, beats *atomic.Int64) func(memstore.Op) memstore.Fault {
	return func(op memstore.Op) memstore.Fault {
		if op.Key != key {
			return memstore.Fault{}
		}
		if purposeOf(op) == beat {
			beats.Add(1)
		}
		return memstore.Fault{Delay: latency}
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
			bubble(t, modes[0], func(t *testing.T, h *harness) {
				a := h.client(t)
				begin(t, h, a)
				var beats atomic.Int64
				a.conn.SetFault(beatsOf("slow", latency, &beats))
				lock := a.hold(t, "slow")
				time.Sleep(20 * lease)
				if err := lock.Err(); err != nil {
					t.Errorf("%s, answers after %v: %v", what, latency, err)
				}
				if n, most := beats.Load(), int64(20*lease/h.opts.Heartbeat)*6/5; n > most {
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
		bubble(t, modes[0], func(t *testing.T, h *harness) {
			a := h.client(t)
			lock := a.hold(t, "k")
			time.Sleep(lease + lease*time.Duration(phase)/8)
			a.conn.SetFault(always(memstore.Fault{Err: busy}))
			time.Sleep(lease / 2)
			a.conn.SetFault(nil)
			time.Sleep(time.Second)
			var dead atomic.Int32
			dead.Store(10)
			a.conn.SetFault(func(memstore.Op) memstore.Fault {
				if dead.Add(-1) >= 0 {
					return memstore.Fault{Lose: true}
				}
				return memstore.Fault{}
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
		bubble(t, modes[0], func(t *testing.T, h *harness) {
			var ready atomic.Bool
			h.setLease(long)
			h.onEvent = onConnection(ready.Store)
			a := h.client(t)
			lock := a.hold(t, "k")
			a.conn.SetFault(on(release, 1, memstore.Fault{LoseReply: true, Err: errReset}))
			if took := took(func() { mustRelease(t, lock) }); took > 5*time.Second {
				t.Errorf("lease of %v: a release of which one reply was lost took %v", long, took)
			}
			a.conn.SetFault(always(memstore.Fault{Err: errServer}))
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
