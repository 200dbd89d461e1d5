//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

// wakePeriod is how long to wait for a stop signal to this program to take
// effect, which any thread may bring about. It has none where nobody could continue
// the program, because no shell with job control has started it.
const wakePeriod = time.Second

// forward passes a signal on to the command. Once that has ended, a signal ends
// what is left, and another this program.
func (h *supervisor) forward(s syscall.Signal) {
	switch {
	case s == syscall.SIGCONT:
		h.resume()
	case !h.ended:
		h.stopping = h.stopping || s == syscall.SIGTSTP
		h.signal(s)
	case s == syscall.SIGINT || s == syscall.SIGTERM || s == syscall.SIGHUP || s == syscall.SIGQUIT:
		if h.hurried {
			signal.Reset(s)
			_ = syscall.Kill(os.Getpid(), s)
			select {} // until it has arrived
		}
		h.hurried = true
		h.killNow()
	}
}

// stopped deals with a command that has been stopped: as a part of the job that
// this program is to the user's shell, or because it wants the terminal.
func (h *supervisor) stopped(by syscall.Signal) {
	stopping := h.stopping
	h.stopping = false
	switch {
	case h.over != 0: // it is to end, and sees no SIGTERM while it is stopped
		h.signal(syscall.SIGCONT)
	case h.terminal == nil:
	case (by == syscall.SIGTTIN || by == syscall.SIGTTOU) && h.terminal.Give(h.job):
		h.signal(syscall.SIGCONT)
		if stopping { // by the user, before the command had the terminal; SIGCONT has undone it
			h.signal(syscall.SIGTSTP)
		}
	case by == syscall.SIGTSTP, by == syscall.SIGTTIN, by == syscall.SIGTTOU:
		h.suspend(by)
	}
	// SIGSTOP is somebody's who will continue the command. Until then the lock is held.
}

// suspend stops this program with its own process group, which is what the
// user's shell knows. Nobody renews the lock then.
//
// It is SIGTTIN that does it, which has no effect where nobody could continue
// what it stops. SIGTSTP, which is like it, would be this program's own to
// handle: Go has no way back to the default action of a signal that was once
// asked for.
func (h *supervisor) suspend(by syscall.Signal) {
	h.app.log.Info("stopped together with the command: the lock is not renewed meanwhile")
	h.terminal.TakeBack(h.job)
	_ = syscall.Kill(0, syscall.SIGTTIN)
	if by == syscall.SIGTSTP {
		h.woken = time.After(wakePeriod) // if by then this program was not stopped, the command must not be, either
	}
}

// resume continues the command, if the lock has not been lost meanwhile.
func (h *supervisor) resume() {
	h.woken = nil
	if h.done != nil && h.lock.Err() != nil {
		h.lost()
	}
	if h.terminal != nil && !h.ended && interactive() {
		h.terminal.Give(h.job)
	}
	h.signal(syscall.SIGCONT)
}
