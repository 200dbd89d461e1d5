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
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/job"
)

// unread waits until the reader of a pipe or socket is gone, and returns the error that a write would get then. For other files it returns
// nil at once.
func unread(w io.Writer) error {
	f, ok := w.(*os.File)
	if !ok {
		return nil
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 {
		return nil
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return nil
	}
	var broken error
	_ = raw.Control(func(fd uintptr) { // which keeps the file open meanwhile
		fds := []unix.PollFd{{Fd: int32(fd)}}
		for broken == nil {
			if n, err := unix.Poll(fds, -1); n > 0 && err == nil {
				broken = &fs.PathError{Op: "write", Path: f.Name(), Err: unix.EPIPE}
			}
		}
	})
	return broken
}

// readInBackground makes reads from the terminal in the background fail with EIO rather than stop the program.
func readInBackground() { signal.Ignore(syscall.SIGTTIN) }

// signalName is the name of a signal for users.
func signalName(s syscall.Signal) string { return cmp.Or(unix.SignalName(s), s.String()) }

// inGroup lets a command run in its own process group. Once the command's ctx has ended it, cleanUp kills the processes of the group that
// have not ended within cmd.WaitDelay.
func inGroup(cmd *exec.Cmd) (cleanUp func()) {
	var kill time.Time // zero while ctx goes on
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error {
		kill = time.Now().Add(cmd.WaitDelay)
		// A stopped process handles SIGTERM only when it continues. It must continue before the command itself ends, too: then the kernel
		// would send it SIGHUP, as a stopped process of an orphaned group.
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGCONT)
		err := syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGCONT)
		return err
	}
	return func() {
		if kill.IsZero() {
			return
		}
		for group := cmd.Process.Pid; !job.EmptyGroup(group); time.Sleep(20 * time.Millisecond) {
			if !time.Now().Before(kill) {
				_ = syscall.Kill(-group, syscall.SIGKILL)
				return
			}
		}
	}
}

// fullScreen says that watch can use the whole screen.
const fullScreen = true

// continueSignal comes when a stopped program continues.
const continueSignal = syscall.SIGCONT

// foreground reports whether this program may use its terminal.
func foreground(terminal *os.File) bool {
	group, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPGRP)
	return err != nil || group == unix.Getpgrp() // err: not our controlling terminal, or gone
}

// stopGroup stops this job, as Ctrl-Z does. That has no effect if no shell could continue the job: then SIGCONT restores the screen.
func stopGroup() {
	_ = syscall.Kill(0, syscall.SIGTSTP)
	time.AfterFunc(200*time.Millisecond, func() { _ = syscall.Kill(os.Getpid(), syscall.SIGCONT) })
}
