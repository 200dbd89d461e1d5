package dynamolock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

// once has an acquisition make one try.
var once = holdfast.WithRetry(holdfast.Retry{Attempts: 1})

// A client that closes with many locks has a bounded number of requests under way.
func TestCloseWithManyLocks(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a := h.client(t)
		const locks = 500
		for i := range locks {
			a.hold(t, fmt.Sprint("k", i))
		}
		a.conn.SetFault(always(dynamofake.Delay(50 * time.Millisecond)))
		a.conn.ResetCounts()
		a.close(t)
		if n := a.conn.Peak(); n > 100 {
			t.Errorf("%d requests at once", n)
		}
		for i := range locks {
			h.isFree(t, fmt.Sprint("k", i))
		}
	})
}
