package faultproxy

import (
	"syscall"
	"time"
)

// sleep blocks a thread, which the kernel wakes on time.
func sleep(d time.Duration) {
	if d > 0 {
		rest := syscall.NsecToTimespec(int64(d))
		_ = syscall.Nanosleep(&rest, nil)
	}
}
