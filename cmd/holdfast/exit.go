package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast"
)

// The exit status. "run" otherwise ends with the status of its command, or with
// 128 + n if that died of signal n. The habits are those of flock(1), which uses
// sysexits.h and lets the user choose another number for "not acquired"; of
// timeout(1), whose 124 a user of --ttl expects; and of every shell, with its 126
// and 127.
const (
	exitOK          = 0
	exitNo          = 1   // the answer is no: nothing to break, a check has failed
	exitUsage       = 64  // EX_USAGE: bad flags, bad keys, settings that contradict each other
	exitFailed      = 69  // EX_UNAVAILABLE: not reachable, refused, or any other failure
	exitNotAcquired = 75  // EX_TEMPFAIL: held by another; run -E chooses another number
	exitLost        = 79  // the first that sysexits.h leaves free: the lock was lost while the command ran
	exitTTL         = 124 // as timeout(1): --ttl was reached
	exitNotExec     = 126
	exitNotFound    = 127
)

// exitError is an error with the exit status that it means. Without an err it
// is only that, and nothing is printed.
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

// usagef is the error of a command line, or of a setting, that makes no sense.
func usagef(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

// no is the error of a question whose answer is no.
func no(format string, args ...any) error {
	return &exitError{exitNo, fmt.Errorf(format, args...)}
}

// exitCode says what an error means to whoever started the program.
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
	case errors.Is(err, holdfast.ErrChanged):
		return exitNo
	}
	return exitFailed
}
