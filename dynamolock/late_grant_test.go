package dynamolock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

// The machine is suspended while the request is under way: that counts for the lease, too.
func TestSuspendedWhileAcquiring(t *testing.T) {
	for _, percent := range []time.Duration{30, 50, 60, 70, 80, 85, 90} {
		t.Run(fmt.Sprint(int(percent), "% of a lease"), func(t *testing.T) {
			bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
				a := h.client(t)
				a.conn.SetFault(on(acquire, 1, dynamofake.DelayReply(time.Second)))
				go func() {
					time.Sleep(500 * time.Millisecond)
					a.clock.Jump(lease * percent / 100)
				}()
				lock := a.hold(t, "k")
				time.Sleep(2 * lease)
				mustLive(t, lock)
			})
		})
	}
}
