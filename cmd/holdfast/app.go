package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/spf13/pflag"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/doctor"
)

// app is one call of the program.
type app struct {
	in        io.Reader
	out, err  io.Writer
	lookupEnv func(string) (string, bool)

	// leaveSignals keeps further signals from ending the ctx of the command.
	leaveSignals func()

	set   settings
	log   *slog.Logger
	began bool // a command is about to run: the command line is in order
}

// begin is called when all flags have been read.
func (a *app) begin() error {
	a.log = slog.New(slog.DiscardHandler)
	if a.set.verbose {
		a.log = slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	a.set.zookeeper.auth, _ = a.lookupEnv("HOLDFAST_AUTH")
	a.began = true
	return a.set.check()
}

// An engine is what the commands have to know of ZooKeeper or DynamoDB.
type engine interface {
	addFlags(f *pflag.FlagSet)
	named() bool // its servers were, or its table
	defaultLease() time.Duration
	connect(ctx context.Context, a *app, o connectOptions) (*client, error)
	// doctor returns the examination of the locks with a prefix. It sends nothing.
	doctor(ctx context.Context, a *app, prefix string) (func(context.Context, func(doctor.Finding) error) error, error)
}

// client is a connection to an engine.
type client struct {
	*holdfast.Client
	lease  func() time.Duration  // how long the engine waits for this client when it is silent
	looks  looks                 // how often watch looks
	places <-chan holdfast.Place // of the acquisition, and its owner name; the last one
}

// connectOptions are what some commands need.
type connectOptions struct {
	owner string  // "": host:pid:random
	holds *window // set if a command is to run, by which lease and with which margin
	waits bool    // the client's places are wanted
	hooks holdfast.Hooks
}

// connect connects to the engine, as long as --timeout allows.
func (a *app) connect(ctx context.Context, o connectOptions) (*client, error) {
	e, err := a.set.chosenEngine()
	if err != nil {
		return nil, err
	}
	ctx, cancel := a.bounded(ctx)
	defer cancel()
	places := make(chan holdfast.Place, 1)
	if o.waits {
		tell := func(p holdfast.Place) {
			select {
			case <-places: // the last one counts
			default:
			}
			places <- p
		}
		o.hooks.Started = func(q holdfast.Acquisition) { tell(holdfast.Place{Owner: q.Owner}) }
		o.hooks.Queued = tell
	}
	c, err := e.connect(ctx, a, o)
	if err == nil {
		c.places = places
	}
	return c, err
}

// disconnectTimeout bounds how long an end in good order may take.
const disconnectTimeout = 5 * time.Second

// disconnect ends the session, or the heartbeats. An engine that does not
// answer finds out by itself in time.
func (a *app) disconnect(c *client) { a.disconnectWithin(c, disconnectTimeout) }

func (a *app) disconnectWithin(c *client, wait time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), min(a.set.timeout, wait))
	defer cancel()
	if err := c.Close(ctx); err != nil {
		a.log.Debug("not closed in order", "error", err)
	}
}

// bounded bounds the wait for an answer by --timeout.
func (a *app) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, a.set.timeout, noAnswer{a.set.timeout})
}

// noAnswer is why a wait was given up.
type noAnswer struct{ within time.Duration }

func (n noAnswer) Error() string { return fmt.Sprintf("no answer within --timeout %v", n.within) }
func (noAnswer) Unwrap() error   { return context.DeadlineExceeded }
