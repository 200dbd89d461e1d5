//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/job"
)

// A supervisor runs a command while a lock is held.
type supervisor struct {
	app  *app
	lock *holdfast.Lock
	window
	ttl time.Duration

	job      *job.Job
	guard    *job.Guard    // nil: there is none
	guards   []time.Time   // when others had to take its place
	terminal *job.Terminal // nil: there is none
	signals  chan os.Signal

	done     <-chan struct{} // closes when the lock ends; nil once that has been dealt with
	known    time.Time       // until when the lock was seen to last
	over     int             // exit status of why the command is being ended; 0: it is not
	kill     alarm
	stopping bool             // SIGTSTP was passed on, and the command has not been stopped since
	woken    <-chan time.Time // after an attempt to stop this program

	status  job.Status
	ended   bool // the command has; others of its group may live
	hurried bool // a signal has come before or after it
}

// startError says that the command could not be started.
type startError struct{ err error }

func (e *startError) Error() string { return e.err.Error() }

// forwarded are the signals that are passed on to the command.
var forwarded = []os.Signal{
	syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
	syscall.SIGALRM, syscall.SIGWINCH, syscall.SIGTSTP, syscall.SIGCONT,
}

// run runs the command, and returns when nobody of its group is left. Its error
// has been printed already if it is one that the command has come to.
func (h *supervisor) run(ctx context.Context, command job.Command) error {
	h.signals = make(chan os.Signal, 64)
	for _, s := range forwarded {
		if !signal.Ignored(s) { // what is ignored stays so, for the command as well
			signal.Notify(h.signals, s)
		}
	}
	h.app.leaveSignals()
	if ctx.Err() != nil {
		h.hurried = true
		return context.Cause(ctx)
	}
	var err error
	if h.guard, err = job.StartGuard(h.lock.Key()); err != nil {
		h.app.warn("%v: if holdfast is killed or stopped, nobody ends the command in time", err)
	}
	defer func() { h.guard.Dismiss() }()
	h.known, h.done = h.lock.Deadline(), h.lock.Done()
	if err := h.lock.Err(); err != nil {
		return &exitError{exitLost, err}
	}
	if h.job, err = job.Start(command, h.guard, h.known.Add(h.grace)); err != nil {
		return &startError{err}
	}
	h.app.log.Info("the command has been started", "pid", h.job.PID())
	job.IgnoreStops()
	if h.terminal = job.OpenTerminal(); h.terminal != nil {
		defer h.terminal.Close()
		if interactive() {
			h.terminal.Give(h.job)
		}
	}
	h.watch()
	return h.result()
}

// interactive reports whether the command is to have the terminal from the
// start. Where a pipe is involved, others in it may want it as well, such as a
// pager: then the command gets it when it asks for it.
func interactive() bool {
	return term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(os.Stdout.Fd()))
}

// watch sees the command through.
func (h *supervisor) watch() {
	look := time.NewTicker(min(max(h.lease/50, 10*time.Millisecond), time.Second))
	defer look.Stop()
	changes := h.job.Changes()
	unguarded := h.guard.Ended()
	var ttl <-chan time.Time
	if h.ttl > 0 {
		ttl = time.After(h.ttl)
	}
	if h.lock.Err() != nil { // this program was stopped between the last look at the lock and the start
		h.lost()
	}
	for !h.ended || !h.job.Empty() {
		var leftovers <-chan time.Time
		if h.ended {
			leftovers = time.After(20 * time.Millisecond)
		}
		select {
		case change := <-changes:
			if change.Stopped != 0 {
				h.stopped(change.Stopped)
				continue
			}
			changes, ttl = nil, nil
			h.commandEnded(change.Status)
		case s := <-h.signals:
			h.forward(s.(syscall.Signal))
		case <-h.done:
			h.lost()
		case <-ttl:
			h.end(exitTTL, fmt.Errorf("the command has run for %v (--ttl)", h.ttl), time.Now().Add(h.grace))
		case <-h.kill.c():
			h.killNow()
		case <-h.woken:
			h.resume()
		case <-unguarded:
			unguarded = h.reguard()
		case <-leftovers:
		case <-look.C:
			h.look()
		}
	}
}

// mostGuards is how many guards may be lost in guardsWithin before the command is
// ended: somebody does not want them, or the machine cannot have them.
const (
	mostGuards   = 5
	guardsWithin = time.Minute
)

