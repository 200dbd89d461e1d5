//go:build unix

package main

import (
	"bytes"
	"context"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/job"
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

// termLock is the lock of a term.
type termLock struct {
	expired
	err error // how it has ended
}

func (l termLock) Err() error { return l.err }

// TestElectEndsWithTheStatusOfItsCommand checks the status of elect when a signal has gone to its command, in whatever way the term
// ends: it is that of the command, or 69 if the command could not be guarded.
func TestElectEndsWithTheStatusOfItsCommand(t *testing.T) {
	for _, test := range []struct {
		name   string
		lock   error
		over   int
		status job.Status
		want   int
	}{
		{"signal", nil, 0, job.Status{}, exitOK},
		{"signal, and a failure", nil, 0, job.Status{Code: 3}, 3},
		{"asked", nil, exitStepDown, job.Status{}, exitOK},
		{"asked, and a failure", nil, exitStepDown, job.Status{Code: 3}, 3},
		{"broken", holdfast.ErrBroken, exitLost, job.Status{Signal: syscall.SIGKILL}, 128 + int(syscall.SIGKILL)},
		{"broken, unseen", holdfast.ErrBroken, 0, job.Status{}, exitOK},
		{"--ttl", nil, exitTTL, job.Status{}, exitOK},
		{"no guard", nil, exitFailed, job.Status{Signal: syscall.SIGTERM}, exitFailed},
	} {
		for _, late := range []bool{false, true} { // the signal came after the command's end
			a := &app{err: &bytes.Buffer{}}
			e := &elector{app: a, flags: &electFlags{}}
			h := &supervisor{
				app: a, lock: termLock{err: test.lock}, key: "k", job: &job.Job{}, ended: true,
				told: !late, hurried: late, over: test.over, status: test.status,
			}
			err := e.after(h, h.result())
			if err == nil || exitCode(t.Context(), e.result(t.Context(), err)) != test.want {
				t.Errorf("%s, late %t: elect ends with %v, want status %d", test.name, late, err, test.want)
			}
		}
	}
}
