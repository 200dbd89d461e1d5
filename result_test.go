package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

// Each kind of outcome has its word, even if an error is of several kinds.
func TestResults(t *testing.T) {
	t.Parallel()
	both := func(first, second error) error { return fmt.Errorf("acquire: %w: %w", first, second) }
	lost := func(cause error) error { return &holdfast.LostError{Cause: cause} }
	other := errors.New("something else")
	for want, errs := range map[string][]error{
		"granted":      {nil},
		"held":         {&holdfast.HeldError{Key: "k"}, both(context.DeadlineExceeded, holdfast.ErrHeld)},
		"disconnected": {holdfast.ErrDisconnected, both(context.DeadlineExceeded, holdfast.ErrDisconnected), both(context.Canceled, holdfast.ErrDisconnected)},
		"canceled":     {both(context.Canceled, holdfast.ErrHeld)},
		"timeout":      {context.DeadlineExceeded},
		"denied":       {both(holdfast.ErrDenied, other)},
		"reclaimed":    {holdfast.ErrReclaimed},
		"closed":       {both(holdfast.ErrClosed, holdfast.ErrDisconnected)},
		"invalid":      {driver.Invalid("data", "too long")},
		"error":        {other, holdfast.ErrLeaseExpired},
	} {
		for _, err := range errs {
			if got := (holdfast.Acquisition{Err: err}).Result(); got != want {
				t.Errorf("an acquisition that came to %v is %q, want %q", err, got, want)
			}
		}
	}
	for want, err := range map[string]error{
		"released":        holdfast.ErrReleased,
		"ttl_expired":     holdfast.ErrTTLExpired,
		"session_expired": lost(holdfast.ErrSessionExpired),
		"lease_expired":   lost(holdfast.ErrLeaseExpired),
		"broken":          lost(holdfast.ErrBroken),
		"reclaimed":       lost(holdfast.ErrReclaimed),
		"taken_over":      lost(holdfast.ErrTakenOver),
		"clock_jump":      lost(holdfast.ErrClockJump),
		"lost":            lost(other),
	} {
		if got := (holdfast.Ending{Err: err}).Result(); got != want {
			t.Errorf("an end by %v is %q, want %q", err, got, want)
		}
	}
	for want, err := range map[string]error{
		"ok":           nil,
		"disconnected": both(holdfast.ErrDisconnected, other),
		"denied":       holdfast.ErrDenied,
		"lost":         both(holdfast.ErrTakenOver, other),
		"error":        other,
	} {
		if got := (holdfast.Heartbeat{Err: err}).Result(); got != want {
			t.Errorf("a heartbeat that came to %v is %q, want %q", err, got, want)
		}
	}
}
