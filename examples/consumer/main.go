// Consumer is a program built around one select: it holds a lock on a stream of
// messages for as long as it may, and reacts to events instead of asking.
//
//	go run ./examples/consumer                                                  two in one process, with trouble made on purpose
//	go run ./examples/consumer -engine zookeeper -servers 127.0.0.1:2181        one; start several, stop and start the server
//	go run ./examples/consumer -engine dynamodb -endpoint http://127.0.0.1:8000 -trouble
//	                                                                            one, cut off on purpose; start several;
//	                                                                            AWS without -endpoint
//
// Each hold has a TTL, so that consumers take turns. Ctrl-C or SIGTERM ends it.
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

const key = "examples/consumer/stream-7"

func main() {
	ttl := flag.Duration("ttl", 0, "how long a consumer may have the stream at a time (default 5s in memory, else 10s)")
	trouble := flag.Bool("trouble", false, "cut the consumer off from the engine twice; always so in memory, not possible on zookeeper")
	engine.Main(func(ctx context.Context, e *engine.Engine) error {
		if *ttl < 0 {
			return errors.New("-ttl must be positive")
		}
		if *ttl == 0 {
			*ttl = e.Lease + 4*time.Second // a lease that runs out is to be seen too
		}
		return run(ctx, slog.New(slog.NewTextHandler(os.Stdout, nil)), e, *ttl, *trouble || e.Local)
	})
}

// run consumes until ctx ends, or a consumer fails.
func run(ctx context.Context, log *slog.Logger, e *engine.Engine, ttl time.Duration, trouble bool) error {
	n := 1
	if e.Local {
		n = 2 // nobody else can take part
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
		c := &consumer{log: log.With("consumer", name), client: client.Client, ttl: ttl, yield: 2 * e.Poll}
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
	return context.Cause(consuming) // of the first that has failed
}

// A consumer is owned by the goroutine of run: events come to it by channels,
// so that it needs no mutex.
type consumer struct {
	log    *slog.Logger
	client *holdfast.Client
	ttl    time.Duration
	yield  time.Duration // how long to leave the lock to others after a turn

	lock     *holdfast.Lock // nil while it has no turn
	online   bool
	messages int
}

func (c *consumer) run(ctx context.Context) error {
	events := c.client.Events()
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		// It releases what is held and closes the subscription too.
		if err := c.client.Close(ctx); err != nil {
			c.log.Warn("close", "error", err)
		}
		c.log.Info("ended", "messages", c.messages)
	}()

	granted := make(chan *holdfast.Lock)
	failed := make(chan error)
	acquire := func() {
		lock, err := c.client.Acquire(ctx, key, holdfast.WithTTL(c.ttl))
		switch {
		case err == nil:
			select {
			case granted <- lock:
			case <-ctx.Done(): // Close releases it
			}
		case ctx.Err() == nil:
			select {
			case failed <- err:
			case <-ctx.Done():
			}
		}
	}
	again := func() {
		// Without a queue the lock is for whoever asks first. The others may
		// ask only at their next look, so let them.
		select {
		case <-ctx.Done():
		case <-time.After(c.yield):
			acquire()
		}
	}
	go acquire()

	message := time.NewTicker(time.Second)
	defer message.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			return err

		case event := <-events.Ready():
			c.log.Info("ready", "seq", event.Seq)
			c.online = true
		case event := <-events.Disconnected():
			// The lock is still held, until its deadline: finish what is under
			// way, begin nothing new.
			c.log.Warn("disconnected", "seq", event.Seq)
			c.online = false
		case event := <-events.TTLExpired():
			c.log.Info("TTL expired", "seq", event.Seq, "token", event.Token)
			c.stop(event.Token)
			go again() // to the end of the queue, if there is one
		case event := <-events.Lost():
			c.log.Warn("lost", "seq", event.Seq, "token", event.Token, "error", event.Err)
			c.stop(event.Token)
			go again()

		case lock := <-granted:
			if lock.Err() != nil {
				break // over already: its event is on the way, and leads to the next try
			}
			c.log.Info("granted", "token", lock.Token())
			c.lock = lock
		case <-message.C:
			if c.lock != nil && c.lock.Err() == nil && c.online {
				c.messages++
				c.log.Info("consumed a message", "token", c.lock.Token())
			}
		}
	}
}

// stop ends a turn. An event can overtake the grant that it is about, so the
// token is compared.
func (c *consumer) stop(token holdfast.Token) {
	if c.lock != nil && c.lock.Token() == token {
		c.lock = nil
	}
}

// makeTrouble cuts a client off while it has the lock: in one turn for less than
// the lease, in another for more.
func makeTrouble(ctx context.Context, client *engine.Client, name string, lease time.Duration) {
	var last holdfast.Token
	for _, outage := range []time.Duration{lease / 2, 3 * lease / 2} {
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Second):
			}
			info, err := client.Inspect(ctx, key)
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
