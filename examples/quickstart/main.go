// Quickstart shows the life of a lock in one process, without a server or, with a
// flag, on one:
//
//	go run ./examples/quickstart
//	go run ./examples/quickstart -engine zookeeper -servers 127.0.0.1:2181
//	go run ./examples/quickstart -engine dynamodb -endpoint http://127.0.0.1:8000
//
// Two clients compete for a key. One releases it, holds it for too long, and is
// disconnected from the engine; the other takes over each time.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/engine"
)

func main() {
	engine.Main(func(ctx context.Context, e *engine.Engine) error { return run(ctx, os.Stdout, e) })
}

func run(ctx context.Context, out io.Writer, e *engine.Engine) error {
	start := time.Now()
	say := func(who, format string, args ...any) {
		fmt.Fprintf(out, "%5.2fs  %-5s  %s\n", time.Since(start).Seconds(), who, fmt.Sprintf(format, args...))
	}
	const key = "orders/42"

	// A real process has one client. In memory it comes from memlock.New, otherwise
	// from zklock.Dial or dynamolock.New.
	alice, err := e.NewClient(ctx, "alice")
	if err != nil {
		return err
	}
	defer alice.Close(ctx)
	bob, err := e.NewClient(ctx, "bob")
	if err != nil {
		return err
	}
	defer bob.Close(ctx)
	events := alice.Events()
	defer events.Close()

	say("", "-- one at a time")
	lock, err := alice.Acquire(ctx, key)
	if err != nil {
		return err
	}
	say("alice", "holds %s, token %d", key, lock.Token())
	_, err = bob.TryAcquire(ctx, key)
	if !errors.Is(err, holdfast.ErrHeld) {
		return fmt.Errorf("bob was not refused: %v", err)
	}
	say("bob", "is refused: %v", err)
	if err := lock.Release(ctx); err != nil {
		return err
	}
	say("alice", "releases")

	say("", "-- a TTL limits how long a lock is held")
	lock, err = alice.Acquire(ctx, key, holdfast.WithTTL(500*time.Millisecond))
	if err != nil {
		return err
	}
	say("alice", "holds %s for half a second, token %d", key, lock.Token())
	say("bob", "waits for it")
	var bobs *holdfast.Lock
	granted := make(chan error, 1)
	go func() {
		var err error
		bobs, err = bob.Acquire(ctx, key)
		granted <- err
	}()
	event := <-events.TTLExpired()
	say("alice", "hears the event %q: %s, token %d", event.Kind, event.Key, event.Token)
	if err := <-granted; err != nil {
		return err
	}
	say("bob", "holds %s, token %d", key, bobs.Token())
	if err := bobs.Release(ctx); err != nil {
		return err
	}
	say("bob", "releases")

	if alice.Cut == nil {
		say("", "-- for a client that is cut off, see it in memory, or run examples/consumer and stop the server")
		return nil
	}
	say("", "-- a client that is cut off learns of the loss before another can hold the lock")
	lock, err = alice.Acquire(ctx, key)
	if err != nil {
		return err
	}
	say("alice", "holds %s, token %d", key, lock.Token())
	go func() {
		var err error
		bobs, err = bob.Acquire(ctx, key)
		granted <- err
	}()
	alice.Cut()
	say("alice", "is cut off from the store, while bob waits")
	<-lock.Done() // closed by alice's own clock: nothing can reach her
	say("alice", "knows by herself: %v", lock.Err())
	if err := <-granted; err != nil {
		return err
	}
	say("bob", "holds %s, token %d", key, bobs.Token())
	alice.Heal()
	return bobs.Release(ctx)
}
