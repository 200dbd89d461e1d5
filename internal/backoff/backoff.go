// Package backoff has the delays between tries and the loops that wait for them, on the client's clock: an engine passes its
// [driver.Host]. The arithmetic is that of github.com/cenkalti/backoff. This package adds a wait that ends with its context, or early
// when a channel closes.
package backoff

import (
	"cmp"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"time"

	cenkalti "github.com/cenkalti/backoff/v4"

	"github.com/holdfast-go/holdfast/driver"
)

// The defaults of a [Policy].
const (
	DefaultInitial = 100 * time.Millisecond
	DefaultMax     = 5 * time.Second
)

// largestSpread is the longest time over which waiters that are woken together are spread.
const largestSpread = time.Second

// A Policy sets the number of tries and the delays between them. The zero value tries
// without end, with the default delays.
type Policy struct {
	Attempts int           // tries in all, the first included; 0: no limit
	Initial  time.Duration // delay after the first failure; 0: DefaultInitial
	Max      time.Duration // largest delay; 0: DefaultMax, or Initial if larger
	Total    time.Duration // no further try starts later than this; 0: no limit

	// Delay, if set, takes the place of Initial and Max: it is given the number
	// of tries that have failed and returns the delay, or false to stop.
	Delay func(attempt int) (time.Duration, bool)
}

// Start begins a series of tries; the first is under way.
func (p Policy) Start(clock driver.Clock) *Loop {
	return &Loop{clock: clock, policy: p, series: p.series(), began: clock.Now()}
}

// Retry calls try again while its error matches [driver.ErrDisconnected], until the policy has no further try or ctx ends. It returns
// the last error that came before the end of ctx.
func (p Policy) Retry(ctx context.Context, clock driver.Clock, try func() error) error {
	var last error
	for loop := p.Start(clock); ; {
		err := try()
		if last == nil || ctx.Err() == nil {
			last = err
		}
		if !errors.Is(err, driver.ErrDisconnected) {
			return err
		}
		if !loop.Wait(ctx, nil) {
			return last
		}
	}
}

// series returns the delays as a cenkalti BackOff, counters and limits of its
// own switched off: those are the Loop's.
func (p Policy) series() cenkalti.BackOff {
	if p.Delay != nil {
		return &custom{delay: p.Delay}
	}
	initial, largest := p.initial(), p.Max
	if largest == 0 {
		largest = max(DefaultMax, initial)
	}
	// Half of what an int64 has room for is where doubling and jitter stay in it.
	const room = math.MaxInt64 / 2
	return &capped{largest, cenkalti.NewExponentialBackOff(
		cenkalti.WithInitialInterval(min(initial, room)),
		cenkalti.WithMaxInterval(min(largest, room)),
		cenkalti.WithMultiplier(2),
		cenkalti.WithRandomizationFactor(0.25),
		cenkalti.WithMaxElapsedTime(0),
	)}
}

func (p Policy) initial() time.Duration { return cmp.Or(p.Initial, DefaultInitial) }

// A Loop is one series of tries. It serves one goroutine.
type Loop struct {
	clock  driver.Clock
	policy Policy
	series cenkalti.BackOff
	began  driver.Instant
	failed int
	unused time.Duration // the delay that was cut short before a try that does not count; 0: none was
	spared bool          // there was such a try since the last that counts
}

// Next counts a failed try and returns the delay before the next one, or false if there
// is none.
func (l *Loop) Next() (time.Duration, bool) {
	delay := l.unused
	l.unused = 0
	if delay == 0 {
		l.failed++
		l.spared = false
		if l.policy.Attempts > 0 && l.failed >= l.policy.Attempts {
			return 0, false
		}
		delay = l.series.NextBackOff()
	}
	if delay == cenkalti.Stop {
		return 0, false
	}
	if l.policy.Total > 0 && delay > l.policy.Total-l.clock.Now().Sub(l.began) {
		return 0, false
	}
	return delay, true
}

// Wait counts a failed try and waits before the next: for the delay of the policy, or less
// if wake closes before (nil never does). It reports false, at once, if the policy has no
// further try, and when ctx ends.
//
// Many may wait for the same wake, in many processes: each goes on at a random moment after
// it, within the policy's Initial, or within a second if that is less. The try that follows does not count, and leaves the delays as
// they are; at most one does not for each that counts, or tries would not end where wakes do not.
func (l *Loop) Wait(ctx context.Context, wake <-chan struct{}) bool {
	delay, ok := l.Next()
	if !ok {
		return false
	}
	began := l.clock.Now()
	if !Sleep(ctx, l.clock, delay, wake) {
		return false
	}
	left := delay - l.clock.Now().Sub(began)
	if left <= 0 {
		return true
	}
	if !l.spared {
		l.unused, l.spared = delay, true
	}
	return Sleep(ctx, l.clock, min(left, rand.N(min(l.policy.initial(), largestSpread))), nil)
}

// Jittered returns a pause from d/2 to d, so that callers that stopped together do not
// come back together.
func Jittered(d time.Duration) time.Duration { return d - rand.N(d/2+1) }

// Sleep waits until d has passed or wake closes, and reports true, or until
// ctx ends, and reports false.
func Sleep(ctx context.Context, clock driver.Clock, d time.Duration, wake <-chan struct{}) bool {
	over := make(chan struct{})
	timer := clock.AfterFunc(d, func() { close(over) })
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-over:
	case <-wake:
	}
	return ctx.Err() == nil
}

// capped keeps the jitter of a BackOff within the largest delay.
type capped struct {
	largest time.Duration
	cenkalti.BackOff
}

func (c *capped) NextBackOff() time.Duration { return min(c.BackOff.NextBackOff(), c.largest) }

// custom makes a BackOff from a function of the attempt.
type custom struct {
	delay   func(int) (time.Duration, bool)
	attempt int
}

func (c *custom) NextBackOff() time.Duration {
	c.attempt++
	delay, ok := c.delay(c.attempt)
	if !ok {
		return cenkalti.Stop
	}
	return max(delay, 0)
}

func (c *custom) Reset() { c.attempt = 0 }