// reguard puts another guard in the place of one that is gone, and returns the
// channel that tells of its end. Where that cannot be done the command is ended.
func (h *supervisor) reguard() <-chan struct{} {
	why := h.guard.Failed()
	if why == nil {
		h.app.log.Info("the guard has killed the command")
		return nil
	}
	now := time.Now()
	h.guards = append(slices.DeleteFunc(h.guards, func(t time.Time) bool { return now.Sub(t) > guardsWithin }), now)
	err := fmt.Errorf("%d guards in %v", len(h.guards), guardsWithin)
	if len(h.guards) < mostGuards {
		if h.guard, err = h.guard.Again(h.job); err == nil {
			h.app.warn("the guard of the command is gone (%v): another takes its place", why)
			return h.guard.Ended()
		}
	}
	h.end(exitFailed, fmt.Errorf("the guard of the command is gone (%w), and no other can take its place: %w", why, err), now.Add(h.grace))
	return nil
}

// look notes until when the lock lasts, and whether a machine that was asleep
// has missed a moment.
func (h *supervisor) look() {
	h.job.Reap(h.guard)
	if until := h.lock.Deadline(); h.lock.Err() == nil {
		h.known = until
		h.guard.Watch(h.job, until.Add(h.grace))
	}
	if h.kill.passed() {
		h.killNow()
	}
}

// commandEnded has what the command left behind end as well.
func (h *supervisor) commandEnded(status job.Status) {
	h.status, h.ended = status, true
	if h.terminal != nil {
		h.terminal.TakeBack(h.job)
		if status.Signal != 0 {
			h.terminal.Restore()
		}
	}
	if h.over == 0 && !h.job.Empty() {
		h.app.log.Info("the command has ended and left others of its group behind: they get SIGTERM")
		h.terminate(time.Now().Add(h.grace))
	}
}

// lost ends the command, because its lock has ended.
func (h *supervisor) lost() {
	h.done = nil
	err, deadline := h.lock.Err(), h.lock.Deadline()
	at := deadline.Add(h.grace)
	switch {
	case errors.Is(err, holdfast.ErrBroken), errors.Is(err, holdfast.ErrReclaimed), errors.Is(err, holdfast.ErrTakenOver),
		errors.Is(err, holdfast.ErrClockJump):
		at = time.Time{} // somebody else may have it
	case deadline.Before(h.known):
		at = time.Time{} // it did not run out: the engine has ended it, and may have given it away
	default:
		h.guard.Watch(h.job, at)
	}
	h.end(exitLost, err, at)
}

// end has the whole group end: by SIGTERM, and by SIGKILL at a moment that may
// have passed. The first reason counts, and the earliest moment.
func (h *supervisor) end(status int, why error, at time.Time) {
	left := time.Until(at)
	if h.over == 0 {
		h.over = status
		h.app.warn("%v: %s", why, sentence(left))
	}
	if left > 0 {
		h.terminate(at)
	} else {
		h.killNow()
	}
}

// sentence says how the command ends that has some time left.
func sentence(left time.Duration) string {
	if left > 0 {
		return fmt.Sprintf("SIGTERM now, SIGKILL in %v", left.Round(time.Millisecond))
	}
	return "SIGKILL to the command"
}

func (h *supervisor) terminate(at time.Time) {
	h.signal(syscall.SIGTERM)
	h.signal(syscall.SIGCONT) // a stopped process sees no signal but this
	h.kill.set(at)
}

// killNow is for good. A process in an uninterruptible state dies later: until
// then the lock is not given up by this program.
func (h *supervisor) killNow() {
	h.kill.clear()
	h.signal(syscall.SIGKILL)
}

func (h *supervisor) signal(s syscall.Signal) {
	if err := h.job.Signal(s); err != nil {
		h.app.log.Warn("the command cannot be signalled", "signal", s, "error", err)
	}
}

// result says how all this has come to its end.
func (h *supervisor) result() error {
	if err := h.lock.Err(); h.over == 0 && err != nil {
		h.over = exitLost
		what := "as the command ended"
		if h.status.Signal == syscall.SIGKILL {
			what = "the command was killed" // by the guard, if holdfast was stopped
		}
		h.app.warn("%v: %s", err, what)
	}
	if h.over != 0 {
		return &exitError{code: h.over}
	}
	if code := h.status.ExitCode(); code != 0 {
		return &exitError{code: code}
	}
	return nil
}

// release gives the lock back, and returns what the program ends of. The wait
// for the engine's confirmation is bounded by --timeout, and by a signal; if one
// has come before, the next finds its default action.
func (h *supervisor) release(result error) error {
	ctx := context.Background()
	if !h.hurried {
		var leave, cancel func()
		ctx, leave, cancel = interruptible(ctx)
		defer leave()
		defer cancel()
	}
	signal.Stop(h.signals)
	ctx, cancel := h.app.bounded(ctx)
	defer cancel()
	err := h.lock.Release(ctx)
	switch {
	case err == nil || h.over != 0:
	case errors.Is(err, holdfast.ErrLost):
		return &exitError{exitLost, fmt.Errorf("%w: noticed only when the command had ended", err)}
	default:
		h.app.warn("%v: others get the lock when its lease is over", err)
	}
	return result
}
