package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/driver/drivertest"
)

// A panic of the caller's own Retry, while a key is asked for, leaves no lock that nobody knows of.
func TestAcquireAllPanics(t *testing.T) {
	l, s := openStory(t, func(ctx context.Context, req *driver.Request) error {
		if req.Key == "b" {
			return req.Retry(ctx, holdfast.ErrDisconnected, nil)
		}
		return nil
	})
	func() {
		defer func() {
			if got := recover(); got != "stop" {
				t.Errorf("recovered %v", got)
			}
		}()
		_, _ = l.AcquireAll(t.Context(), []string{"a", "b"}, holdfast.WithRetry(holdfast.Retry{
			Delay: func(int) (time.Duration, bool) { panic("stop") },
		}))
	}()
	if told := s.told(); told != "acquire a, acquire b, release a" {
		t.Error(told)
	}
	mustClose(t, l)
}

// A TTL that passes before the call returns is no loss that is worth another try.
func TestAcquireAllShortestTTL(t *testing.T) {
	l, s := openStory(t, nil)
	locks := mustAll(t, l, three, holdfast.WithTTL(1))
	<-locks.Done()
	if told := s.told(); strings.Count(told, "acquire") != 3 || !errors.Is(locks.Err(), holdfast.ErrTTLExpired) {
		t.Errorf("%s; %v", told, locks.Err())
	}
	mustClose(t, l)
}

// One Retry serves the whole call: its attempts count the failures of all keys.
func TestAcquireAllCountsTheFailuresOfAll(t *testing.T) {
	bubble(t, func(t *testing.T) {
		tries := make(map[string]int)
		l, _ := openStory(t, func(ctx context.Context, req *driver.Request) error {
			for tries[req.Key] = 1; tries[req.Key] < 3; tries[req.Key]++ { // the third try of a key succeeds
				if err := req.Retry(ctx, holdfast.ErrDisconnected, nil); err != nil {
					return err
				}
			}
			return nil
		})
		_, err := l.AcquireAll(t.Context(), three, holdfast.WithRetry(holdfast.Retry{Attempts: 4}))
		if got := fmt.Sprint(tries); !errors.Is(err, holdfast.ErrDisconnected) || got != "map[a:3 b:2]" {
			t.Errorf("%s: %v", got, err)
		}
		mustClose(t, l)
	})
}

// Losses, ends of ctx, releases and Close at any moment: every grant is given back once, and nothing hangs.
func TestAcquireAllUnderFire(t *testing.T) {
	l, s := openStory(t, func(ctx context.Context, req *driver.Request) error {
		select {
		case <-time.After(time.Millisecond):
			return nil
		case <-ctx.Done():
			return driver.Held(driver.Info{Key: req.Key, Held: true})
		}
	})
	stop := make(chan struct{})
	var fire, calls sync.WaitGroup
	fire.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
				s.lose(three[i%3], holdfast.ErrBroken)
			}
		}
	})
	for i := range 4 {
		calls.Go(func() {
			for range 50 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(2+i)*2*time.Millisecond)
				locks, err := l.AcquireAll(ctx, three, holdfast.WithRetry(holdfast.Retry{Initial: time.Millisecond}))
				if err == nil {
					_ = locks.Err()
					_ = locks.Release(t.Context())
				} else if ctx.Err() == nil {
					t.Error(err)
				}
				cancel()
			}
		})
	}
	calls.Wait()
	close(stop)
	fire.Wait()
	mustClose(t, l)
	if grants, released := s.token.Load(), s.ended.Load(); int64(grants) != released {
		t.Errorf("%d grants, %d given back", grants, released)
	}
}

// countingClock counts its readings.
type countingClock struct {
	drivertest.Clock
	readings atomic.Int64
}

func (c *countingClock) Now() driver.Instant {
	c.readings.Add(1)
	return c.Clock.Now()
}

// What a call costs that takes many keys grows with their number, and not with its square.
func TestAcquireAllOfThousands(t *testing.T) {
	bubble(t, func(t *testing.T) { // in which no time passes
		c := &countingClock{}
		e := &engine{}
		client := e.open(t, driver.Config{Clock: c})
		e.acquire = func(ctx context.Context, _ *driver.Request) (driver.Grant, error) {
			if ctx.Err() != nil {
				t.Error("the wait is over")
			}
			return e.grant(), nil
		}
		const n = 2000
		keys := make([]string, n)
		for i := range keys {
			keys[i] = fmt.Sprint("k", i)
		}
		locks := mustAll(t, client, keys)
		if each := c.readings.Load() / n; each > 100 {
			t.Errorf("the clocks were read %d times for each key", each)
		}
		if err := locks.Release(t.Context()); err != nil {
			t.Error(err)
		}
		mustClose(t, client)
	})
}
