package holdfast_test

import (
	"context"
	"errors"
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

// A call that fails waits for the engine's confirmation, but not for long, and not at all once nobody waits.
func TestAcquireAllGivesBack(t *testing.T) {
	for _, c := range []struct {
		name     string
		confirms time.Duration // after the release
		ctx      time.Duration // from the beginning on
		opts     []holdfast.Option
		want     error
		took     time.Duration
	}{
		{"confirmed", 300 * time.Millisecond, time.Hour, nil, holdfast.ErrDenied, 1300 * time.Millisecond},
		{"silent", time.Hour, time.Hour, nil, holdfast.ErrDenied, 2 * time.Second},
		{"ctx ends meanwhile", time.Hour, 1500 * time.Millisecond, nil, holdfast.ErrDenied, 1500 * time.Millisecond},
		{"ctx has ended", time.Hour, 500 * time.Millisecond, nil, context.DeadlineExceeded, 500 * time.Millisecond},
		{
			"the wait has elapsed", time.Hour, time.Hour,
			[]holdfast.Option{holdfast.WithWait(500 * time.Millisecond)},
			holdfast.ErrHeld, 500 * time.Millisecond,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				l, s := openStory(t, func(ctx context.Context, req *driver.Request) error {
					if req.Key != "b" {
						return nil
					}
					select {
					case <-ctx.Done():
						return driver.Held(driver.Info{Key: "b", Held: true})
					case <-time.After(time.Second):
						return holdfast.ErrDenied
					}
				})
				s.release = func(ctx context.Context) error {
					select {
					case <-time.After(c.confirms):
						return nil
					case <-ctx.Done():
						return holdfast.ErrDisconnected
					}
				}
				ctx, cancel := context.WithTimeout(t.Context(), c.ctx)
				defer cancel()
				began := time.Now()
				_, err := l.AcquireAll(ctx, []string{"a", "b"}, c.opts...)
				if took := time.Since(began); took != c.took || !errors.Is(err, c.want) {
					t.Errorf("after %v: %v; want %v after %v", took, err, c.want, c.took)
				}
				synctest.Wait()
				if told := s.told(); !strings.HasSuffix(told, "release a") {
					t.Error(told)
				}
				_ = l.Close(t.Context())
			})
		})
	}
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

// A process that is stopped while it waits for a key finds those before it lost, although no timer has run.
func TestAcquireAllStopped(t *testing.T) {
	l, b, clock := openFake(t)
	passes := 0
	b.acquire = func(_ context.Context, req *driver.Request) (driver.Grant, error) {
		if req.Key == "b" {
			if passes++; passes == 1 {
				clock.Pause()
				clock.Jump(leaseLength)
			}
		}
		return b.grant(), nil
	}
	locks := mustAll(t, l, []string{"a", "b"}, holdfast.WithRetry(holdfast.Retry{Initial: time.Millisecond}))
	clock.Resume()
	if err := locks.Err(); err != nil || passes != 2 {
		t.Errorf("after %d passes: %v", passes, err)
	}
	mustClose(t, l)
}
