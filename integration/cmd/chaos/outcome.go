package main

import (
	"context"
	"errors"
	"slices"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/history"
)

// outcome is the outcome of a call, in a history's terms.
func outcome(call string, err error) string {
	acquisition := call == history.Acquire || call == history.Try
	switch {
	case err == nil:
		return history.OK
	case errors.Is(err, holdfast.ErrReleasePending):
		return history.Pending
	case !acquisition && isAny(err, holdfast.ErrLost, holdfast.ErrTTLExpired, holdfast.ErrReleased, holdfast.ErrChanged):
		return history.Gone
	case errors.Is(err, holdfast.ErrClosed):
		return history.Closed
	// Before ErrHeld: a wait that ctx ended also says what it waited for.
	case isAny(err, context.Canceled, context.DeadlineExceeded):
		return history.GaveUp
	case errors.Is(err, holdfast.ErrHeld):
		return history.Refused
	// A wait that WithWait ended while no server could be reached, or when the grant ended before it could be returned.
	case acquisition && isAny(err, holdfast.ErrDisconnected, holdfast.ErrSessionExpired, holdfast.ErrLeaseExpired,
		holdfast.ErrClockJump, holdfast.ErrBroken, holdfast.ErrReclaimed):
		return history.GaveUp
	}
	return history.Failed
}

func isAny(err error, targets ...error) bool {
	return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
}
