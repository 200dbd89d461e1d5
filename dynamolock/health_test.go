package dynamolock_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

// failing fails the requests for one key.
func failing(key string, fault dynamofake.Fault, sent *atomic.Int64) func(dynamofake.Op) dynamofake.Fault {
	return func(op dynamofake.Op) dynamofake.Fault {
		if keyOf(op) != key {
			return dynamofake.Fault{}
		}
		sent.Add(1)
		return fault
	}
}

// traffic keeps a client busy with other keys until the returned function is called.
func (c *client) traffic(t *testing.T) (end func()) {
	var all sync.WaitGroup
	var stop atomic.Bool
	all.Go(func() {
		for !stop.Load() {
			lock, err := c.Acquire(t.Context(), "healthy", once)
			if err != nil {
				t.Error(err)
				return
			}
			mustRelease(t, lock)
			time.Sleep(20 * time.Millisecond)
		}
	})
	return func() { stop.Store(true); all.Wait() }
}

// One key fails for as long as it is tried, and all others are well: it is tried at the pace of the caller's Retry, and
// nobody is told of an outage again and again.
func TestOneFailingKey(t *testing.T) {
	forEach(t, map[string]dynamofake.Fault{
		"errors":             dynamofake.Fail(dynamofake.ServerError()),
		"silence":            dynamofake.Drop(),
		"broken connections": dynamofake.LoseReply(dynamofake.Reset()),
	}, func(t *testing.T, h *harness, fault dynamofake.Fault) {
		var events, sent atomic.Int64
		h.options.Hooks = holdfast.Hooks{Connection: func(holdfast.Connection) { events.Add(1) }}
		c := h.client(t)
		defer c.traffic(t)()
		time.Sleep(time.Second)
		events.Store(0)
		c.conn.SetFault(failing("failing", fault, &sent))
		if _, err := c.Acquire(t.Context(), "failing", holdfast.WithWait(time.Minute)); err == nil {
			t.Fatal("granted")
		}
		if n := sent.Load(); n > 40 {
			t.Errorf("%d requests within a minute", n)
		}
		if n := events.Load(); n > 2 {
			t.Errorf("%d events", n)
		}

		// What is left is looked for at the pace of the client.
		sent.Store(0)
		time.Sleep(time.Minute)
		if n := sent.Load(); n > 60 {
			t.Errorf("%d requests within another minute", n)
		}
		c.conn.SetFault(nil)
	})
}

// The writes of one key fail, its reads do not, and nothing else is asked for: the last of the tries is soon, and the reads
// end no outage again and again.
func TestOnlyWritesFail(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		var events, sent atomic.Int64
		h.options.Hooks = holdfast.Hooks{Connection: func(holdfast.Connection) { events.Add(1) }}
		c := h.client(t)
		c.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
			if purposeOf(op) == "" {
				return dynamofake.Fault{}
			}
			sent.Add(1)
			return dynamofake.Fail(dynamofake.ServerError())
		})
		if _, err := c.TryAcquire(t.Context(), "k", holdfast.WithRetry(holdfast.Retry{Attempts: 5, Initial: 2 * time.Second})); err == nil {
			t.Error("granted")
		}
		if n := sent.Load(); n < 5 || n > 10 {
			t.Errorf("%d tries, want 5, or some more", n)
		}
		for began := time.Now(); time.Since(began) < 10*time.Minute; time.Sleep(time.Second) {
			if _, err := c.TryAcquire(t.Context(), "k", once); err == nil {
				t.Error("granted")
			}
		}
		if n := events.Load(); n > 5 {
			t.Errorf("%d events", n)
		}
		c.conn.SetFault(nil)
	})
}
