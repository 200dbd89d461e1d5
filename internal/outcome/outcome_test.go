package outcome_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/outcome"
)

func TestOf(t *testing.T) {
	both := func(first, second error) error { return fmt.Errorf("acquire: %w: %w", first, second) }
	lost := func(cause error) error { return &holdfast.LostError{Cause: cause} }
	other := errors.New("something else")
	for _, c := range []struct {
		kind       holdfast.EventKind
		err, cause error
		want       string
	}{
		{holdfast.Granted, nil, nil, "granted"},
		{holdfast.Failed, &holdfast.HeldError{Key: "k"}, nil, "held"},
		{holdfast.Failed, both(context.DeadlineExceeded, holdfast.ErrHeld), nil, "held"},
		{holdfast.Failed, both(context.DeadlineExceeded, holdfast.ErrDisconnected), nil, "disconnected"},
		{holdfast.Failed, both(context.Canceled, holdfast.ErrDisconnected), nil, "disconnected"},
		{holdfast.Failed, both(context.Canceled, holdfast.ErrHeld), nil, "canceled"},
		{holdfast.Failed, context.DeadlineExceeded, nil, "timeout"},
		{holdfast.Failed, both(holdfast.ErrDenied, other), nil, "denied"},
		{holdfast.Failed, holdfast.ErrReclaimed, nil, "reclaimed"},
		{holdfast.Failed, both(holdfast.ErrClosed, holdfast.ErrDisconnected), nil, "closed"},
		{holdfast.Failed, driver.Invalid("data", "too long"), nil, "invalid"},
		{holdfast.Failed, holdfast.ErrNames, nil, "names"},
		{holdfast.Failed, other, nil, "error"},
		{holdfast.Released, holdfast.ErrReleased, nil, "released"},
		{holdfast.TTLExpired, holdfast.ErrTTLExpired, nil, "ttl_expired"},
		{holdfast.Lost, lost(holdfast.ErrSessionExpired), nil, "session_expired"},
		{holdfast.Lost, lost(holdfast.ErrLeaseExpired), nil, "lease_expired"},
		{holdfast.Lost, lost(holdfast.ErrBroken), nil, "broken"},
		{holdfast.Lost, lost(holdfast.ErrReclaimed), nil, "reclaimed"},
		{holdfast.Lost, lost(holdfast.ErrTakenOver), nil, "taken_over"},
		{holdfast.Lost, lost(holdfast.ErrClockJump), nil, "clock_jump"},
		{holdfast.Lost, lost(other), nil, "lost"},
		{holdfast.TermEnded, nil, nil, "stepped_down"},
		{holdfast.TermEnded, holdfast.ErrWithdrawn, nil, "withdrawn"},
		{holdfast.TermEnded, context.DeadlineExceeded, nil, "failed"},
		{holdfast.TermEnded, other, holdfast.ErrResigned, "resigned"},
		{holdfast.TermEnded, nil, holdfast.ErrAsked, "asked"},
		{holdfast.TermEnded, nil, errors.Join(holdfast.ErrUnfit, other), "unfit"},
		{holdfast.TermEnded, nil, holdfast.ErrClosed, "closed"},
		{holdfast.TermEnded, nil, lost(holdfast.ErrBroken), "broken"},
		{holdfast.TermEnded, nil, other, "canceled"},
		{holdfast.Heartbeat, nil, nil, "ok"},
		{holdfast.Heartbeat, both(holdfast.ErrDisconnected, other), nil, "disconnected"},
		{holdfast.Heartbeat, holdfast.ErrDenied, nil, "denied"},
		{holdfast.Heartbeat, both(holdfast.ErrTakenOver, other), nil, "lost"},
		{holdfast.Heartbeat, other, nil, "error"},
		{holdfast.Queued, nil, nil, ""},
	} {
		if got := outcome.Of(holdfast.Event{Kind: c.kind, Err: c.err, Cause: c.cause}); got != c.want {
			t.Errorf("%v, %v, %v: %q, want %q", c.kind, c.err, c.cause, got, c.want)
		}
	}
}
