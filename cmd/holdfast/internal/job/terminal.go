//go:build unix

package job

import (
	"errors"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// A Terminal is the controlling terminal of this program.
type Terminal struct {
	fd    int
	own   int         // process group of this program
	modes *term.State // as they were before any command changed them
}

// OpenTerminal returns the controlling terminal, or nil if there is none.
func OpenTerminal() *Terminal {
	fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	t := &Terminal{fd: fd, own: unix.Getpgrp()}
	t.modes, _ = term.GetState(fd)
	return t
}

// Close closes it for this program.
func (t *Terminal) Close() { _ = unix.Close(t.fd) }

// IgnoreStops keeps the terminal from stopping this program when it prints
// while another has the foreground. It would be inherited by what is started.
func IgnoreStops() { signal.Ignore(syscall.SIGTTOU) }

// foreground is the process group in the foreground; 0 if unknown.
func (t *Terminal) foreground() int {
	group, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP)
	if err != nil {
		return 0
	}
	return group
}

// Ours reports whether this program has the foreground.
func (t *Terminal) Ours() bool { return t.foreground() == t.own }

// Give puts a job into the foreground, if it is this program that has it, and
// reports whether the job has it now. Call [IgnoreStops] before.
func (t *Terminal) Give(j *Job) bool {
	switch t.foreground() {
	case j.pid:
		return true
	case t.own:
		return unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, j.pid) == nil
	}
	return false
}

// TakeBack puts this program into the foreground, if a job has it, or a group
// of which nobody is left.
func (t *Terminal) TakeBack(j *Job) {
	group := t.foreground()
	if group == j.pid || (group > 0 && errors.Is(syscall.Kill(-group, 0), syscall.ESRCH)) {
		_ = unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, t.own)
	}
}

// Restore undoes what a command that was killed has done to the terminal's modes.
func (t *Terminal) Restore() {
	if t.modes != nil && t.Ours() {
		_ = term.Restore(t.fd, t.modes)
	}
}
