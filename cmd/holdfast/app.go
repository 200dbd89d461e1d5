package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast"
)

// app is one run of the program.
type app struct {
	in        io.Reader
	out, err  io.Writer
	aside     chan []byte   // messages for err; nil: they are written at once
	flushed   chan struct{} // closes when they have been written
	lookupEnv func(string) (string, bool)

	// leaveSignals stops further signals from ending the ctx of the command.
	leaveSignals func()

	set   settings
	log   *slog.Logger
	beat  atomic.Pointer[holdfast.Event] // the last Heartbeat
	began bool                           // the command line has been parsed
	hasty bool                           // disconnect waits a second at most
}

// begin is called once all flags have been read.
func (a *app) begin() error {
	a.log = slog.New(slog.DiscardHandler)
	if a.set.verbose {
		a.log = slog.New(slog.NewTextHandler(stderr{a}, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	for _, e := range a.set.engines {
		a.set.unflagged[e.about().name] = e.readEnv(a.lookupEnv)
	}
	a.began = true
	return a.set.check()
}

// connect connects to the engine within --timeout.
func (a *app) connect(ctx context.Context, o connectOptions) (*client, error) {
	e, err := a.set.chosenEngine()
	if err != nil {
		return nil, err
	}
	ctx, cancel := a.bounded(ctx)
	defer cancel()
	places := make(chan holdfast.Event, 1)
	o.onEvent = func(e holdfast.Event) {
		switch e.Kind {
		case holdfast.Heartbeat:
			a.beat.Store(&e)
		case holdfast.Started, holdfast.Queued:
			select {
			case <-places: // only the latest counts
			default:
			}
			places <- e
		}
	}
	c, err := e.connect(ctx, a, o)
	if err == nil {
		c.places = places
	}
	return c, err
}

// because adds to the loss of a lock the error of the last heartbeat before it.
func (a *app) because(lost error) error {
	expired := errors.Is(lost, holdfast.ErrSessionExpired) || errors.Is(lost, holdfast.ErrLeaseExpired)
	if beat := a.beat.Load(); expired && beat != nil && beat.Err != nil {
		return fmt.Errorf("%w (%s)", lost, message(beat.Err))
	}
	return lost
}

// disconnect ends the session or the heartbeats. Without an answer they end with the lease.
func (a *app) disconnect(c *client) {
	wait := 5 * time.Second
	if a.hasty {
		wait = time.Second
	}
	ctx, cancel := context.WithTimeout(context.Background(), min(a.set.timeout, wait))
	defer cancel()
	if err := c.Close(ctx); err != nil {
		a.log.Debug("not closed in order", "error", err)
	}
}

// bounded limits the wait for an answer to --timeout.
func (a *app) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, a.set.timeout, noAnswer{a.set.timeout})
}

// noAnswer is the cause of a ctx that --timeout has ended.
type noAnswer struct{ within time.Duration }

func (n noAnswer) Error() string { return fmt.Sprintf("no answer within --timeout %v", n.within) }
func (noAnswer) Unwrap() error   { return context.DeadlineExceeded }
