package main

import (
	"context"
	"errors"
)

// run refuses: to end a command before its lock goes to others takes process
// groups and signals that a process cannot catch.
func (a *app) run(context.Context, *runFlags) error {
	return &exitError{exitFailed, errors.New("run is not available on Windows: use \"holdfast hold\", or the program for Linux in the Windows Subsystem for Linux")}
}
