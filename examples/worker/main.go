// Worker is leader election in the form that most programs need: one process at a
// time does the work.
//
//	go run ./examples/worker                                                     three workers in one process
//	go run ./examples/worker -engine zookeeper -servers 127.0.0.1:2181           one worker; start several
//	go run ./examples/worker -engine dynamodb -endpoint http://127.0.0.1:8000    the same; AWS without -endpoint
//
// Ctrl-C or SIGTERM ends it: the work stops, the lock is released, and another
// worker continues, at once or, on DynamoDB, within a second.
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

const key = "examples/worker"

func main() {
	workers := flag.Int("workers", 0, "workers in this process (default 3 in memory, else 1)")
	term := flag.Duration("term", 3*time.Second, "how long a worker works before it lets another have a turn")
	engine.Main(func(ctx context.Context, e *engine.Engine) error {
		if *workers < 0 || *term <= 0 {
			return errors.New("-workers and -term must be positive")
		}
		if *workers == 0 {
			*workers = 1
			if e.Local {
				*workers = 3 // no other process can take part
			}
		}
		return run(ctx, slog.New(slog.NewTextHandler(os.Stdout, nil)), e, *workers, *term)
	})
}

// run runs workers until ctx ends, or one of them fails.
func run(ctx context.Context, log *slog.Logger, e *engine.Engine, workers int, term time.Duration) error {
	working, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var all sync.WaitGroup
	for i := range workers {
		name := fmt.Sprintf("worker-%d.%d", os.Getpid(), i+1)
		all.Go(func() {
			if err := worker(working, log.With("worker", name), e, name, term); err != nil {
				fail(err)
			}
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return context.Cause(working) // of the first that failed
}

// worker takes turns at the work until ctx ends.
func worker(ctx context.Context, log *slog.Logger, e *engine.Engine, name string, term time.Duration) error {
	client, err := e.NewClient(ctx, name)
	if err != nil {
		return err
	}
	defer func() {
		// ctx has ended; closing needs time of its own.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if err := client.Close(ctx); err != nil {
			log.Warn("close", "error", err)
		}
	}()
	election, err := client.Election(key, nil)
	if err != nil {
		return err
	}
	log.Info("waits for a turn")
	err = election.Run(ctx, func(ctx context.Context, lock *holdfast.Lock) error {
		return lead(ctx, log, lock, term) // nil: it has stepped down, and stands again behind those who wait
	})
	if ctx.Err() != nil {
		log.Info("ended")
		return nil
	}
	return err
}

// lead works until its turn is over, or the ctx ends, as it does when the lock is lost.
// It must not continue after that, nor start what it cannot stop.
func lead(ctx context.Context, log *slog.Logger, lock *holdfast.Lock, term time.Duration) error {
	log.Info("works", "token", lock.Token())
	defer log.Info("stops", "token", lock.Token())
	over := time.After(term)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-over:
			return nil
		case <-tick.C:
			log.Info("did a piece of work", "piece", n, "token", lock.Token())
		}
	}
}
