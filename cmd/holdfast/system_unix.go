//go:build unix

package main

import (
	"cmp"
	"io"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// unread returns unix.EPIPE when nobody reads a pipe or a socket any more. To
// find out by writing might take until the next change. For what cannot lose its
// reader it returns nil at once.
func unread(w io.Writer) error {
	f, ok := w.(*os.File)
	if !ok {
		return nil
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 {
		return nil
	}
	fds := []unix.PollFd{{Fd: int32(f.Fd())}}
	for {
		if n, err := unix.Poll(fds, -1); n > 0 && err == nil {
			return unix.EPIPE
		}
	}
}

// foreground reports whether a terminal is this program's to write to.
func foreground(terminal *os.File) bool {
	group, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPGRP)
	return err != nil || group == unix.Getpgrp()
}

// readInBackground makes a read from a terminal that is another's fail with EIO: it
// would stop the program.
func readInBackground() { signal.Ignore(syscall.SIGTTIN) }

// signalName is what users call a signal.
func signalName(s syscall.Signal) string { return cmp.Or(unix.SignalName(s), s.String()) }
