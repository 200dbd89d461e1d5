//go:build unix

package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/memlock"
)

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

// TestObserveGoesOn checks that the command of observe --exec runs for each change even while its failure messages are not read.
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
