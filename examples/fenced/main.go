// Fenced shows why a lock needs a fencing token. A holder is paused between its
// last check of the lock and its write. When the write arrives, somebody else
// holds the lock: no lock can prevent that. The resource can refuse the write,
// because it remembers the greatest token that it has seen.
//
//	go run ./examples/fenced                                                     in memory
//	go run ./examples/fenced -engine zookeeper -servers 127.0.0.1:2181           the same on ZooKeeper
//	go run ./examples/fenced -engine dynamodb -endpoint http://127.0.0.1:8000    and on DynamoDB; AWS without -endpoint
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/engine"
)

const key = "examples/fenced/account-7"

// errStale is the resource's answer to a former holder.
var errStale = errors.New("refused: a newer holder has written")

// A resource is what the lock protects: a file store, a database row, a device.
// It compares and writes in one step. In SQL, with a column for the token:
//
//	UPDATE account SET balance = $1, token = $2 WHERE id = $3 AND token <= $2
type resource struct {
	mu      sync.Mutex
	value   string
	highest holdfast.Token
}

func (r *resource) write(token holdfast.Token, value string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if token < r.highest {
		return fmt.Errorf("%w: token %d is older than %d", errStale, token, r.highest)
	}
	r.highest, r.value = token, value
	return nil
}

func main() {
	engine.Main(func(ctx context.Context, e *engine.Engine) error { return run(ctx, os.Stdout, e) })
}

func run(ctx context.Context, out io.Writer, e *engine.Engine) error {
	var account resource
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

	const ttl = time.Second
	lock, err := alice.Acquire(ctx, key, holdfast.WithTTL(ttl))
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "alice  holds the lock for %v, token %d\n", ttl, lock.Token())

	if err := lock.Err(); err != nil {
		return err
	}
	fmt.Fprintln(out, "alice  sees that the lock is hers, begins to write, and is paused")
	resume := make(chan struct{})
	late := make(chan error, 1)
	go func() {
		<-resume // a long garbage collection, a frozen virtual machine, a slow network
		late <- account.write(lock.Token(), "alice's balance")
	}()

	bobs, err := bob.Acquire(ctx, key)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "bob    holds the lock, token %d\n", bobs.Token())
	if err := account.write(bobs.Token(), "bob's balance"); err != nil {
		return err
	}
	fmt.Fprintf(out, "bob    writes with token %d\n", bobs.Token())

	close(resume)
	err = <-late
	fmt.Fprintf(out, "alice  goes on with her write: %v\n", err)
	if !errors.Is(err, errStale) {
		return errors.New("the late write went through")
	}
	fmt.Fprintf(out, "alice  asks her lock: %v\n", lock.Err())
	fmt.Fprintf(out, "       the account has %s\n", account.value)
	return bobs.Release(ctx)
}
