// Package late stages what fencing is for: a holder is paused between its last
// check of the lock and its write, until somebody else holds the lock and has
// written. The examples do so with several kinds of storage, with and without a
// fence.
package late

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/engine"
)

// A Turn is what a holder does before its write, such as reading. It returns the
// write.
type Turn func(ctx context.Context, client *engine.Client, lock *holdfast.Lock) (write func(context.Context) error, err error)

// Write has alice acquire the lock of a key, begin her turn, and pause before her
// write until the lock's TTL has expired and bob has had his turn. Then alice's
// write arrives; Write returns its result. An expired lease would do the same, and
// take longer.
func Write(ctx context.Context, out io.Writer, e *engine.Engine, key string, turn Turn) (late, err error) {
	alice, err := e.NewClient(ctx, "alice")
	if err != nil {
		return nil, err
	}
	defer alice.Close(ctx)
	bob, err := e.NewClient(ctx, "bob")
	if err != nil {
		return nil, err
	}
	defer bob.Close(ctx)

	lock, write, err := begin(ctx, e, alice, key, turn)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(out, "alice  holds the lock, token %d, sees that it is hers, and is stopped\n", lock.Token())

	bobs, err := bob.Acquire(ctx, key)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(out, "bob    holds the lock, token %d\n", bobs.Token())
	bobsWrite, err := turn(ctx, bob, bobs)
	if err != nil {
		return nil, err
	}
	if err := bobsWrite(ctx); err != nil {
		return nil, err
	}
	fmt.Fprintln(out, "bob    writes")

	late = write(ctx)
	if late == nil {
		fmt.Fprintln(out, "alice  goes on, and writes, without the lock")
	} else {
		fmt.Fprintf(out, "alice  goes on: %v\n", late)
	}
	fmt.Fprintf(out, "alice  asks her lock: %v\n", lock.Err())
	return late, bobs.Release(ctx)
}

// begin has a client acquire the lock and run up to its write. On a slow machine
// the TTL may have expired by then; it then starts again.
func begin(ctx context.Context, e *engine.Engine, client *engine.Client, key string, turn Turn) (*holdfast.Lock, func(context.Context) error, error) {
	ttl := 2 * time.Second
	if e.Local {
		ttl = 300 * time.Millisecond
	}
	for {
		lock, err := client.Acquire(ctx, key, holdfast.WithTTL(ttl))
		if err != nil {
			return nil, nil, err
		}
		write, err := turn(ctx, client, lock)
		if err != nil {
			return nil, nil, err
		}
		if lock.Err() == nil {
			return lock, write, nil
		}
	}
}
