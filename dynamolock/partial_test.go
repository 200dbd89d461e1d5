package dynamolock_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

// TestReleasesIntoSilence: bounds apart are for a partition. In an outage few requests are under way.
func TestReleasesIntoSilence(t *testing.T) {
	bubble(t, dynamolock.Options{Mode: dynamolock.FailClosed}, func(t *testing.T, h *harness) {
		a := h.client(t)
		var locks []*holdfast.Lock
		for i := range 2000 {
			locks = append(locks, a.hold(t, fmt.Sprint(i)))
		}
		a.conn.SetFault(always(dynamofake.Drop()))
		var all sync.WaitGroup
		for _, lock := range locks {
			all.Go(func() { _ = lock.Release(within(t, 5*time.Minute)) })
		}
		time.Sleep(time.Minute)
		for range 3 {
			a.conn.ResetCounts()
			time.Sleep(time.Minute)
			if n := a.requests(); n > 1200 {
				t.Errorf("%d requests in a minute of silence", n)
			}
		}
		a.conn.SetFault(nil)
		all.Wait()
	})
}
