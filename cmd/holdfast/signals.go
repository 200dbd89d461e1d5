//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

// wakePeriod is the time in which a stop signal to this program takes effect, on any thread. It has no effect if no shell with job control
// could continue the program.
const wakePeriod = time.Second

// forward passes a signal on to the command. Once the command has ended, one signal kills the processes that it has left, and another ends
// this program.
func (h *supervisor) forward(s syscall.Signal) {
	switch {
	case s == syscall.SIGCONT:
		h.resume()
	case !h.ended:
		h.stopping = h.stopping || s == syscall.SIGTSTP
		h.told = h.told || ends(s)
		h.signal(s)
	case ends(s):
		if h.hurried {
			signal.Reset(s)
			_ = syscall.Kill(os.Getpid(), s)
			select {} // until the signal arrives
		}
		h.hurried = true
		h.killNow()
	}
}

// ends reports whether a signal ends programs.
func ends(s syscall.Signal) bool {
	return s == syscall.SIGINT || s == syscall.SIGTERM || s == syscall.SIGHUP || s == syscall.SIGQUIT
}

// stopped handles a command that was stopped: because to the shell it is part of the same job as this program, or because it wants the
// terminal.
func (h *supervisor) stopped(by syscall.Signal) {
	stopping := h.stopping
	h.stopping = false
	wants := by == syscall.SIGTTIN || by == syscall.SIGTTOU // the terminal
	if wants && (stopping || h.terminal != nil && h.terminal.Has(h.job)) {
		// The command has the terminal already, or was just told to stop. holdfast itself stops so at Ctrl-Z if it is the command: see suspend.
		// It is of no use to continue the command and send SIGTSTP again: SIGCONT discards a pending stop signal. If the command does want
		// the terminal, it asks again when it goes on.
		wants, by = false, syscall.SIGTSTP
	}
	switch {
	case h.over != 0: // it must end, but gets no SIGTERM while it is stopped
		h.signal(syscall.SIGCONT)
	case h.terminal == nil:
	case wants && h.terminal.Give(h.job):
		h.signal(syscall.SIGCONT)
	case wants, by == syscall.SIGTSTP:
		h.suspend(by)
	}
	// The sender of SIGSTOP will continue the command. Until then the lock is held.
}

// suspend stops this program and its process group, which the user's shell knows. The lock is not renewed then.
//
// It uses SIGTTIN, which has no effect if no shell could continue the program. SIGTSTP has the same default action, but Go cannot restore
// that once it has caught the signal.
func (h *supervisor) suspend(by syscall.Signal) {
	h.app.log.Info("stopped together with the command: the lock is not renewed meanwhile")
	h.terminal.TakeBack(h.job)
	_ = syscall.Kill(0, syscall.SIGTTIN)
	if by == syscall.SIGTSTP {
		h.woken = time.After(wakePeriod) // if this program was not stopped by then, the command must continue
	}
}

// resume continues the command, unless the lock was lost in the meantime.
func (h *supervisor) resume() {
	h.woken, h.stopping = nil, false
	if h.done != nil && h.lock.Err() != nil {
		h.lost()
	}
	if h.terminal != nil && !h.ended && interactive() {
		h.terminal.Give(h.job)
	}
	h.signal(syscall.SIGCONT)
}
