package backoff

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/driver/drivertest"
)

var clock = new(drivertest.Clock)

func TestDelays(t *testing.T) {
	for name, p := range map[string]Policy{
		"default":      {},
		"small":        {Initial: time.Millisecond, Max: 8 * time.Millisecond},
		"equal":        {Initial: time.Second, Max: time.Second},
		"only initial": {Initial: time.Minute},
		"huge":         {Initial: math.MaxInt64 / 3, Max: math.MaxInt64 / 3},
		"nearly huge":  {Initial: time.Second, Max: math.MaxInt64 / 2},
	} {
		t.Run(name, func(t *testing.T) {
			initial, largest := p.Initial, p.Max
			if initial == 0 {
				initial = DefaultInitial
			}
			if largest == 0 {
				largest = max(DefaultMax, initial)
			}
			loop := p.Start(clock)
			middle := float64(initial)
			for i := range 100 {
				delay, ok := loop.Next()
				if !ok {
					t.Fatalf("try %d: the zero limits ended the series", i)
				}
				low, high := 0.74*middle, min(1.26*middle, float64(largest))
				if float64(delay) < low || float64(delay) > high {
					t.Fatalf("delay %d is %v, want %v to %v", i, delay, time.Duration(low), time.Duration(high))
				}
				middle = min(2*middle, float64(largest))
			}
		})
	}
}

func TestDelaysVary(t *testing.T) {
	loop := Policy{Initial: time.Second, Max: time.Second}.Start(clock)
	seen := map[time.Duration]bool{}
	for range 20 {
		delay, _ := loop.Next()
		seen[delay] = true
	}
	if len(seen) < 3 {
		t.Errorf("20 delays took only %d values: clients that failed together would come back together", len(seen))
	}
}

func TestAttempts(t *testing.T) {
	loop := Policy{Attempts: 3}.Start(clock)
	for i, want := range []bool{true, true, false, false} {
		if _, ok := loop.Next(); ok != want {
			t.Errorf("after failure %d: another try is %v, want %v", i+1, ok, want)
		}
	}
}

func TestTotal(t *testing.T) {
	second := func(int) (time.Duration, bool) { return time.Second, true }
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		loop := Policy{Total: 3 * time.Second, Delay: second}.Start(clock)
		tries := 1
		for loop.Wait(t.Context(), nil) {
			tries++
		}
		if took := time.Since(began); tries != 4 || took != 3*time.Second {
			t.Errorf("%d tries in %v, want 4 in 3s: the last may start at the limit, not after it", tries, took)
		}
	})
}

func TestTotalWithAnEndlessDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		loop := Policy{Total: time.Hour, Delay: func(int) (time.Duration, bool) { return math.MaxInt64, true }}.Start(clock)
		time.Sleep(time.Second)
		if delay, ok := loop.Next(); ok {
			t.Errorf("a delay of %v fits into a total of an hour", delay)
		}
	})
}

func TestDelayFunction(t *testing.T) {
	var asked []int
	loop := Policy{Delay: func(attempt int) (time.Duration, bool) {
		asked = append(asked, attempt)
		return time.Duration(attempt-2) * time.Second, attempt < 4
	}}.Start(clock)
	for i, want := range []time.Duration{0, 0, time.Second} {
		if delay, ok := loop.Next(); !ok || delay != want {
			t.Errorf("delay %d is %v, %v, want %v: a negative one counts as none", i+1, delay, ok, want)
		}
	}
	if _, ok := loop.Next(); ok {
		t.Error("the function said stop, and the series went on")
	}
	if len(asked) != 4 || asked[0] != 1 || asked[3] != 4 {
		t.Errorf("the function was asked for %v, want 1 to 4", asked)
	}
}

