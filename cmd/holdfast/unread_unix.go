//go:build unix

package main

import (
	"io"
	"os"

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
