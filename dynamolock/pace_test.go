package dynamolock_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

// onConnection returns an OnEvent that tells whether the engine is reachable.
func onConnection(tell func(ready bool)) func(holdfast.Event) {
	return func(e holdfast.Event) {
		if e.Kind == holdfast.Ready || e.Kind == holdfast.Disconnected {
			tell(e.Kind == holdfast.Ready)
		}
	}
}

// calm returns an OnEvent that fails the test if the client reports an outage.
func calm(t *testing.T) func(holdfast.Event) {
	return onConnection(func(ready bool) {
		if !ready {
			t.Error("disconnected")
		}
	})
}

// Conflicts with transactions cost no lock and are no outage. The client retries soon, without a storm.
func TestTransactionConflicts(t *testing.T) {
	for _, mode := range []dynamolock.Mode{dynamolock.FailOpen, dynamolock.FailClosed} {
		alone(t, dynamolock.Options{Mode: mode, OnEvent: calm(t)}, func(t *testing.T, h *harness) {
			a := h.client(t)
			var mu sync.Mutex
			var last time.Time
			var kind purpose
			conflicts := 0
			a.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
				mu.Lock()
				defer mu.Unlock()
				if purposeOf(op) == "" {
					return dynamofake.Fault{}
				}
				if was := kind; conflicts%20 != 0 && was == purposeOf(op) { // a release does not wait for a heartbeat
					if d := time.Since(last); d < 10*time.Millisecond || d > 100*time.Millisecond {
						t.Errorf("tried again after %v", d)
					}
				}
				last, kind = time.Now(), purposeOf(op)
				if conflicts++; conflicts%20 != 0 {
					return dynamofake.Fail(dynamofake.TransactionConflict())
				}
				return dynamofake.Fault{}
			})
			lock := a.hold(t, "k", once)
			time.Sleep(10 * lease)
			mustRelease(t, lock)
			if conflicts < 30 {
				t.Errorf("%d conflicts", conflicts)
			}
		})
	}
}

// Ten connections that die silently, one after the other, cost no lock.
func TestDeadConnections(t *testing.T) {
	for _, mode := range []dynamolock.Mode{dynamolock.FailOpen, dynamolock.FailClosed} {
		const second, ms = time.Second, time.Millisecond
		for _, c := range []struct {
			locks         int
			latency, once time.Duration // of all answers, and of one that comes some heartbeats before
			dead          int32
			o             dynamolock.Options
		}{
			{locks: 1, dead: 10},
			{locks: 3, dead: 10},
			{1, 250 * ms, 0, 10, dynamolock.Options{}},
			{3, 250 * ms, 0, 10, dynamolock.Options{}},
			{1, 0, 2 * second, 10, dynamolock.Options{}},
			{1, 0, 0, 6, dynamolock.Options{Timeout: 6900 * ms}},
			{1, 0, 0, 5, dynamolock.Options{Heartbeat: 6600 * ms, Timeout: 6100 * ms}},
			{1, 0, 0, 6, dynamolock.Options{Heartbeat: second, Timeout: 8900 * ms}},
			{1, 0, 0, 8, dynamolock.Options{Timeout: 5 * second}},
			{3, 0, 0, 10, dynamolock.Options{Timeout: 6900 * ms}},
		} {
			c.o.Mode = mode
			alone(t, c.o, func(t *testing.T, h *harness) {
				a := h.client(t)
				slow := dynamofake.DelayReply(c.latency)
				a.conn.SetFault(always(slow))
				var held []*holdfast.Lock
				for _, key := range []string{"a", "b", "c"}[:c.locks] {
					held = append(held, a.hold(t, key))
				}
				a.conn.SetFault(always(dynamofake.DelayReply(max(c.latency, c.once))))
				time.Sleep(lease)
				a.conn.SetFault(always(slow))
				time.Sleep(3 * lease)
				var dead atomic.Int32
				dead.Store(c.dead)
				a.conn.SetFault(func(dynamofake.Op) dynamofake.Fault {
					if dead.Add(-1) >= 0 {
						return dynamofake.Drop()
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
		synctest.Test(t, func(t *testing.T) {
			h := newHarness(t, &dynamolock.Options{})
			a := h.client(t)
			lock := a.hold(t, "k")
			time.Sleep(lease)
			a.conn.SetFault(always(dynamofake.DelayReply(latency)))
			time.Sleep(20 * lease)
			mustLive(t, lock)
			a.conn.ResetCounts()
			time.Sleep(10 * lease)
			if n, most := a.conn.Calls()["UpdateItem"], 60; n > most {
				t.Errorf("%v: %d heartbeats in ten leases", latency, n)
			}
			a.conn.SetFault(nil)
		})
	}
}
