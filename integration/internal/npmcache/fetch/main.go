// Fetch puts what the tests use of npm into the cache, and Node.js itself if the system's is too old, so that the tests
// run without a network. See npmcache.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/holdfast-go/holdfast/integration/internal/npmcache"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := fetch(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func fetch(ctx context.Context) error {
	if _, err := npmcache.Node(ctx); err != nil {
		return err
	}
	for _, packages := range [][]string{npmcache.Dynalite, npmcache.LockClient} {
		if _, err := npmcache.Modules(ctx, packages...); err != nil {
			return err
		}
	}
	return nil
}
