// Demo shows locks on a real ZooKeeper, one line per event: from three processes that compete to a late write that is refused.
//
//	make demo
//
// Its exit code is 0 only if every step has happened. It finds or starts the server as the tests do (see zkserver), and reaches it through
// a proxy, which can cut it off.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

const (
	patience = 58 * time.Second // bounds the whole demo
	short    = 2 * time.Second  // session timeout that keeps the demo quick
)

func main() {
	name := flag.String("worker", "", "for the demo's own use: be this worker")
	server := flag.String("server", "", "for the demo's own use: the ZooKeeper server of -worker")
	session := flag.Duration("session", short, "for the demo's own use: the session timeout of -worker")
	flag.Parse()
	if *name != "" {
		if err := beWorker(*name, *server, *session); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", *name, err)
			os.Exit(1)
		}
		return
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	began := time.Now()
	if err := play(ctx, short); err != nil {
		fmt.Fprintf(os.Stderr, "\ndemo failed: %v\n", err)
		stop()
		os.Exit(1)
	}
	fmt.Printf("\nEvery step happened and was checked, in %.1f s.\n", time.Since(began).Seconds())
}
