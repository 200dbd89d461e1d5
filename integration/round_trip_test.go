package integration_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/verdict"
	"github.com/holdfast-go/holdfast/zklock"
)

// TestRoundTrip tests the rule in docs/operating.md for how the session timeout must
// relate to the round trip: at a twentieth of it no lock is lost; at a third every lock
// is, although no request fails.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		part    time.Duration // of the timeout, per round trip
		lost    bool
		timeout time.Duration
	}{
		"a twentieth": {20, false, 20 * time.Second}, // long enough for a machine that stalls
		"a third":     {3, true, 6 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			start(t)
			timeout := c.timeout
			p := proxy(t, server(t).Addr())
			client := dial(t, p.Addr(), &zklock.Options{SessionTimeout: timeout})
			var locks []*holdfast.Lock
			for range 4 {
				locks = append(locks, take(t, client, newKey(t)))
			}
			p.SetLatency(timeout / c.part / 2)
			defer p.SetLatency(0)
			limit := timeout * 5 / 4 // a lock lasts for less if nothing renews it
			if c.lost {
				limit = 2 * timeout
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			for _, lock := range locks {
				select {
				case <-lock.Done():
				case <-ctx.Done():
				}
				if err := lock.Err(); (err != nil) != c.lost {
					verdict.Fatalf(t, "with a round trip of %v for %v: %v; lost is to be %v", timeout/c.part, limit, err, c.lost)
				}
			}
		})
	}
}
