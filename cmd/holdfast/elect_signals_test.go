//go:build unix

package main

import (
	"bytes"
	"context"
	"os"
	"os/signal"
	"syscall"
	"testing"
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
