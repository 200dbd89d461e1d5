package zklock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/zkfake"
	"github.com/holdfast-go/holdfast/zklock"
)

// One that waits gives up, at one moment or another, while it looks at the queue again since another before it has left. It
// says what it has waited for, and not that it was not connected, unless it was not.
func TestGivingUpWhileItLooks(t *testing.T) {
	for name, mode := range map[string][]holdfast.Option{
		"lock": nil, "reader": {holdfast.WithShared()}, "permit": {holdfast.WithLimit(1)},
	} {
		t.Run(name, func(t *testing.T) {
			withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
				holder, waiter := dialWired(t, e, zklock.Options{}), dialWired(t, e, zklock.Options{})
				holding := mode
				if name == "reader" {
					holding = nil
				}
				lock, err := holder.Acquire(t.Context(), "k", holding...)
				if err != nil {
					t.Fatal(err)
				}
				waiter.Delay(20 * time.Millisecond)
				for after := time.Duration(0); after < 200*time.Millisecond; after += 5 * time.Millisecond {
					wait := func(client *wired, opts []holdfast.Option) (context.CancelFunc, <-chan error) {
						ctx, cancel := context.WithCancel(t.Context())
						result := make(chan error, 1)
						go func() {
							_, err := client.Acquire(ctx, "k", opts...)
							result <- err
						}()
						time.Sleep(time.Second)
						return cancel, result
					}
					leaveFirst, first := wait(holder, holding)
					leave, second := wait(waiter, mode)
					leaveFirst()
					time.Sleep(after)
					cut := after%(50*time.Millisecond) == 45*time.Millisecond
					if cut {
						waiter.Refuse(true)
						waiter.Break()
						time.Sleep(10 * time.Millisecond)
					}
					leave()
					want := holdfast.ErrHeld
					if err := <-first; !errors.Is(err, want) {
						t.Errorf("who left first: %v", err)
					}
					err := <-second
					if held := errors.Is(err, want); !held && !cut || errors.Is(err, holdfast.ErrDisconnected) != !held {
						t.Errorf("after %v: %v", after, err)
					}
					waiter.Refuse(false)
					time.Sleep(time.Second)
				}
				if err := lock.Release(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// R15. The caller's Retry panics, and somebody recovers, as net/http does: what the call has created is removed.
func TestRetryPanics(t *testing.T) {
	withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
		client := dialWired(t, e, zklock.Options{})
		if err := acquire(t, client, "a").Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		client.LoseReply(opCreate)
		func() {
			defer func() {
				if recover() == nil {
					t.Error("Retry was not asked")
				}
			}()
			_, _ = client.Acquire(t.Context(), "a", holdfast.WithRetry(holdfast.Retry{Delay: func(int) (time.Duration, bool) { panic("in Delay") }}))
		}()
		time.Sleep(virtualSession)
		if left := e.Children(virtualRoot + "/a"); len(left) > 0 {
			t.Errorf("left: %q", left)
		}
	})
}
