//go:build unix

package job

import (
	"errors"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// A Terminal is the controlling terminal of this program.
type Terminal struct {
	fd    int
	own   int         // process group of this program
	modes *term.State // before a command changed them
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

// Close closes the terminal for this program.
func (t *Terminal) Close() { _ = unix.Close(t.fd) }

// caught receives SIGTTOU while it is neither ignored nor has its default action.
var caught = make(chan os.Signal, 1)

// heedStops is for the start of a process, which inherits ignored signals, but not caught ones. Until [ignoreStops], a write in the
// background waits.
func heedStops() { signal.Notify(caught, syscall.SIGTTOU) }

// ignoreStops keeps the terminal from stopping this program when it prints in the background.
func ignoreStops() { signal.Ignore(syscall.SIGTTOU) }

// foreground is the process group in the foreground; 0 if unknown.
func (t *Terminal) foreground() int {
	group, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP)
	if err != nil {
		return 0
	}
	return group
}

// Ours reports whether this program is in the foreground.
func (t *Terminal) Ours() bool { return t.foreground() == t.own }

// Has reports whether a job is in the foreground.
func (t *Terminal) Has(j *Job) bool { return t.foreground() == j.pid }

// Give puts a job into the foreground if this program is there, and reports whether the job is there now.
func (t *Terminal) Give(j *Job) bool {
	switch t.foreground() {
	case j.pid:
		return true
	case t.own:
		return unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, j.pid) == nil
	}
	return false
}

// TakeBack puts this program into the foreground if the job or a dead group is there.
func (t *Terminal) TakeBack(j *Job) {
	group := t.foreground()
	if group == j.pid || (group > 0 && errors.Is(syscall.Kill(-group, 0), syscall.ESRCH)) {
		_ = unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, t.own)
	}
}

// Restore resets the terminal's modes, which a killed command may have changed.
func (t *Terminal) Restore() {
	if t.modes != nil && t.Ours() {
		_ = term.Restore(t.fd, t.modes)
	}
}
