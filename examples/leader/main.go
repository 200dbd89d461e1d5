// Leader is a service of which one process at a time answers requests: the one that is
// elected. The others stand by. Its address is the data of the election, so all of
// them, and the client, know where to ask.
//
//	go run ./examples/leader                                                    three candidates and a client in one process
//	go run ./examples/leader -engine zookeeper -servers 127.0.0.1:2181          one candidate; start several
//	go run ./examples/leader -engine zookeeper -servers 127.0.0.1:2181 -client  a client, which sends requests to the leader
//	go run ./examples/leader -engine dynamodb -endpoint http://127.0.0.1:8000   the same; AWS without -endpoint
//
// Ctrl-C or SIGTERM ends it. A leader then answers what it has begun before another leads,
// so no request fails; the client says how long the slowest took. Try kill -9, too.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/examples/internal/engine"
)

const key = "examples/leader"

func main() {
	asks := flag.Bool("client", false, "send requests instead of standing for election; in memory there is a client anyway")
	engine.Main(func(ctx context.Context, e *engine.Engine) error {
		out := &teller{out: os.Stdout}
		switch {
		case e.Local:
			return story(ctx, out, e)
		case *asks:
			return ask(ctx, out, e, fmt.Sprintf("client-%d", os.Getpid()))
		}
		return stand(ctx, out, e, fmt.Sprintf("candidate-%d", os.Getpid()), nil)
	})
}

// story has three candidates and a client in one process. The first leader leaves, the
// second is cut off from the engine, the third goes on.
func story(signalled context.Context, out *teller, e *engine.Engine) error {
	ctx, end := context.WithCancelCause(signalled)
	defer end(nil)
	var all sync.WaitGroup
	start := func(run func() error) {
		all.Go(func() {
			if err := run(); err != nil {
				end(err)
			}
		})
	}
	leave := make(map[string]context.CancelFunc)
	clients := make(map[string]*engine.Client)
	var mu sync.Mutex
	for _, name := range []string{"ann", "bea", "cid"} {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		leave[name] = cancel
		start(func() error {
			return stand(ctx, out, e, name, func(c *engine.Client) {
				mu.Lock()
				defer mu.Unlock()
				clients[name] = c
			})
		})
	}
	start(func() error { return ask(ctx, out, e, "client") })
	start(func() error {
		first, err := settled(ctx, e, "")
		if err != nil {
			return err
		}
		out.say(first, "is told to leave, as by SIGTERM")
		leave[first]()
		second, err := settled(ctx, e, first)
		if err != nil {
			return err
		}
		out.say(second, "is cut off from the engine")
		mu.Lock()
		clients[second].Cut()
		mu.Unlock()
		_, err = settled(ctx, e, second)
		end(err)
		return err
	})
	all.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return unlessOver(signalled, err)
	}
	return nil
}

// settled waits until somebody other than one leads, and a lease more.
func settled(ctx context.Context, e *engine.Engine, other string) (string, error) {
	client, err := e.NewClient(ctx, "audience")
	if err != nil {
		return "", err
	}
	defer client.Close(context.WithoutCancel(ctx))
	for leader, err := range client.Observe(ctx, key) {
		if err != nil {
			return "", unlessOver(ctx, err)
		}
		if leader.Held && leader.Owner != other {
			select {
			case <-time.After(e.Lease):
			case <-ctx.Done():
			}
			return leader.Owner, nil
		}
	}
	return "", nil
}

// unlessOver returns an error, unless it is because ctx has ended.
func unlessOver(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// A teller prints what happens, a line at a time.
type teller struct {
	mu  sync.Mutex
	out io.Writer
}

func (t *teller) say(who, format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintf(t.out, "%s  %-10s  %s\n", time.Now().Format("15:04:05.000"), who, fmt.Sprintf(format, args...))
}
