package main

import (
	"io"
	"os"
	"os/exec"
	"syscall"
)

// unread does not wait: the next write notices that the reader is gone.
func unread(io.Writer) error { return nil }

func readInBackground() {}

func signalName(s syscall.Signal) string { return s.String() }

// inGroup does nothing: there are no process groups, so only the command itself is ended.
func inGroup(*exec.Cmd) (cleanUp func()) { return func() {} }

// Windows has no job control, and watch prints lines.
const (
	fullScreen     = false
	continueSignal = syscall.SIGTERM // which never comes
)

func foreground(*os.File) bool { return true }

func stopGroup() {}
