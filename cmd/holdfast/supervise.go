//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/job"
)

// A supervisor runs a command while it holds a lock.
type supervisor struct {
	app  *app
	lock hold
	each []*holdfast.Lock // with --all: the single locks
	key  string
	window
	ttl   time.Duration
	term  context.Context // the command ends with it, and with the lock; nil for only with the lock
	asked <-chan string   // delivers the key of each lock that another client asks for; nil if that is not reported

	job      *job.Job
	guard    *job.Guard    // nil if there is none
	guards   []time.Time   // when guards were lost
	terminal *job.Terminal // nil if there is none
	signals  chan os.Signal

	done     <-chan struct{}  // closes when the lock ends; nil once the end has been handled
	ends     chan error       // with --all: how each lock has ended, once the first has
	known    time.Time        // the lock's last known deadline
	over     int              // exit status if the command is being ended, else 0
	kill     time.Time        // when SIGKILL is due; zero if it is not
	stopping bool             // SIGTSTP was passed on, and the command has not stopped yet
	woken    <-chan time.Time // fires after an attempt to stop this program

	status  job.Status
	ended   bool // the command has ended; others of its group may be alive
	alone   bool // it ended by itself, while its lock was live
	front   bool // it had the terminal to the end
	told    bool // a signal that ends programs was passed on to the command
	hurried bool // a signal came before the command started, or after it ended
}

// asked returns the channel for a supervisor's field of that name.
func asked(locks ...*holdfast.Lock) <-chan string {
	keys := make(chan string, len(locks))
	for _, l := range locks {
		go func() {
			select {
			case <-l.Asked():
				keys <- l.Key()
			case <-l.Done():
			}
		}()
	}
	return keys
}

// A hold is a lock, or several that are held together.
type hold interface {
	Done() <-chan struct{}
	Err() error
	Deadline() time.Time
	Release(ctx context.Context) error
}

// startError says that the command could not be started.
type startError struct{ err error }

func (e *startError) Error() string { return e.err.Error() }

// forwarded are the signals that are passed on to the command.
var forwarded = []os.Signal{
	syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
	syscall.SIGALRM, syscall.SIGWINCH, syscall.SIGTSTP, syscall.SIGCONT,
}

// run runs the command, and returns when its group is empty. It has already printed the errors of a running command.
func (h *supervisor) run(ctx context.Context, command job.Command) error {
	h.signals = make(chan os.Signal, 64)
	for _, s := range forwarded {
		if !signal.Ignored(s) { // ignored signals stay ignored, also for the command
			signal.Notify(h.signals, s)
		}
	}
	h.app.leaveSignals()
	if ctx.Err() != nil {
		h.hurried = true
		return context.Cause(ctx)
	}
	var err error
	if h.guard, err = job.StartGuard(h.key); err != nil {
		h.app.warn("%v: if holdfast is killed or stopped, the command is not ended in time", err)
	}
	defer func() { h.guard.Dismiss() }()
	h.known, h.done = h.lock.Deadline(), h.lock.Done()
	if err := h.lock.Err(); err != nil {
		return &exitError{exitLost, err}
	}
	if h.terminal = job.OpenTerminal(); h.terminal != nil {
		defer h.terminal.Close()
		if interactive() {
			command.Terminal = h.terminal
		}
	}
	if h.job, err = job.Start(command, h.guard, h.known.Add(h.grace)); err != nil {
		return &startError{err}
	}
	h.app.log.Info("the command has been started", "pid", h.job.PID())
	h.watch()
	return h.result()
}

// interactive reports whether the command gets the terminal from the start. In a pipeline, another program such as a pager may want it
// too; then the command gets it when it asks for it.
func interactive() bool {
	return term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(os.Stdout.Fd()))
}

