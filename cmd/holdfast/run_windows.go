package main

import (
	"context"
	"errors"
)

// run fails: ending a command before others get its lock takes process groups and signals
// that a process cannot catch.
func (a *app) run(context.Context, *runFlags) error { return notOnWindows("run") }

// elect fails for the same reason.
func (a *app) elect(context.Context, *electFlags) error { return notOnWindows("elect") }

func notOnWindows(name string) error {
	return &exitError{exitFailed, errors.New(name + " is not available on Windows: use \"holdfast hold\", or the program for Linux in the Windows Subsystem for Linux")}
}
