//go:build unix

package screen

import (
	"os"

	"golang.org/x/sys/unix"
)

// getModes fails for what is no terminal.
func getModes(f *os.File) (*unix.Termios, error) {
	return unix.IoctlGetTermios(int(f.Fd()), ioctlGetModes)
}

func setModes(f *os.File, modes *unix.Termios) error {
	return unix.IoctlSetTermios(int(f.Fd()), ioctlSetModes, modes)
}

// unbuffered are modes in which each character that is typed arrives at once, and
// is not shown; a read does not wait for one. Ctrl-C still is a signal, but not Ctrl-Z: see SuspendKey.
func unbuffered(modes *unix.Termios) *unix.Termios {
	m := *modes
	m.Lflag &^= unix.ICANON | unix.ECHO
	m.Cc[unix.VMIN], m.Cc[unix.VTIME] = 0, 0
	m.Cc[unix.VSUSP] = noKey
	return &m
}
