// Metrics lets a few workers take turns, and serves the metrics of their locks on
// /metrics for Prometheus and the dashboard in metrics/grafana.
//
//	go run ./examples/metrics                                                     three workers in one process
//	go run ./examples/metrics -cut 5                                              every fifth turn ends with the loss of the lock
//	go run ./examples/metrics -engine zookeeper -servers 127.0.0.1:2181           on a real engine
//	go run ./examples/metrics -engine dynamodb -endpoint http://127.0.0.1:8000    the same; AWS without -endpoint
//
//	curl http://127.0.0.1:2112/metrics
//
// Ctrl-C or SIGTERM ends it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/engine"
	"github.com/holdfast-go/holdfast/metrics/prometheus"
)

const key = "examples/metrics"

// settings are the flags.
type settings struct {
	listen       string
	workers, cut int
	turns        int
	work, ttl    time.Duration
}

func main() {
	var s settings
	flag.StringVar(&s.listen, "listen", "127.0.0.1:2112", "`address` for /metrics; port 0 for any that is free")
	flag.IntVar(&s.workers, "workers", 3, "workers, each a client of its own")
	flag.IntVar(&s.turns, "turns", 0, "turns of each worker, after which the metrics stay as they are (default no end)")
	flag.DurationVar(&s.work, "work", 200*time.Millisecond, "how long the work takes")
	flag.DurationVar(&s.ttl, "ttl", 0, "TTL of the lock, which ends a turn that takes longer (default none)")
	flag.IntVar(&s.cut, "cut", 0, "cut a worker off in each turn of this number, until its lock is lost (default never; not on ZooKeeper)")
	engine.Main(func(ctx context.Context, e *engine.Engine) error {
		if err := s.check(); err != nil {
			return err
		}
		return run(ctx, slog.New(slog.NewTextHandler(os.Stdout, nil)), e, s)
	})
}

func (s *settings) check() error {
	if s.workers <= 0 || s.turns < 0 || s.work <= 0 || s.ttl < 0 || s.cut < 0 {
		return errors.New("-workers and -work must be positive, -turns, -ttl and -cut not negative")
	}
	return nil
}

// run serves /metrics and runs the workers until ctx ends, or anything fails.
func run(ctx context.Context, log *slog.Logger, e *engine.Engine, s settings) error {
	listener, err := net.Listen("tcp", s.listen)
	if err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	log.Info("serves metrics", "url", "http://"+listener.Addr().String()+"/metrics", "engine", e.Where)

	working, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var all sync.WaitGroup
	all.Go(func() { fail(server.Serve(listener)) })
	for i := range s.workers {
		w := &worker{settings: s, engine: e, name: fmt.Sprintf("worker-%d", i+1)}
		w.log = log.With("worker", w.name)
		all.Go(func() {
			if err := w.run(working, registry); err != nil {
				fail(err)
			}
		})
	}
	<-working.Done()
	_ = server.Close()
	all.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return context.Cause(working) // of the first that failed
}

// A worker is one client with metrics of its own, told apart by a label.
type worker struct {
	settings
	engine *engine.Engine
	name   string
	log    *slog.Logger
}

func (w *worker) run(ctx context.Context, registry prometheus.Registerer) error {
	metrics, err := holdfastprom.New(&holdfastprom.Options{Engine: w.engine.Name, Client: w.name})
	if err != nil {
		return err
	}
	if err := registry.Register(metrics); err != nil {
		return err
	}
	client, err := w.engine.NewClient(ctx, w.name, metrics.OnEvent(), w.logEvent)
	if err != nil {
		return err
	}
	defer func() {
		// ctx has ended; closing needs time of its own.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if err := client.Close(ctx); err != nil {
			w.log.Warn("close", "error", err)
		}
	}()
	if w.cut > 0 && client.Cut == nil {
		return fmt.Errorf("-cut has no meaning on %s", w.engine.Name)
	}
	for n := 1; w.turns == 0 || n <= w.turns; n++ {
		cut := w.cut > 0 && n%w.cut == 0
		if err := w.turn(ctx, client, cut); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return nil
		}
	}
	w.log.Info("has had all its turns")
	<-ctx.Done()
	return nil
}

// logEvent logs what the metrics count.
func (w *worker) logEvent(e holdfast.Event) {
	switch e.Kind {
	case holdfast.Queued:
		w.log.Info("waits", "ahead", e.Ahead)
	case holdfast.Released, holdfast.TTLExpired, holdfast.Lost:
		w.log.Info("had the lock", "for", e.Took, "until", e.Kind)
	}
}

// turn waits for the lock and works while it is held.
func (w *worker) turn(ctx context.Context, client *engine.Client, cut bool) error {
	err := client.Do(ctx, key, func(ctx context.Context, _ *holdfast.Lock) error {
		if cut {
			client.Cut()
			<-ctx.Done()
			client.Heal()
			return nil
		}
		select {
		case <-ctx.Done(): // the lock has ended, so the work must end
		case <-time.After(w.work):
		}
		return nil
	}, holdfast.WithTTL(w.ttl))
	switch {
	case ctx.Err() != nil, errors.Is(err, holdfast.ErrTTLExpired), errors.Is(err, holdfast.ErrLost):
		return nil // the metrics show it
	case err != nil:
		return err
	}
	// Without a queue, whoever asks first gets the lock. Give the others time for their
	// next attempt.
	select {
	case <-ctx.Done():
	case <-time.After(2 * w.engine.Poll):
	}
	return nil
}
