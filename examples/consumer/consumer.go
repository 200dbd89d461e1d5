package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/holdfast-go/holdfast"
)

// A consumer is owned by the goroutine of run. It receives events over channels,
// so it needs no mutex.
type consumer struct {
	log    *slog.Logger
	name   string
	client *holdfast.Client
	ttl    time.Duration
	pause  time.Duration // how long others need to hear that a stream is free

	has      map[string]*holdfast.Lock // the streams whose lock it holds
	last     map[string]holdfast.Info  // what was told of each stream
	trying   map[string]bool
	online   bool
	messages int

	news  chan holdfast.Info
	tried chan attempt
}

// An attempt to take a stream has a lock or an error.
type attempt struct {
	stream string
	from   string // whose work it continues
	lock   *holdfast.Lock
	err    error
}

func (c *consumer) run(ctx context.Context) error {
	c.has, c.last, c.trying = make(map[string]*holdfast.Lock), make(map[string]holdfast.Info), make(map[string]bool)
	c.news, c.tried = make(chan holdfast.Info), make(chan attempt)
	events := c.client.Events()
	defer c.close(ctx)
	failed := make(chan error)
	for _, stream := range streams {
		go c.observe(ctx, stream, failed)
	}
	message := time.NewTicker(time.Second)
	defer message.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			return err

		case info := <-c.news:
			c.learn(ctx, info)
		case a := <-c.tried:
			if err := c.result(ctx, a); err != nil {
				return err
			}

		case event := <-events.Ready():
			c.log.Info("ready", "seq", event.Seq)
			c.online = true
		case event := <-events.Disconnected():
			// The locks are still held until their deadline: finish what is under way,
			// start nothing new.
			c.log.Warn("disconnected", "seq", event.Seq)
			c.online = false
		case event := <-events.TTLExpired():
			c.log.Info("TTL expired", "seq", event.Seq, "stream", event.Key, "token", event.Token)
			c.stop(ctx, event)
		case event := <-events.Lost():
			c.log.Warn("lost", "seq", event.Seq, "stream", event.Key, "token", event.Token, "error", event.Err)
			c.stop(ctx, event)

		case <-message.C:
			c.consume()
		}
	}
}

// close also releases the locks and ends the subscription.
func (c *consumer) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := c.client.Close(ctx); err != nil {
		c.log.Warn("close", "error", err)
	}
	c.log.Info("ended", "messages", c.messages)
}

// observe passes on who has a stream, until ctx ends.
func (c *consumer) observe(ctx context.Context, stream string, failed chan<- error) {
	for info, err := range c.client.Observe(ctx, stream) {
		if err != nil {
			select {
			case failed <- err:
			case <-ctx.Done():
			}
			return
		}
		if info.Stale {
			continue // it goes on; the newest state follows
		}
		info.Key = stream
		select {
		case c.news <- info:
		case <-ctx.Done():
			return
		}
	}
}

// learn takes in the state of a stream, and tries to take it if it is free.
func (c *consumer) learn(ctx context.Context, info holdfast.Info) {
	before := c.last[info.Key]
	c.last[info.Key] = info
	if info.Held {
		return
	}
	c.log.Info("free", "stream", info.Key, "was", before.Owner)
	c.last[info.Key] = holdfast.Info{Key: info.Key, Holder: holdfast.Holder{Owner: before.Owner}} // whose work it is
	c.try(ctx, info.Key)
}

// try tries to take a stream: the later, the more it has already, and the later still if
// it was the last to have it.
func (c *consumer) try(ctx context.Context, stream string) {
	if c.trying[stream] {
		return
	}
	c.trying[stream] = true
	a := attempt{stream: stream, from: c.last[stream].Owner}
	wait := time.Duration(len(c.has)) * c.pause
	if a.from == c.name {
		wait += 2 * c.pause
	}
	go func() {
		select {
		case <-time.After(wait):
			a.lock, a.err = c.client.TryAcquire(ctx, stream, holdfast.WithTTL(c.ttl))
		case <-ctx.Done():
		}
		select {
		case c.tried <- a:
		case <-ctx.Done(): // Close releases it
		}
	}()
}

// result takes in what came of an attempt.
func (c *consumer) result(ctx context.Context, a attempt) error {
	c.trying[a.stream] = false
	switch {
	case errors.Is(a.err, holdfast.ErrHeld), errors.Is(a.err, holdfast.ErrDisconnected):
		c.again(ctx, a.stream)
	case a.err != nil:
		if ctx.Err() == nil {
			return a.err
		}
	case a.lock.Err() != nil: // over already: its event has passed or follows
		c.again(ctx, a.stream)
	default:
		c.log.Info("granted", "stream", a.stream, "token", a.lock.Token(), "from", a.from)
		c.has[a.stream] = a.lock
	}
	return nil
}

// again tries once more if the stream is free by the last news: a quicker consumer may have
// given it up since.
func (c *consumer) again(ctx context.Context, stream string) {
	if !c.last[stream].Held {
		c.try(ctx, stream)
	}
}

// stop ends a turn. It compares the token, because an event can overtake the grant
// that it is about.
func (c *consumer) stop(ctx context.Context, event holdfast.Event) {
	if lock := c.has[event.Key]; lock != nil && lock.Token() == event.Token {
		delete(c.has, event.Key)
		c.again(ctx, event.Key)
	}
}

// consume takes a message from each stream that it has.
func (c *consumer) consume() {
	for _, stream := range streams {
		if lock := c.has[stream]; lock != nil && lock.Err() == nil && c.online {
			c.messages++
			c.log.Info("consumed a message", "stream", stream, "token", lock.Token())
		}
	}
}
