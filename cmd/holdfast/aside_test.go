//go:build unix

package main

import (
	"bufio"
	"context"
	"io"
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

// TestNobodyReadsStderr checks that a command is watched, and ended, while whoever reads this program's messages does not
// read on, and that all of them come when it does.
func TestNobodyReadsStderr(t *testing.T) {
	c, err := memlock.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(context.Background()) }()
	lock, err := c.Acquire(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	r, w := io.Pipe()
	a := &app{err: w, log: slog.New(slog.DiscardHandler)}
	a.speakAside()
	h := &supervisor{
		app: a, lock: lock, key: "k", window: window{lease: 4 * time.Hour, grace: time.Hour},
		known: lock.Deadline(), done: lock.Done(), asked: asked(lock),
	}
	h.job, err = job.Start(job.Command{Path: "/bin/sh", Args: []string{"sh", "-c", "sleep 1000"}}, nil, lock.Deadline())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = h.job.Signal(syscall.SIGKILL) }()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		h.watch()
	}()
	info, err := c.Inspect(t.Context(), "k")
	if err == nil {
		err = c.Ask(t.Context(), info)
	}
	if err != nil {
		t.Fatal(err)
	}
	<-lock.Asked()
	if err := c.Break(t.Context(), info); err != nil {
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
	go func() {
		a.flush()
		_ = w.Close()
	}()
	said, err := io.ReadAll(r)
	if err != nil || !strings.Contains(string(said), holdfast.ErrBroken.Error()) {
		t.Errorf("%v; it said: %s", err, said)
	}
}

// TestStderrDoesNotBlock checks that a message waits for room also where a write does not: a command has changed that for the pipe
// that it shares with this program.
func TestStderrDoesNotBlock(t *testing.T) {
	var fds [2]int
	if err := syscall.Pipe(fds[:]); err != nil {
		t.Fatal(err)
	}
	r, w := os.NewFile(uintptr(fds[0]), "r"), os.NewFile(uintptr(fds[1]), "w")
	defer r.Close()
	defer w.Close()
	if err := syscall.SetNonblock(fds[1], true); err != nil { // behind the back of w
		t.Fatal(err)
	}
	full := 0
	for some := 0; some >= 0; some, _ = syscall.Write(fds[1], make([]byte, 1000)) {
		full += some
	}
	a := &app{err: w}
	a.speakAside()
	const message = 1000 // more than the first read makes room for
	a.warn("%s", strings.Repeat("x", message))
	a.warn("the end")
	text := make(chan string, 1)
	go func() {
		var all strings.Builder
		for small := make([]byte, message/2); !strings.HasSuffix(all.String(), "the end\n"); {
			n, err := r.Read(small)
			if err != nil {
				break
			}
			all.Write(small[:n])
		}
		text <- all.String()
	}()
	select {
	case all := <-text:
		if said := all[full:]; said != "holdfast: "+strings.Repeat("x", message)+"\nholdfast: the end\n" {
			t.Errorf("it said: %s", said)
		}
	case <-time.After(time.Minute):
		t.Fatal("what it had to say is lost")
	}
	a.flush()
}

// TestObserveGoesOn checks that the command of observe --exec runs for each change also while nobody reads that it has failed.
func TestObserveGoesOn(t *testing.T) {
	stores := map[string]*memlock.Store{"a": memlock.NewStore()}
	useEngine(t, func() engine { return &inMemory{stores: stores} })
	r, w := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	a := &app{in: strings.NewReader(""), out: io.Discard, err: w, leaveSignals: func() {}, lookupEnv: noEnv}
	dir := t.TempDir()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		a.main(ctx, []string{"observe", "k", "--store", "a", "--exec", `: >"` + dir + `/$HOLDFAST_HELD"; exit 7`})
		_ = w.Close()
	}()
	awaitFile(t, filepath.Join(dir, "false"))
	c, err := memlock.New(&memlock.Options{Store: stores["a"]})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(context.Background()) }()
	if _, err := c.Acquire(t.Context(), "k"); err != nil {
		t.Fatal(err)
	}
	awaitFile(t, filepath.Join(dir, "true"))
	defer time.AfterFunc(time.Minute, cancel).Stop()
	failures := 0
	for lines := bufio.NewScanner(r); lines.Scan(); {
		if lines.Text() == "holdfast: the command of --exec has failed: exit status 7" {
			failures++
		}
		if failures == 2 {
			cancel()
		}
	}
	<-ended
	if failures != 2 {
		t.Errorf("it told of %d failures", failures)
	}
}
