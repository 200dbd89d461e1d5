package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

// until is an acquire that waits for its key until the ctx ends.
func until(key string) func(context.Context, *driver.Request) error {
	return func(ctx context.Context, req *driver.Request) error {
		if req.Key != key {
			return nil
		}
		<-ctx.Done()
		return driver.Held(driver.Info{Key: key, Held: true, Holder: driver.Holder{Owner: "somebody"}})
	}
}

func mustAll(t testing.TB, l *holdfast.Client, keys []string, opts ...holdfast.Option) *holdfast.Locks {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	locks, err := l.AcquireAll(ctx, keys, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return locks
}

// A lock that is lost while another is waited for ends the wait: all is given back, and taken anew.
func TestAcquireAllBeginsAnew(t *testing.T) {
	for name, c := range map[string]struct {
		cause error
		retry holdfast.Retry
		want  error // nil: granted in the second pass
		story string
	}{
		"anew": {
			holdfast.ErrBroken,
			holdfast.Retry{Initial: time.Second, Max: time.Second},
			nil,
			"acquire a, acquire b, release a, acquire a, acquire b",
		},
		"no further try": {
			holdfast.ErrBroken, holdfast.Retry{Attempts: 1}, holdfast.ErrBroken, "acquire a, acquire b, release a",
		},
		"reclaimed": {
			holdfast.ErrReclaimed, holdfast.Retry{}, holdfast.ErrReclaimed, "acquire a, acquire b, release a",
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				passes := 0
				var failed []holdfast.Event
				l, s := openStory(t, func(ctx context.Context, req *driver.Request) error {
					if req.Key == "b" {
						if passes++; passes == 1 {
							return until("b")(ctx, req)
						}
					}
					return nil
				}, only(func(e holdfast.Event) { failed = append(failed, e) }, holdfast.Failed))
				time.AfterFunc(time.Second, func() { s.lose("a", c.cause) })
				locks, err := l.AcquireAll(t.Context(), []string{"a", "b"}, holdfast.WithRetry(c.retry))
				if !errors.Is(err, c.want) || errors.Is(err, context.Canceled) || errors.Is(err, holdfast.ErrHeld) {
					t.Errorf("got %v, want %v", err, c.want)
				}
				if c.want != nil && !errors.Is(err, holdfast.ErrLost) {
					t.Errorf("got %v, want ErrLost in it", err)
				}
				if err == nil {
					if locks.Err() != nil {
						t.Error("it is over:", locks.Err())
					}
					if err := locks.Verify(t.Context()); err != nil {
						t.Error(err)
					}
				}
				synctest.Wait()
				if s.told() != c.story {
					t.Errorf("%s; want %s", s.told(), c.story)
				}
				mustClose(t, l)
				if len(failed) != 1 || failed[0].Key != "b" || !errors.Is(failed[0].Err, c.cause) {
					t.Errorf("events: %+v", failed)
				}
			})
		})
	}
}

// A lock lost in the last moment, when nothing is waited for any more, is not returned either.
func TestAcquireAllLostAtTheEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		passes := 0
		var s *story
		l, s := openStory(t, func(_ context.Context, req *driver.Request) error {
			if req.Key == "b" {
				if passes++; passes == 1 {
					s.lose("a", holdfast.ErrBroken) // and b is granted all the same
				}
			}
			return nil
		})
		locks := mustAll(t, l, []string{"a", "b"})
		if locks.Err() != nil || passes != 2 {
			t.Errorf("after %d passes: %v; %s", passes, locks.Err(), s.told())
		}
		mustClose(t, l)
	})
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