func TestWait(t *testing.T) {
	minute := Policy{Delay: func(int) (time.Duration, bool) { return time.Minute, true }}
	for name, c := range map[string]struct {
		policy    Policy
		wake, end time.Duration // when wake closes, and ctx ends; 0 is never
		goesOn    bool
		took      time.Duration
		at        time.Duration // random, and less than this, comes on top
	}{
		"elapsed":            {minute, 0, 0, true, time.Minute, 0},
		"woken":              {minute, time.Second, 0, true, time.Second, DefaultInitial},
		"woken near the end": {minute, time.Minute - time.Millisecond, 0, true, time.Minute - time.Millisecond, time.Millisecond + 1},
		"ctx ended":          {minute, 0, time.Second, false, time.Second, 0},
		"ended when woken":   {minute, time.Second, time.Second + 1, false, time.Second + 1, 0},
		"a single try":       {Policy{Attempts: 1}, 0, 0, false, 0, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			wake := make(chan struct{})
			if c.wake > 0 {
				time.AfterFunc(c.wake, func() { close(wake) })
			}
			if c.end > 0 {
				time.AfterFunc(c.end, cancel)
			}
			began := time.Now()
			if goesOn, took := c.policy.Start(clock).Wait(ctx, wake), time.Since(began); goesOn != c.goesOn || took < c.took || took > max(c.took, c.took+c.at-1) {
				t.Errorf("%s: %v after %v, want %v after %v and less than %v more", name, goesOn, took, c.goesOn, c.took, c.at)
			}
		})
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	wake := make(chan struct{})
	close(wake)
	for range 50 {
		if minute.Start(clock).Wait(ended, wake) {
			t.Fatal("wake wins over a ctx that has ended")
		}
	}
}

// Waiters for the same wake do not go on at the same moment.
func TestWakesAreSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wake := make(chan struct{})
		time.AfterFunc(time.Second, func() { close(wake) })
		moments := make(chan time.Time)
		const waits = 50
		for range waits {
			go func() {
				Policy{Initial: time.Minute}.Start(clock).Wait(t.Context(), wake)
				moments <- time.Now()
			}()
		}
		differ := map[time.Time]bool{}
		for range waits {
			differ[<-moments] = true
		}
		if len(differ) < waits/2 {
			t.Errorf("%d wait, and go on at %d moments", waits, len(differ))
		}
	})
}

// A wake uses up no try, nor does it lengthen the delays; but where they do not end, the tries do.
func TestWakesAreNoTries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		woken := func() <-chan struct{} {
			wake := make(chan struct{})
			time.AfterFunc(time.Second, func() { close(wake) })
			return wake
		}
		loop := Policy{Attempts: 3, Initial: time.Minute}.Start(clock)
		loop.Wait(t.Context(), woken())
		began := time.Now()
		if !loop.Wait(t.Context(), nil) {
			t.Fatal("over after a delay that was cut short")
		}
		if took := time.Since(began); took < 44*time.Second || took > 76*time.Second {
			t.Errorf("the first delay became %v", took)
		}
		if !loop.Wait(t.Context(), nil) || loop.Wait(t.Context(), nil) {
			t.Error("not three tries in all")
		}

		loop = Policy{Attempts: 10, Initial: time.Minute}.Start(clock)
		tries := 1
		for loop.Wait(t.Context(), woken()) {
			tries++
		}
		if tries != 19 {
			t.Errorf("%d tries and a wake after each, want 10, and one for each delay", tries)
		}
	})
}

// The limit of all tries holds for those that a wake brings as well.
func TestWakesAndTotal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		loop := Policy{Total: 10 * time.Second, Initial: 4 * time.Second, Max: 4 * time.Second}.Start(clock)
		for {
			wake := make(chan struct{})
			time.AfterFunc(time.Second, func() { close(wake) })
			if !loop.Wait(t.Context(), wake) {
				break
			}
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("tries for %v", took)
		}
	})
}

func TestRetry(t *testing.T) {
	transient := fmt.Errorf("silent: %w", driver.ErrDisconnected)
	for name, c := range map[string]struct {
		answers []error
		limit   time.Duration
		want    error
		tries   int
	}{
		"answered":          {[]error{nil}, time.Hour, nil, 1},
		"answered later":    {[]error{transient, transient, nil}, time.Hour, nil, 3},
		"refused":           {[]error{transient, driver.ErrDenied}, time.Hour, driver.ErrDenied, 2},
		"not until the end": {[]error{transient, transient, transient, transient}, 5 * time.Second, transient, 3},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), c.limit)
			defer cancel()
			tries := 0
			err := Policy{Initial: 2 * time.Second, Max: 2 * time.Second}.Retry(ctx, clock, func() error {
				tries++
				return c.answers[tries-1]
			})
			if !errors.Is(err, c.want) || tries != c.tries {
				t.Errorf("%s: %v after %d tries, want %v after %d", name, err, tries, c.want, c.tries)
			}
		})
	}
}

func TestJittered(t *testing.T) {
	for _, d := range []time.Duration{0, 1, time.Second} {
		least, most := Jittered(d), Jittered(d)
		for range 1000 {
			p := Jittered(d)
			least, most = min(least, p), max(most, p)
		}
		if least < d/2 || most > d || (d > 1 && most-least < d/4) {
			t.Errorf("%v: pauses from %v to %v", d, least, most)
		}
	}
}
