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

// Writes are throttled for as long as many want a free key. Of the contenders of a client one writes, and less and less often;
// only those that did not know may have written before.
func TestManyWantAThrottledKey(t *testing.T) {
	for name, acquire := range map[string]func(t *testing.T, c *client) error{
		"waiters": func(t *testing.T, c *client) error {
			_, err := c.Acquire(t.Context(), "k", holdfast.WithWait(time.Minute))
			return err
		},
		"tries": func(t *testing.T, c *client) error {
			_, err := c.TryAcquire(within(t, time.Minute), "k")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
				c := h.client(t)
				var writes atomic.Int64
				c.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
					if purposeOf(op) == "" {
						return dynamofake.Fault{}
					}
					writes.Add(1)
					return dynamofake.Fail(dynamofake.Throttled())
				})
				time.AfterFunc(poll/100, func() { writes.Store(0) })
				var all sync.WaitGroup
				for range 200 {
					all.Go(func() {
						if err := acquire(t, c); err == nil {
							t.Error("granted")
						}
					})
				}
				all.Wait()
				if n := writes.Load(); n > 120 {
					t.Errorf("%d writes within a minute", n)
				}
				c.conn.SetFault(nil)
			})
		})
	}
}
