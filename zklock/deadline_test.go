package zklock_test

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/zkfake"
	"github.com/holdfast-go/holdfast/locktest"
	"github.com/holdfast-go/holdfast/zklock"
)

// The deadline is a sixth of the session timeout ahead at a grant and soon after it, and 0.43 of it later, as
// docs/operations.md says: with the margin taken off, while all goes well.
func TestDeadline_FromGrantOn_IsAsFarAheadAsDocumented(t *testing.T) {
	for name, waits := range map[string]bool{"free": false, "waited for": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				v := newVirtual(t, zkfake.Config{Members: 3}, []int{1}, zklock.CuratorNames)
				a, b := v.NewClient(t, locktest.ClientOptions{}), v.NewClient(t, locktest.ClientOptions{})
				defer a.Close(t.Context())
				defer b.Close(t.Context())
				for range 100 {
					time.Sleep(rand.N(2 * virtualSession))
					if waits {
						other, err := b.Acquire(t.Context(), "k")
						if err != nil {
							t.Fatal(err)
						}
						time.AfterFunc(rand.N(2*virtualSession), func() { _ = other.Release(t.Context()) })
					}
					lock, err := a.Acquire(t.Context(), "k")
					if err != nil {
						t.Fatal(err)
					}
					for since := time.Duration(0); since < virtualSession; since += virtualSession / 200 {
						least := 0.16 // a sixth less two round trips
						if since > virtualSession/2 {
							least = 0.42
						}
						if left := time.Until(lock.Deadline()).Seconds() / virtualSession.Seconds(); left < least {
							t.Fatalf("%v after the grant, %.3f of the timeout is left, less than %v", since, left, least)
						}
						time.Sleep(virtualSession / 200)
					}
					if err := lock.Release(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
			})
		})
	}
}
