package main

import (
	"context"
	"errors"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/history"
)

// outcome is the outcome of a call, in a history's terms.
func outcome(call string, err error) (outcome, cause string) {
	acquisition := call == history.Acquire || call == history.Try
	switch {
	case err == nil:
		return history.OK, ""
	case errors.Is(err, holdfast.ErrReleasePending):
		return history.Pending, ""
	case !acquisition && isAny(err, holdfast.ErrLost, holdfast.ErrTTLExpired, holdfast.ErrReleased, holdfast.ErrChanged):
		return history.Gone, causeOf(err)
	case errors.Is(err, holdfast.ErrClosed):
		return history.Closed, ""
	// Before ErrHeld: a wait that ctx ended also says what it waited for.
	case isAny(err, context.Canceled, context.DeadlineExceeded):
		return history.GaveUp, causeOf(err)
	case errors.Is(err, holdfast.ErrHeld):
		return history.Refused, ""
	// A wait that WithWait ended while no server could be reached.
	case acquisition && errors.Is(err, holdfast.ErrDisconnected):
		return history.GaveUp, causeOf(err)
	// The same, when the grant ended before it could be returned.
	case acquisition && isAny(err, holdfast.ErrSessionExpired, holdfast.ErrLeaseExpired, holdfast.ErrClockJump, holdfast.ErrBroken, holdfast.ErrReclaimed):
		return history.GaveUp, causeOf(err)
	}
	return history.Failed, causeOf(err)
}

// causeOf is the name of the most specific sentinel of an error, or "".
func causeOf(err error) string {
	for _, known := range []struct {
		err  error
		name string
	}{
		{holdfast.ErrSessionExpired, "ErrSessionExpired"},
		{holdfast.ErrLeaseExpired, "ErrLeaseExpired"},
		{holdfast.ErrReclaimed, "ErrReclaimed"},
		{holdfast.ErrBroken, "ErrBroken"},
		{holdfast.ErrTakenOver, "ErrTakenOver"},
		{holdfast.ErrClockJump, "ErrClockJump"},
		{holdfast.ErrTTLExpired, "ErrTTLExpired"},
		{holdfast.ErrReleased, "ErrReleased"},
		{holdfast.ErrChanged, "ErrChanged"},
		{holdfast.ErrHeld, "ErrHeld"},
		{holdfast.ErrDisconnected, "ErrDisconnected"},
		{holdfast.ErrDenied, "ErrDenied"},
		{holdfast.ErrClosed, "ErrClosed"},
		{holdfast.ErrInvalid, "ErrInvalid"},
	} {
		if errors.Is(err, known.err) {
			return known.name
		}
	}
	return ""
}

func isAny(err error, targets ...error) bool {
	for _, target := range targets {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}
