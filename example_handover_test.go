package holdfast_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/memlock"
)

// serve works in pieces until it is told to hand over, or loses the lock. It stops
// between two pieces, so the successor finds none half done.
func serve(ctx context.Context, process *memlock.Client, handOver <-chan struct{}) error {
	return process.Do(ctx, "node-7", func(ctx context.Context, lock *holdfast.Lock) error {
		fmt.Println(lock.Owner(), "serves, token", lock.Token())
		for {
			select {
			case <-handOver:
				fmt.Println(lock.Owner(), "has finished its piece, and hands over")
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(time.Millisecond): // a piece of the work
			}
		}
	})
}

// A new version of a program takes over from the old one: it starts, waits in the
// queue, and acquires the lock as soon as the old one releases it. They never both
// serve. (If the old one has crashed, see WithReclaim.)
func Example_handingOver() {
	ctx := context.Background()
	store := memlock.NewStore() // stands in for a server
	start := func(version string) (stop func()) {
		client, err := memlock.New(&memlock.Options{Store: store, Owner: version})
		if err != nil {
			log.Fatal(err)
		}
		handOver, ended := make(chan struct{}), make(chan error, 1)
		go func() { ended <- serve(ctx, client, handOver) }()
		for seen := false; !seen; time.Sleep(time.Millisecond) { // until it serves or waits
			info, err := client.Inspect(ctx, "node-7")
			if err != nil {
				log.Fatal(err)
			}
			seen = info.Owner == version || len(info.Queue) > 0
		}
		return func() { // in production, by SIGTERM
			handOver <- struct{}{}
			if err := <-ended; err != nil {
				log.Fatal(err)
			}
			client.Close(ctx)
		}
	}

	stopOld := start("version 1")
	stopNew := start("version 2")
	stopOld()
	stopNew()
	// Output:
	// version 1 serves, token 1
	// version 1 has finished its piece, and hands over
	// version 2 serves, token 2
	// version 2 has finished its piece, and hands over
}
