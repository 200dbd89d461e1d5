package integration_test

import (
	"syscall"
	"unsafe"
)

// sharedNow is a time that all processes of this machine share: CLOCK_MONOTONIC,
// which package time uses, too, but counts from the start of the process.
func sharedNow() int64 {
	const clockMonotonic = 1
	var ts syscall.Timespec
	_, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&ts)), 0)
	if errno != 0 {
		panic(errno)
	}
	return ts.Nano()
}
