//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/job"
	"github.com/holdfast-go/holdfast/memlock"
)

// TestElectEndsWithTheStatusOfItsCommand checks what elect ends with when a signal has gone to its
// command, whatever else has ended the term: the status of the command, or 69 if it could not be guarded.
func TestElectEndsWithTheStatusOfItsCommand(t *testing.T) {
	asked := func(c *memlock.Client, info holdfast.Info) error { return c.Ask(context.Background(), info) }
	broken := func(c *memlock.Client, info holdfast.Info) error { return c.Break(context.Background(), info) }
	for _, test := range []struct {
		name   string
		meets  func(*memlock.Client, holdfast.Info) error // the signal; nil: nothing
		over   int
		status job.Status
		want   int
	}{
		{"signal", nil, 0, job.Status{}, exitOK},
		{"signal, and a failure", nil, 0, job.Status{Code: 3}, 3},
		{"asked", asked, exitStepDown, job.Status{}, exitOK},
		{"asked, and a failure", asked, exitStepDown, job.Status{Code: 3}, 3},
		{"broken", broken, exitLost, job.Status{Signal: syscall.SIGKILL}, 128 + int(syscall.SIGKILL)},
		{"broken, unseen", broken, 0, job.Status{}, exitOK},
		{"--ttl", nil, exitTTL, job.Status{}, exitOK},
		{"no guard", nil, exitFailed, job.Status{Signal: syscall.SIGTERM}, exitFailed},
	} {
		for _, late := range []bool{false, true} { // the signal came after the command's end
			c, err := memlock.New(nil)
			if err != nil {
				t.Fatal(err)
			}
			election, err := c.Election("k", &holdfast.ElectionOptions{StepDownWhenAsked: true})
			if err != nil {
				t.Fatal(err)
			}
			a := &app{err: &bytes.Buffer{}}
			e := &elector{app: a, flags: &electFlags{}}
			terms := 0
			err = election.Run(t.Context(), func(ctx context.Context, term *holdfast.Lock) error {
				terms++
				if terms > 1 {
					return holdfast.ErrWithdrawn
				}
				if test.meets != nil {
					info, err := c.Inspect(ctx, "k")
					if err == nil {
						err = test.meets(c, info)
					}
					if err != nil {
						t.Error(err)
						return err
					}
					<-ctx.Done()
				}
				h := &supervisor{
					app: a, lock: term, key: "k", job: &job.Job{}, ended: true,
					told: !late, hurried: late, over: test.over, status: test.status,
				}
				return e.after(h, h.result())
			})
			err = e.result(t.Context(), err)
			got := exitOK
			if err != nil {
				got = exitCode(t.Context(), err)
			}
			if got != test.want || terms != 1 {
				t.Errorf("%s, late %t: elect ends with %d after %d terms (%v), want %d", test.name, late, got, terms, err, test.want)
			}
			_ = c.Close(context.Background())
		}
	}
}

// TestElectFailureWithPendingRelease checks that a candidacy which has failed is no success because the
// last release is not confirmed.
func TestElectFailureWithPendingRelease(t *testing.T) {
	for _, test := range []struct {
		err  error
		want int
	}{
		{holdfast.ErrDenied, exitFailed},
		{holdfast.ErrNames, exitNames},
		{errUnsteady, exitFailed},
		{holdfast.ErrReclaimed, exitLost},
		{&exitError{code: 3}, 3},
		{&exitError{code: exitOK}, exitOK}, // the command was told to end, and did
	} {
		var stderr bytes.Buffer
		e := &elector{app: &app{err: &stderr}}
		err := e.result(t.Context(), errors.Join(test.err, holdfast.ErrReleasePending))
		if err == nil || exitCode(t.Context(), err) != test.want {
			t.Errorf("%v: elect ends with the error %v, want status %d", test.err, err, test.want)
		}
		if !strings.Contains(stderr.String(), "others get the lock when its lease is over") {
			t.Errorf("%v: stderr is %q", test.err, stderr.String())
		}
	}
}