// watch supervises the command until its group is empty.
func (h *supervisor) watch() {
	look := time.NewTicker(min(max(h.lease/50, 10*time.Millisecond), time.Second))
	defer look.Stop()
	changes := h.job.Changes()
	unguarded := h.guard.Ended()
	var ttl <-chan time.Time
	if h.ttl > 0 {
		ttl = time.After(h.ttl)
	}
	if h.lock.Err() != nil { // lost while this program was stopped before the start
		h.lost()
	}
	var over <-chan struct{}
	if h.term != nil {
		over = h.term.Done()
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
			changes, ttl, over = nil, nil, nil // neither --ttl nor the term ends it any more
			h.commandEnded(change.Status)
		case s := <-h.signals:
			h.forward(s.(syscall.Signal))
		case <-h.done:
			h.lost()
		case err := <-h.ends:
			if othersMayHave(err) {
				h.end(exitLost, err, time.Time{})
			}
		case <-over:
			over = nil
			if h.lock.Err() == nil {
				h.end(exitStepDown, context.Cause(h.term), time.Now().Add(h.grace))
			}
		case key := <-h.asked:
			if h.over == 0 {
				h.app.warn("another client asks for %s: it is held until the command ends", plain(key))
			}
		case <-ttl:
			h.end(exitTTL, fmt.Errorf("the command has run for %v (--ttl)", h.ttl), time.Now().Add(h.grace))
		case <-due(h.kill):
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

// look notes the end of the lease, and checks whether the machine was asleep when SIGKILL was due.
func (h *supervisor) look() {
	h.job.Reap(h.guard)
	if until := h.lock.Deadline(); h.lock.Err() == nil {
		h.known = until
		h.guard.Watch(h.job, until.Add(h.grace))
	}
	if !h.kill.IsZero() && passed(h.kill) {
		h.killNow()
	}
}

// commandEnded ends the processes that the command has left.
func (h *supervisor) commandEnded(status job.Status) {
	h.status, h.ended = status, true
	h.alone = h.over == 0 && h.lock.Err() == nil
	if h.terminal != nil {
		h.front = h.terminal.Has(h.job)
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

// lost ends the command because its lock has ended.
func (h *supervisor) lost() {
	h.done = nil
	err, deadline := h.lock.Err(), h.lock.Deadline()
	at := deadline.Add(h.grace)
	switch {
	case othersMayHave(err):
		at = time.Time{}
	case deadline.Before(h.known):
		at = time.Time{} // it did not expire: the engine ended it, and another client may have it
	default:
		h.guard.Watch(h.job, at)
	}
	h.end(exitLost, err, at)
	h.ends = make(chan error, len(h.each))
	for _, l := range h.each { // another lock may be broken during the grace
		go func() {
			<-l.Done()
			h.ends <- l.Err()
		}()
	}
}

// othersMayHave reports whether another client may already have a lock that was lost.
func othersMayHave(err error) bool {
	return errors.Is(err, holdfast.ErrBroken) || errors.Is(err, holdfast.ErrReclaimed) ||
		errors.Is(err, holdfast.ErrTakenOver) || errors.Is(err, holdfast.ErrClockJump)
}

// exitStepDown marks a command that was ended because its term was over. No program ends with it.
const exitStepDown = -1

// end ends the whole group with SIGTERM now and SIGKILL at a moment, which may have passed. The first reason and the earliest moment
// count.
func (h *supervisor) end(status int, why error, at time.Time) {
	left := time.Until(at)
	how := "SIGKILL to the command"
	if left > 0 {
		how = fmt.Sprintf("SIGTERM now, SIGKILL in %v", left.Round(time.Millisecond))
		h.terminate(at)
	} else {
		h.killNow()
	}
	if h.over == 0 {
		h.over = status
		h.app.warn("%v: %s", h.app.because(why), how)
	}
}

func (h *supervisor) terminate(at time.Time) {
	h.signal(syscall.SIGTERM)
	h.signal(syscall.SIGCONT) // a stopped process handles SIGTERM only after this
	if h.kill.IsZero() || at.Before(h.kill) {
		h.kill = at
	}
}

// killNow kills the group. An uninterruptible process dies later; this program holds the lock until then.
func (h *supervisor) killNow() {
	h.kill = time.Time{}
	h.signal(syscall.SIGKILL)
}

func (h *supervisor) signal(s syscall.Signal) {
	if err := h.job.Signal(s); err != nil {
		h.app.log.Warn("the command cannot be signalled", "signal", s, "error", err)
	}
}

// result is the error of the whole run.
func (h *supervisor) result() error {
	if err := h.lock.Err(); h.over == 0 && err != nil {
		h.over = exitLost
		what := "as the command ended"
		if h.status.Signal == syscall.SIGKILL {
			what = "the command was killed" // by the guard, if holdfast was stopped
		}
		h.app.warn("%v: %s", h.app.because(err), what)
	}
	if h.over != 0 {
		return &exitError{code: h.over}
	}
	return h.outcome()
}

// outcome is the error for the status of the command.
func (h *supervisor) outcome() error {
	if code := h.status.ExitCode(); code != 0 {
		return &exitError{code: code}
	}
	return nil
}

// release releases the lock, and returns the program's error. --timeout or a signal ends the wait for confirmation. If a signal came
// before, a further one has its default action.
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
	if errors.As(context.Cause(ctx), new(interrupted)) {
		h.app.hasty = true
	}
	switch {
	case err == nil || h.over != 0:
	case errors.Is(err, holdfast.ErrLost) && h.job == nil: // the command was not started, and result says why
	case errors.Is(err, holdfast.ErrLost):
		return &exitError{exitLost, fmt.Errorf("%w: noticed only when the command had ended", err)}
	default:
		h.app.warn("%v: others get the lock when its lease is over", err)
	}
	return result
}
