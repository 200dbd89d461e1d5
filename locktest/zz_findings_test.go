package locktest

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// TestFinding_PollingQueue: a correct engine with a queue whose waiters learn everything by polls. At each look it tells the place, as
// the sixth obligation of Acquire says.
func TestFinding_PollingQueue(t *testing.T) {
	for _, period := range []time.Duration{400 * time.Millisecond, 500 * time.Millisecond, 700 * time.Millisecond, time.Second} {
		t.Run(period.String(), func(t *testing.T) {
			polls := replaced(func(f *faulty, _ driver.Host) {
				f.acquire = func(ctx context.Context, req *driver.Request) (driver.Grant, error) {
					type result struct {
						g   driver.Grant
						err error
					}
					done := make(chan result, 1)
					inner := *req
					ahead := 0
					inner.Queued = func(n int) {
						if ahead == 0 {
							req.Queued(n)
						}
						ahead = n
					}
					go func() {
						g, err := f.Driver.Acquire(ctx, &inner)
						done <- result{g, err}
					}()
					select {
					case r := <-done:
						return r.g, r.err
					case <-time.After(time.Millisecond):
					}
					for {
						select {
						case <-time.After(period/2 + rand.N(period/2)):
							select {
							case r := <-done:
								return r.g, r.err
							default:
								req.Queued(1)
							}
						case <-ctx.Done():
							r := <-done
							return r.g, r.err
						}
					}
				}
			})
			for _, c := range cases {
				if c.name != "G21_OneWokenPerPermit" {
					continue
				}
				e := newEngine(fault{engine: polls})
				e.Soon, e.Late = 2*time.Second, 2*time.Second
				for _, s := range record(t, e, c) {
					t.Error(s)
				}
			}
		})
	}
}
