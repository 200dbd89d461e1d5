//go:build unix

package main

import (
	"cmp"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// unread returns the error of a write once nobody reads a pipe or socket any more; a write
// would notice only at the next change. For other files it returns nil at once.
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
			return &fs.PathError{Op: "write", Path: f.Name(), Err: unix.EPIPE}
		}
	}
}

// readInBackground makes reads from the terminal in the background fail with EIO rather
// than stop the program.
func readInBackground() { signal.Ignore(syscall.SIGTTIN) }

// signalName is what users call a signal.
func signalName(s syscall.Signal) string { return cmp.Or(unix.SignalName(s), s.String()) }

// inGroup lets a command run in its own process group, of which cleanUp leaves nothing once
// the command's ctx has ended it.
func inGroup(cmd *exec.Cmd) (cleanUp func()) {
	ended := false
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error {
		ended = true
		return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
	}
	return func() {
		if ended {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		}
	}
}
