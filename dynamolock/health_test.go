package dynamolock_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
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
		h.options.OnEvent = onConnection(func(bool) { events.Add(1) })
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
		h.options.OnEvent = onConnection(func(bool) { events.Add(1) })
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

// Who failed in the moment in which an outage began is woken when it ends, too, whatever became of the key of the last failure.
func TestEndOfAnOutage(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		var ready atomic.Bool
		h.options.OnEvent = onConnection(ready.Store)
		c := h.client(t)
		mustRelease(t, c.hold(t, "well"))
		fail := always(dynamofake.Fail(dynamofake.ServerError()))
		c.conn.SetFault(fail)
		granted := make(chan time.Time)
		go func() {
			lock, err := c.Acquire(t.Context(), "a", holdfast.WithRetry(holdfast.Retry{Initial: 10 * time.Minute, Max: 10 * time.Minute}))
			if err != nil {
				t.Error(err)
				close(granted)
				return
			}
			mustRelease(t, lock)
			granted <- time.Now()
		}()
		time.Sleep(time.Second)
		for _, key := range []string{"b", "c"} {
			if _, err := c.TryAcquire(t.Context(), key, once); err == nil {
				t.Error("granted")
			}
		}
		synctest.Wait()
		if ready.Load() {
			t.Error("the outage is not noticed")
		}
		time.Sleep(time.Minute)
		began := time.Now()
		var sent atomic.Int64
		c.conn.SetFault(failing("c", dynamofake.Fail(dynamofake.ServerError()), &sent))
		if d := (<-granted).Sub(began); d > 2*time.Minute { // the next probe but one
			t.Errorf("after %v", d)
		}
		synctest.Wait()
		if !ready.Load() {
			t.Error("the end of the outage is not noticed")
		}
		c.conn.SetFault(nil)
	})
}

// The key whose failure began an outage fails alone when it is over. The client has nothing to do, and learns of the end.
func TestProbesOfAFailingKey(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		var ready atomic.Bool
		h.options.OnEvent = onConnection(ready.Store)
		c := h.client(t)
		mustRelease(t, c.hold(t, "well"))
		if _, err := c.Inspect(t.Context(), "k"); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second)
		c.conn.SetFault(always(dynamofake.Fail(dynamofake.Throttled())))
		if _, err := c.TryAcquire(t.Context(), "k", once); err == nil {
			t.Error("granted")
		}
		time.Sleep(time.Minute)
		if ready.Load() {
			t.Error("the outage is not noticed")
		}
		var sent atomic.Int64
		c.conn.SetFault(failing("k", dynamofake.Fail(dynamofake.Throttled()), &sent))
		time.Sleep(time.Minute)
		if !ready.Load() {
			t.Error("the end of the outage is not noticed")
		}
		c.conn.SetFault(nil)
	})
}

// Nothing was answered but a List, which is of no key, while the reads of one key failed: a probe of that would tell nothing.
func TestOutageBehindAList(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		var ready atomic.Bool
		h.options.OnEvent = onConnection(ready.Store)
		c := h.client(t)
		var sent atomic.Int64
		c.conn.SetFault(failing("k", dynamofake.Fail(dynamofake.ServerError()), &sent))
		for i := range 120 {
			if i == 60 {
				if !ready.Load() {
					t.Error("a key that fails alone is an outage")
				}
				c.conn.SetFault(always(dynamofake.Fail(dynamofake.ServerError())))
			}
			if _, err := c.Inspect(within(t, time.Second), "k"); err == nil {
				t.Error("answered")
			}
			if i < 60 {
				if _, err := c.list(t, ""); err != nil {
					t.Error(err)
				}
			}
			time.Sleep(time.Second)
		}
		if ready.Load() {
			t.Error("the outage is not noticed")
		}
		c.conn.SetFault(nil)
	})
}

// An outage begins when the only request that fails from then on has failed before, and been its key's own trouble.
func TestOutageBehindAnAnswer(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		var ready atomic.Bool
		h.options.OnEvent = onConnection(ready.Store)
		c := h.client(t)
		var sent atomic.Int64
		c.conn.SetFault(failing("k", dynamofake.Drop(), &sent))
		over := make(chan struct{})
		go func() {
			defer close(over)
			if lock, err := c.Acquire(t.Context(), "k"); err != nil {
				t.Error(err)
			} else {
				mustRelease(t, lock)
			}
		}()
		for range 60 {
			time.Sleep(time.Second)
			if _, err := c.Inspect(t.Context(), "well"); err != nil {
				t.Error(err)
			}
		}
		if !ready.Load() {
			t.Error("a key that fails alone is an outage")
		}
		c.conn.SetFault(always(dynamofake.Drop()))
		time.Sleep(time.Minute)
		if ready.Load() {
			t.Error("the outage is not noticed")
		}
		c.conn.SetFault(nil)
		<-over
	})
}

// What a user's Retry allows is not used up by what happens to other keys.
func TestOneFailingKeyAndAttempts(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		var sent atomic.Int64
		c := h.client(t)
		defer c.traffic(t)()
		c.conn.SetFault(failing("failing", dynamofake.Fail(dynamofake.ServerError()), &sent))
		took := took(func() {
			_, err := c.Acquire(t.Context(), "failing", holdfast.WithRetry(holdfast.Retry{Attempts: 8, Initial: time.Second}))
			if !errors.Is(err, holdfast.ErrDisconnected) {
				t.Error(err)
			}
		})
		if n := sent.Load(); n < 8 || took < 20*time.Second {
			t.Errorf("%d requests in %v", n, took)
		}
		c.conn.SetFault(nil)
	})
}

// An outage of the whole table is reported once, and ends for all keys.
func TestOutageOfAll(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		var mu sync.Mutex
		var events []bool
		h.options.OnEvent = onConnection(func(ready bool) {
			mu.Lock()
			defer mu.Unlock()
			events = append(events, ready)
		})
		c := h.client(t)
		var held []*holdfast.Lock
		for _, key := range []string{"a", "b", "c", "d"} {
			held = append(held, c.hold(t, key))
		}
		for range 3 {
			time.Sleep(lease)
			mu.Lock()
			events = nil
			mu.Unlock()
			c.conn.SetFault(always(dynamofake.Fail(dynamofake.ServerError())))
			time.Sleep(lease / 2)
			c.conn.SetFault(nil)
			time.Sleep(lease / 2)
			synctest.Wait()
			mu.Lock()
			if len(events) != 2 || events[0] || !events[1] {
				t.Errorf("%v", events)
			}
			mu.Unlock()
		}
		for _, lock := range held {
			mustLive(t, lock)
		}
	})
}
