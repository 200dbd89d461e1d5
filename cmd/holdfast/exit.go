package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast"
)

// Exit statuses. Otherwise "run" exits with the status of its command, or with 128 + n if signal n killed it. This follows flock(1), which
// uses sysexits.h and has a flag for "not acquired"; timeout(1), whose status 124 --ttl shares; and the shells' 126 and 127.
const (
	exitOK          = 0
	exitNo          = 1   // a negative answer: nothing to break, a check failed
	exitUsage       = 64  // EX_USAGE: invalid or contradictory flags, settings or keys
	exitFailed      = 69  // EX_UNAVAILABLE: unreachable, refused, or any other failure
	exitNotAcquired = 75  // EX_TEMPFAIL: another client holds the lock; run -E changes the number
	exitNames       = 78  // EX_CONFIG: a program that ignores this one's --names uses the key
	exitLost        = 79  // the first free one after sysexits.h: the lock was lost
	exitTTL         = 124 // as timeout(1): --ttl was reached
	exitNotExec     = 126
	exitNotFound    = 127
)

// exitError is an error with an exit status. Nothing is printed if err is nil.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// usagef is the error for an invalid command line or setting.
func usagef(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

// no is the error for a question with a negative answer.
func no(format string, args ...any) error {
	return &exitError{exitNo, fmt.Errorf(format, args...)}
}

// exitCode returns the exit status for an error.
func exitCode(ctx context.Context, err error) int {
	var said *exitError
	var by interrupted
	switch {
	case errors.As(err, &said):
		return said.code
	case errors.As(context.Cause(ctx), &by):
		return 128 + int(by.signal)
	case errors.Is(err, holdfast.ErrInvalid):
		return exitUsage
	case errors.Is(err, holdfast.ErrHeld):
		return exitNotAcquired
	case errors.Is(err, holdfast.ErrNames):
		return exitNames
	case errors.Is(err, holdfast.ErrChanged):
		return exitNo
	}
	return exitFailed
}
