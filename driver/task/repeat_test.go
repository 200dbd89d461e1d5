package task_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/driver/drivertest"
	"github.com/holdfast-go/holdfast/driver/task"
)

// TestRepeat has a function called that takes two seconds, with pauses of ten.
func TestRepeat(t *testing.T) {
	const call, pause = 2 * time.Second, 10 * time.Second
	for name, c := range map[string]struct {
		pause time.Duration
		now   []time.Duration // when Now is called
		want  []time.Duration // when calls begin
	}{
		"regular":        {pause, nil, []time.Duration{time.Second, 13 * time.Second, 25 * time.Second}},
		"out of turn":    {pause, []time.Duration{5 * time.Second}, []time.Duration{time.Second, 5 * time.Second, 17 * time.Second, 29 * time.Second}},
		"during a call":  {pause, []time.Duration{2 * time.Second, 2 * time.Second}, []time.Duration{time.Second, 3 * time.Second, 15 * time.Second, 27 * time.Second}},
		"on demand only": {-1, []time.Duration{9 * time.Second}, []time.Duration{time.Second, 9 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				var got []time.Duration
				r := task.Repeat(t.Context(), &drivertest.Clock{}, time.Second, func(ctx context.Context) time.Duration {
					got = append(got, time.Since(began))
					select {
					case <-time.After(call):
					case <-ctx.Done():
					}
					return c.pause
				})
				for _, at := range c.now {
					time.Sleep(at - time.Since(began))
					r.Now()
				}
				time.Sleep(30*time.Second - time.Since(began)) // during a call, or not
				r.Stop()
				r.Now()
				if time.Sleep(time.Minute); !slices.Equal(got, c.want) {
					t.Errorf("called at %v, want %v", got, c.want)
				}
			})
		})
	}
}
