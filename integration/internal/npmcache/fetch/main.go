// Fetch installs the npm packages that the tests use into the cache, and Node.js itself if the system's is too old, so that
// the tests run without a network. See npmcache. It prints the name and path of each.
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
	node, err := npmcache.Node(ctx)
	if err != nil {
		return err
	}
	fmt.Println("node", node)
	for name, packages := range map[string][]string{"dynalite": npmcache.Dynalite, "lock-client": npmcache.LockClient} {
		modules, err := npmcache.Modules(ctx, packages...)
		if err != nil {
			return err
		}
		fmt.Println(name, modules)
	}
	return nil
}
