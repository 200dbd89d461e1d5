//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/job"
	"github.com/holdfast-go/holdfast/memlock"
)

// expired is a hold whose renewals have failed.
type expired struct{ at time.Time }

func (expired) Done() <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}

func (expired) Err() error                    { return &holdfast.LostError{Key: "a", Cause: holdfast.ErrLeaseExpired} }
func (e expired) Deadline() time.Time         { return e.at }
func (expired) Release(context.Context) error { return nil }

// TestAnotherLockIsBrokenInTheGrace checks that the grace after the loss of one of several locks is over
// when another of them is broken.
func TestAnotherLockIsBrokenInTheGrace(t *testing.T) {
	c, err := memlock.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(context.Background()) }()
	locks, err := c.AcquireAll(t.Context(), []string{"b", "c", "d"})
	if err != nil {
		t.Fatal(err)
	}
	begun := filepath.Join(t.TempDir(), "begun")
	lost := expired{time.Now()}
	h := &supervisor{
		app: &app{err: &bytes.Buffer{}, log: slog.New(slog.DiscardHandler)}, lock: lost, each: locks.All(), key: "a,b,c,d",
		window: window{lease: 4 * time.Hour, grace: time.Hour}, known: lost.at,
	}
	script := "trap '' TERM; : >" + begun + "; while :; do sleep 0.05; done"
	h.job, err = job.Start(job.Command{Path: "/bin/sh", Args: []string{"sh", "-c", script}}, nil, lost.at)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = h.job.Signal(syscall.SIGKILL) }()
	awaitFile(t, begun)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		h.watch()
	}()
	if err := locks.Lock("b").Release(t.Context()); err != nil { // which is no reason
		t.Fatal(err)
	}
	info, err := c.Inspect(t.Context(), "c")
	if err == nil {
		err = c.Break(t.Context(), info)
	}
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("the command goes on")
	}
	if h.status.Signal != syscall.SIGKILL || h.over != exitLost {
		t.Errorf("the command has ended with %+v, and run with %d", h.status, h.over)
	}
}

// unconfirmed is a hold whose release is never confirmed. A signal comes meanwhile.
type unconfirmed struct{ expired }

func (unconfirmed) Release(ctx context.Context) error {
	_ = syscall.Kill(syscall.Getpid(), syscall.SIGTERM)
	<-ctx.Done()
	return fmt.Errorf("%w: %w", holdfast.ErrReleasePending, context.Cause(ctx))
}

// TestSignalDuringTheRelease checks that a signal ends the wait for the release, and with it that for the engine.
func TestSignalDuringTheRelease(t *testing.T) {
	var said bytes.Buffer
	a := &app{err: &said, set: settings{timeout: time.Hour}}
	h := &supervisor{app: a, lock: unconfirmed{}, signals: make(chan os.Signal, 1)}
	if err := h.release(nil); err != nil || !a.hasty {
		t.Errorf("release: %v, hasty: %v", err, a.hasty)
	}
	if !strings.Contains(said.String(), "interrupted by SIGTERM: others get the lock when its lease is over") {
		t.Errorf("said: %s", said.String())
	}
}

// gone is a hold that turns out to be lost when it is released.
type gone struct{ expired }

func (gone) Release(context.Context) error { return holdfast.ErrLost }

// TestLostAtTheReleaseOfACommandThatDidNotStart checks that run tells the cause that kept its command from starting.
func TestLostAtTheReleaseOfACommandThatDidNotStart(t *testing.T) {
	a := &app{err: &bytes.Buffer{}, set: settings{timeout: time.Hour}}
	h := &supervisor{app: a, lock: gone{}, signals: make(chan os.Signal, 1)}
	kept := cannotRun("command", job.ErrNotFound)
	if err := h.release(kept); !errors.Is(err, job.ErrNotFound) {
		t.Errorf("run ends with: %v", err)
	}
	h.job = &job.Job{}
	if err := h.release(nil); exitCode(t.Context(), err) != exitLost {
		t.Errorf("run ends with: %v", err)
	}
}

// awaitFile waits until there is a file.
func awaitFile(t *testing.T, name string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(name); err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("there is no file %s", name)
		}
	}
}
