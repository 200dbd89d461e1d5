package history

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Now is a time in nanoseconds that all processes of this machine share: CLOCK_MONOTONIC, which package time uses as well, but
// counts from the start of the process.
func Now() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(fmt.Sprintf("clock_gettime: %v", err)) // every supported kernel has it
	}
	return ts.Nano()
}
