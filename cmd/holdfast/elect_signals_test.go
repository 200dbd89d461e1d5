//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/job"
	"github.com/holdfast-go/holdfast/memlock"
)

// TestSignalBeforeTheNextTerm checks that a signal that came before a term began has ended the candidacy by the time at which
// signals go to the command.
func TestSignalBeforeTheNextTerm(t *testing.T) {
	come := make(chan os.Signal, 1)
	signal.Notify(come, syscall.SIGTERM)
	defer signal.Stop(come)
	for range 200 {
		standing, end := context.WithCancelCause(t.Context())
		e := &elector{app: &app{err: &bytes.Buffer{}}, flags: &electFlags{}, end: end}
		e.heed(&supervisor{signals: make(chan os.Signal, 1)})
		if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		<-come
		e.app.leaveSignals()
		if standing.Err() == nil {
			t.Fatal("it stands, and its command would be started")
		}
	}
}

// TestTermEndsBehindItsCommand checks that a command counts as one that has failed, and not as one that was ended with its
// term or its lock, if it had failed before, and only what it has left behind was still there.
func TestTermEndsBehindItsCommand(t *testing.T) {
	for _, test := range []struct {
		name   string
		ends   func(*memlock.Client, context.CancelCauseFunc) error
		leaves bool // what it has left behind ends by itself
		run    int  // what run would end with
	}{
		{"asked", func(_ *memlock.Client, end context.CancelCauseFunc) error { end(holdfast.ErrAsked); return nil }, true, 3},
		{"broken", func(c *memlock.Client, _ context.CancelCauseFunc) error {
			info, err := c.Inspect(context.Background(), "k")
			if err == nil {
				err = c.Break(context.Background(), info)
			}
			return err
		}, false, exitLost},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, err := memlock.New(nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Close(context.Background()) }()
			lock, err := c.Acquire(t.Context(), "k")
			if err != nil {
				t.Fatal(err)
			}
			term, end := context.WithCancelCause(t.Context())
			h := &supervisor{
				app: &app{err: &bytes.Buffer{}, log: slog.New(slog.DiscardHandler)}, lock: lock, key: "k", term: term,
				window: window{lease: 4 * time.Hour, grace: time.Hour}, known: lock.Deadline(), done: lock.Done(),
			}
			dir := t.TempDir()
			asked, leave := filepath.Join(dir, "asked"), filepath.Join(dir, "leave")
			script := fmt.Sprintf(`(trap ': >%s' TERM; : >%s/ready; until [ -e %s ]; do sleep 0.02; done) &
				until [ -e %s/ready ]; do sleep 0.02; done; exit 3`, asked, dir, leave, dir)
			h.job, err = job.Start(job.Command{Path: "/bin/sh", Args: []string{"sh", "-c", script}, Env: os.Environ()}, nil, lock.Deadline())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = h.job.Signal(syscall.SIGKILL) }()
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				h.watch()
			}()
			awaitFile(t, asked)
			if err := test.ends(c, end); err != nil {
				t.Fatal(err)
			}
			if test.leaves {
				time.Sleep(100 * time.Millisecond) // for what is not to be
				if err := os.WriteFile(leave, nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			select {
			case <-ended:
			case <-time.After(time.Minute):
				t.Fatal("it does not end")
			}
			result := h.result()
			if got := exitCode(t.Context(), result); got != test.run {
				t.Errorf("run ends with %d, want %d", got, test.run)
			}
			e := &elector{app: h.app, flags: &electFlags{}}
			if err := e.after(h, result); err == nil || exitCode(t.Context(), err) != 3 {
				t.Errorf("after a status of %d, elect goes on with %v", h.status.Code, err)
			}
		})
	}
}

// TestCtrlCInTheGrace checks that Ctrl-C ends elect, which does not get it from the terminal, also if the command dies of it
// while it is being ended for another reason; and that a command without a terminal may die of SIGINT when it gets SIGTERM.
func TestCtrlCInTheGrace(t *testing.T) {
	for _, over := range []int{0, exitTTL, exitLost, exitStepDown} {
		for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT} {
			for _, front := range []bool{false, true} {
				for _, keepGoing := range []bool{false, true} {
					e := &elector{app: &app{err: &bytes.Buffer{}}, flags: &electFlags{keepGoing: keepGoing}}
					h := &supervisor{key: "k", job: &job.Job{}, ended: true, front: front, over: over, status: job.Status{Signal: s}}
					got, want := e.after(h, &exitError{code: 128 + int(s)}), exitOK
					if front || over == 0 {
						want = 128 + int(s)
					}
					if (got == nil) != (want == exitOK) || got != nil && exitCode(t.Context(), got) != want {
						t.Errorf("%v, over with %d, terminal: %t: elect goes on with %v", s, over, front, got)
					}
				}
			}
		}
	}
}

// TestSignalDuringTheReleaseOfATerm checks that a signal that ends the wait for the last release ends that for the engine, too.
func TestSignalDuringTheReleaseOfATerm(t *testing.T) {
	for _, cause := range []error{interrupted{syscall.SIGTERM}, nil} {
		a := &app{err: &bytes.Buffer{}}
		standing, end := context.WithCancelCause(t.Context())
		if cause != nil {
			end(cause)
		}
		_ = (&elector{app: a}).result(standing, errors.Join(&exitError{code: 3}, holdfast.ErrReleasePending))
		if a.hasty != (cause != nil) {
			t.Errorf("ended by %v: hasty is %t", cause, a.hasty)
		}
		end(nil)
	}
}
