package integration_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/verdict"
	"github.com/holdfast-go/holdfast/zklock"
)

// TestRoundTrip tests the rule in docs/operations.md for how the session timeout must
// relate to the round trip: at a twentieth of it no lock is lost; at a third every lock
// is, although no request fails.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		part time.Duration // of the timeout, per round trip
		lost bool
	}{
		"a twentieth": {20, false},
		"a third":     {3, true},
	} {
		t.Run(name, func(t *testing.T) {
			const timeout = 20 * time.Second
			play(t, &zklock.Options{SessionTimeout: timeout}, func(t *testing.T, s *scene) {
				var locks []*holdfast.Lock
				for range 4 {
					locks = append(locks, take(t, s.client, newKey(t)))
				}
				s.proxy.SetLatency(timeout / c.part / 2)
				defer s.proxy.SetLatency(0)
				const limit = 10 * timeout
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
		})
	}
}
