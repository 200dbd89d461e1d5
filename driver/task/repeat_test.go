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

// TestRepeat repeats a function that takes two seconds, with pauses of ten.
func TestRepeat(t *testing.T) {
	const s = time.Second
	const call, pause = 2 * s, 10 * s
	for name, c := range map[string]struct {
		pause time.Duration
		now   []time.Duration // when Now is called
		want  []time.Duration // when calls begin
	}{
		"regular":        {pause, nil, []time.Duration{s, 13 * s, 25 * s}},
		"out of turn":    {pause, []time.Duration{5 * s}, []time.Duration{s, 5 * s, 17 * s, 29 * s}},
		"during a call":  {pause, []time.Duration{2 * s, 2 * s}, []time.Duration{s, 3 * s, 15 * s, 27 * s}},
		"on demand only": {-1, []time.Duration{9 * s}, []time.Duration{s, 9 * s}},
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
