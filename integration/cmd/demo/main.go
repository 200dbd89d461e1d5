// Demo shows locks on a real ZooKeeper, one line per event: from three
// processes that compete to a late write that is refused:
//
//	make demo
//
// It checks what it shows: its exit code is 0 only if every step has happened.
// It finds or starts the server as the tests do (see zkserver).
//
// Files: script.go has the steps, cast.go the processes and their reports,
// worker.go a worker process, resource.go what the lock protects, server.go the
// server.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

// patience bounds the whole demo.
const patience = 58 * time.Second

func main() {
	var me identity
	flag.StringVar(&me.name, "worker", "", "for the demo's own use: be this worker")
	flag.StringVar(&me.server, "server", "", "for the demo's own use: the ZooKeeper server of -worker")
	flag.StringVar(&me.resource, "resource", "", "for the demo's own use: the resource of -worker")
	flag.Parse()
	if me.name != "" {
		if err := beWorker(me); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", me.name, err)
			os.Exit(1)
		}
		return
	}

	// Linux kills a child when the thread that started it ends.
	runtime.LockOSThread()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	began := time.Now()
	if err := play(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "\ndemo failed: %v\n", err)
		stop()
		os.Exit(1)
	}
	fmt.Printf("\nEvery step happened and was checked, in %.1f s.\n", time.Since(began).Seconds())
}
