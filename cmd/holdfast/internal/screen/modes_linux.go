package screen

import "golang.org/x/sys/unix"

const (
	ioctlGetModes = unix.TCGETS
	ioctlSetModes = unix.TCSETS

	noKey = 0 // _POSIX_VDISABLE
)
