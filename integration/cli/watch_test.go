package cli_test

import (
	"context"
	"testing"
)

// watchQuick is the interval of the tests' watches.
const watchQuick = "--interval=50ms"

// moment is the name of the time that an engine reports for a holder.
func (e *engine) moment() string {
	if e.name == "zookeeper" {
		return "queued"
	}
	return "since"
}

// wait starts a waiter for a key, and returns a function that makes it give up.
func (e *engine) wait(t *testing.T, key, owner string) context.CancelFunc {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	client := e.dial(t, owner)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if lock, err := client.Acquire(ctx, key); err == nil {
			_ = lock.Release(limited(t))
		}
	}()
	stop := func() {
		cancel()
		<-ended
	}
	t.Cleanup(stop)
	return stop
}
