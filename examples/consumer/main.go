// Consumer takes messages from streams, each of which one consumer may have at a time. It
// observes them all, and takes over streams that are given up, and those of consumers that
// expire or die.
// It is built around one select, and reacts to events instead of polling.
//
//	go run ./examples/consumer                                                  two in one process, disconnected on purpose
//	go run ./examples/consumer -engine zookeeper -servers 127.0.0.1:2181        one; start several, stop and start the server
//	go run ./examples/consumer -engine dynamodb -endpoint http://127.0.0.1:8000 -trouble
//	                                                                            one, disconnected on purpose; start several;
//	                                                                            AWS without -endpoint
//
// Each hold has a TTL, after which the stream goes to a consumer that has fewer. Ctrl-C or
// SIGTERM ends it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/engine"
)

var streams = []string{"examples/consumer/stream-1", "examples/consumer/stream-2", "examples/consumer/stream-3"}

func main() {
	ttl := flag.Duration("ttl", 0, "how long a consumer may have a stream at a time (default 5s in memory, else 10s)")
	trouble := flag.Bool("trouble", false, "cut the consumer off from the engine twice; always so in memory, not possible on zookeeper")
	engine.Main(func(ctx context.Context, e *engine.Engine) error {
		if *ttl < 0 {
			return errors.New("-ttl must be positive")
		}
		if *ttl == 0 {
			*ttl = e.Lease + 4*time.Second // long enough to see a lease expire, too
		}
		return run(ctx, slog.New(slog.NewTextHandler(os.Stdout, nil)), e, *ttl, *trouble || e.Local)
	})
}

// run consumes until ctx ends, or a consumer fails.
func run(ctx context.Context, log *slog.Logger, e *engine.Engine, ttl time.Duration, trouble bool) error {
	n := 1
	if e.Local {
		n = 2 // no other process can take part
	}
	consuming, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var all sync.WaitGroup
	for i := range n {
		name := fmt.Sprintf("consumer-%d.%d", os.Getpid(), i+1)
		client, err := e.NewClient(consuming, name)
		if err != nil {
			fail(err)
			break
		}
		if trouble && client.Cut == nil {
			fail(errors.Join(errors.New("-trouble cannot cut off a client of ZooKeeper; stop and start the server instead"), client.Close(ctx)))
			break
		}
		c := &consumer{
			log: log.With("consumer", name), name: name, client: client.Client, ttl: ttl,
			pause: max(e.Poll, 200*time.Millisecond),
		}
		all.Go(func() {
			if err := c.run(consuming); err != nil {
				fail(err)
			}
		})
		if trouble {
			all.Go(func() { makeTrouble(consuming, client, name, e.Lease) })
		}
	}
	all.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return context.Cause(consuming) // of the first that failed
}

// makeTrouble disconnects a client that has the first stream, first for less than the
// lease, then for more.
func makeTrouble(ctx context.Context, client *engine.Client, name string, lease time.Duration) {
	var last holdfast.Token
	for _, outage := range []time.Duration{lease / 2, 3 * lease / 2} {
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Second):
			}
			info, err := client.Inspect(ctx, streams[0])
			if err == nil && info.Held && info.Owner == name && info.Token != last {
				last = info.Token
				break
			}
		}
		client.Cut()
		select {
		case <-ctx.Done():
		case <-time.After(outage):
		}
		client.Heal()
	}
}
