//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/job"
)

// An elector runs a command in each of its terms.
type elector struct {
	app    *app
	flags  *electFlags
	client *client
	path   string
	window

	end    context.CancelCauseFunc // of the candidacy
	waited func()                  // undoes waits
}

// elect stands for election until the program ends.
func (a *app) elect(ctx context.Context, f *electFlags) error {
	path, err := job.Find(f.command[0])
	if err != nil {
		return cannotRun(f.command[0], err)
	}
	c, w, err := a.connectToHold(ctx, &f.runFlags)
	if err != nil {
		return err
	}
	defer a.disconnect(c)
	election, err := c.Election(f.key, &holdfast.ElectionOptions{Candidacy: f.options(), StepDownWhenAsked: f.stepDown})
	if err != nil {
		return err
	}
	a.log.Info("connected; the lock is asked for", "key", f.key)
	standing, end := context.WithCancelCause(ctx)
	defer end(nil)
	e := &elector{app: a, flags: f, client: c, path: path, window: w, end: end}
	e.waited = e.tell(standing)
	err = election.Run(standing, func(ctx context.Context, term *holdfast.Lock) error {
		e.waited()
		again := e.lead(ctx, term)
		e.waits(standing)
		return again
	})
	e.waited()
	return e.result(standing, err)
}

// result is the error of the program after the candidacy.
func (e *elector) result(standing context.Context, err error) error {
	if errors.Is(err, holdfast.ErrReleasePending) {
		e.app.warn("%v: others get the lock when its lease is over", holdfast.ErrReleasePending)
		e.app.hasty = errors.As(context.Cause(standing), new(interrupted))
	}
	said, by := (*exitError)(nil), interrupted{}
	switch {
	case errors.As(err, &said):
		return said
	case errors.As(context.Cause(standing), &by):
		return &exitError{128 + int(by.signal), by}
	case errors.Is(err, holdfast.ErrReclaimed):
		return &exitError{exitLost, err}
	}
	return err
}

// lead runs the command in a term. Its error ends the candidacy, as in Election.Run.
func (e *elector) lead(ctx context.Context, term *holdfast.Lock) error {
	if e.client.lease() != e.lease { // the session was replaced during the wait for the lock
		return errUnsteady
	}
	e.say("leading %s%s", plain(term.Key()), withToken(term.Token()))
	defer e.app.tellOutage(e.client, &e.flags.acquireFlags)()
	h := &supervisor{app: e.app, lock: term, key: term.Key(), window: e.window, ttl: e.flags.ttl, term: ctx}
	if !e.flags.stepDown { // otherwise ctx ends
		h.asked = asked(term)
	}
	err := h.run(ctx, job.Command{Path: e.path, Args: e.flags.command, Env: grantEnvironment(term)})
	e.heed(h)
	return e.after(h, err)
}

// after decides what follows a term.
func (e *elector) after(h *supervisor, err error) error {
	over := h.over
	if h.alone { // the end of the term came later, while processes that the command has left were being ended
		over, err = 0, h.outcome()
	}
	fromTerminal := h.status.Signal == syscall.SIGINT || h.status.Signal == syscall.SIGQUIT // Ctrl-C or Ctrl-\, to the command alone
	start, by := (*startError)(nil), interrupted{}
	switch {
	case errors.As(err, &start):
		return cannotRun(e.flags.command[0], job.Explain(start.err))
	case h.job == nil && errors.As(err, &by): // before the start of the command; Election.Run notices it
		return nil
	case h.job == nil: // the term was over by then
		e.say("the term is over: standing for %s again", plain(h.key))
		return nil
	case over == exitFailed:
		return err
	case h.told || h.hurried: // the candidacy is over, whatever else has ended the term
		return &exitError{code: h.status.ExitCode()}
	case fromTerminal && (over == 0 || h.front): // without a terminal, the command may answer SIGTERM so
		return &exitError{code: h.status.ExitCode()}
	case over != 0:
		e.say("the term is over: standing for %s again", plain(h.key))
		return nil
	case err == nil:
		e.say("the command has ended, and with it the term: standing for %s again", plain(h.key))
		return nil
	case e.flags.keepGoing:
		e.say("the command has failed (%s), which ends the term: standing for %s again", how(h.status), plain(h.key))
		return nil
	}
	return err
}

// how describes the failure of a command.
func how(s job.Status) string {
	if s.Signal != 0 {
		return signalName(s.Signal)
	}
	return fmt.Sprintf("status %d", s.Code)
}

// say reports terms, unless -q is given.
func (e *elector) say(format string, args ...any) {
	if !e.flags.quiet {
		e.app.warn(format, args...)
	}
}

// heed lets signals end the candidacy again, once the command that got them has ended.
func (e *elector) heed(h *supervisor) {
	ctx, leave, _ := interruptible(context.Background())
	context.AfterFunc(ctx, func() { e.end(context.Cause(ctx)) })
	e.app.leaveSignals = func() {
		leave()
		if ctx.Err() != nil { // the goroutine above may not have begun
			e.end(context.Cause(ctx))
		}
	}
	signal.Stop(h.signals)
	for {
		select {
		case s := <-h.signals: // it came after the end
			if ends(s.(syscall.Signal)) {
				e.end(interrupted{s.(syscall.Signal)})
			}
		default:
			return
		}
	}
}

// waits handles Ctrl-Z between two terms, and reports the holder.
func (e *elector) waits(standing context.Context) {
	stops := make(chan os.Signal, 1)
	if !signal.Ignored(syscall.SIGTSTP) {
		signal.Notify(stops, syscall.SIGTSTP) // it has no default action any more: see suspend
	}
	go func() {
		for range stops {
			_ = syscall.Kill(0, syscall.SIGTTIN)
		}
	}()
	quiet := e.tell(standing)
	e.waited = func() {
		signal.Stop(stops)
		close(stops)
		quiet()
	}
}

// tell reports the holder while the candidate waits, until stop is called.
func (e *elector) tell(standing context.Context) (stop func()) {
	if e.flags.quiet {
		return func() {}
	}
	return e.app.tellWaiting(standing, e.client, e.flags.key)
}
