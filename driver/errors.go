package driver

import (
	"context"
	"errors"
	"fmt"
)

// The sentinels of the errors of this package; those of package holdfast are the same.
var (
	ErrHeld     = errors.New("held by another")
	ErrInvalid  = errors.New("invalid")
	ErrMismatch = errors.New("in use in another way")
)

// A HeldError says who holds a key that was wanted. Callers of Acquire see a
// holdfast.HeldError in its place.
type HeldError struct {
	Holder Info // only Key and Held are set where there was no time to ask
}

// Error implements error.
func (e *HeldError) Error() string { return fmt.Sprintf("%q is held", e.Holder.Key) }

// Unwrap makes errors.Is match ErrHeld.
func (e *HeldError) Unwrap() error { return ErrHeld }

// An InvalidError is a holdfast.InvalidError.
type InvalidError struct {
	Field  string // as the caller knows it: "key", "TTL", "Options.SessionTimeout"
	Reason string // the rule it broke, with its limit
}

// Error implements error.
func (e *InvalidError) Error() string {
	return fmt.Sprintf("invalid %s: %s", e.Field, e.Reason)
}

// Unwrap makes errors.Is match ErrInvalid.
func (e *InvalidError) Unwrap() error { return ErrInvalid }

// Invalid returns an [*InvalidError]; the reason is formatted as by fmt.Sprintf.
func Invalid(field, reason string, args ...any) error {
	return &InvalidError{Field: field, Reason: fmt.Sprintf(reason, args...)}
}

// ContextError returns what ctx, which is done, ended with: its error, and its cause
// if that says more.
func ContextError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}
