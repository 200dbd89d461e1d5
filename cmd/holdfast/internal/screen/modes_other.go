//go:build unix && !linux

package screen

import "golang.org/x/sys/unix"

const (
	ioctlGetModes = unix.TIOCGETA
	ioctlSetModes = unix.TIOCSETA

	noKey = 0xff // _POSIX_VDISABLE
)
