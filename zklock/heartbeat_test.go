package zklock

import (
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/zklock/internal/zktest"
)

// TestHeartbeatPhase checks that clients which take their first locks, or reconnect, at the same moment do not beat
// together, and that no heartbeat is later than it would be without that.
func TestHeartbeatPhase(t *testing.T) {
	sess := testSession(1)
	for name, c := range map[string]struct {
		begin  func(*heartbeat)
		period time.Duration
	}{
		"first lock":   {func(h *heartbeat) { h.add(&hold{sess: sess}) }, sess.Times().Heartbeat},
		"reconnection": {func(h *heartbeat) { h.reopened(sess) }, sess.Times().Idle},
	} {
		t.Run(name, func(t *testing.T) {
			phases := make(map[time.Duration]bool)
			for range 100 {
				clock := zktest.NewStillClock()
				host := zktest.Host(t, clock)
				sess.Lease = driver.NewLease(host, sess.Times().Session, nil)
				sess.Lease.Renew(host.Now())
				h := newHeartbeat(newEngine(t.Context(), host, Options{}, "", 0))
				c.begin(h)
				h.beat(sess)
				h.beat(sess)
				h.engine.tasks.Close(t.Context())
				first, next := clock.Timers[0], clock.Timers[1:]
				if first < c.period/2 || first > c.period || !slices.Equal(next, []time.Duration{c.period, c.period}) {
					t.Fatalf("heartbeats after %v, then %v", first, next)
				}
				phases[first] = true
			}
			if len(phases) < 50 {
				t.Errorf("%d phases in 100 clients", len(phases))
			}
		})
	}
}
