package main

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/recordlock"
)

// recordCable is the network of one process, over the line of its slot. It is the store of the process.
type recordCable struct {
	line    *recordLine
	gate    gate
	severed atomic.Bool
}

// open opens a client with the times that [dynamolock.Options] have by default.
func (c *recordCable) open(ctx context.Context, config clientConfig) (locker, error) {
	lease := config.Login.Lease
	o := recordlock.Options{
		Lease: lease, Heartbeat: lease / 4, Poll: dynamoPoll, Timeout: lease / 6, RetryDelay: max(lease/200, 10*time.Millisecond), Late: lease,
	}
	if config.Login.Mode != dynamolock.FailOpen {
		o.NeverExpires, o.Late = true, 15*time.Minute
	}
	client, err := holdfast.New(driver.Config{
		Owner: config.Owner, Features: driver.Features{AnyKey: true}, Clock: clock.From(ctx), Lease: func() time.Duration { return lease },
	}, nil, func(host driver.Host) (driver.Driver, error) {
		host.SetConnected(true)
		if config.Login.Engine == "mongodb" {
			return recordlock.New(host, recordlock.ByRevision(c), o), nil
		}
		return recordlock.New(host, c, o), nil
	})
	if err != nil {
		return locker{}, err
	}
	return locker{Client: client, breakNow: func(ctx context.Context, info holdfast.Info) error {
		return client.Break(recordlock.AtOnce(ctx), info)
	}}, nil
}

func (c *recordCable) hold()    { c.gate.close() }
func (c *recordCable) release() { c.gate.open() }

func (c *recordCable) sever() {
	c.severed.Store(true)
	c.gate.open()
}

// over sends a request after a pause of the process, and returns its answer after a pause. A request that was sent before the pause
// arrives meanwhile.
func (c *recordCable) over(ctx context.Context, send func(context.Context) error) error {
	c.gate.pass()
	if c.severed.Load() {
		<-ctx.Done()
		return &recordlock.Error{Class: recordlock.Unknown, Err: ctx.Err()}
	}
	c.line.requests.count()
	connection := c.line.connection()
	attempt, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(connection, cancel)()
	err := send(attempt)
	c.gate.pass()
	return err
}

func (c *recordCable) CheckKey(key string) error { return c.line.conn.CheckKey(key) }

func (c *recordCable) Read(ctx context.Context, key string, fresh bool) (now recordlock.Record, err error) {
	err = c.over(ctx, func(ctx context.Context) (err error) {
		now, err = c.line.conn.Read(ctx, key, fresh)
		return err
	})
	return now, err
}

func (c *recordCable) Take(
	ctx context.Context, key string, h recordlock.Holder, m driver.Mode,
) (now recordlock.Record, done bool, err error) {
	err = c.over(ctx, func(ctx context.Context) (err error) {
		now, done, err = c.line.conn.Take(ctx, key, h, m)
		return err
	})
	return now, done, err
}

func (c *recordCable) Swap(ctx context.Context, key string, old, next recordlock.Record) (now recordlock.Record, done bool, err error) {
	err = c.over(ctx, func(ctx context.Context) (err error) {
		now, done, err = c.line.conn.Swap(ctx, key, old, next)
		return err
	})
	return now, done, err
}

func (c *recordCable) Renew(
	ctx context.Context, key string, h recordlock.Holder, m driver.Mode,
) (now recordlock.Record, done bool, err error) {
	err = c.over(ctx, func(ctx context.Context) (err error) {
		now, done, err = c.line.conn.Renew(ctx, key, h, m)
		return err
	})
	return now, done, err
}

func (c *recordCable) Put(
	ctx context.Context, key string, version any, next recordlock.Record,
) (now recordlock.Record, done bool, err error) {
	err = c.over(ctx, func(ctx context.Context) (err error) {
		now, done, err = c.line.conn.Put(ctx, key, version, next)
		return err
	})
	return now, done, err
}

func (c *recordCable) Now() time.Time { return c.line.conn.Now() }

func (c *recordCable) List(ctx context.Context, prefix string) iter.Seq2[recordlock.Keyed, error] {
	return func(yield func(recordlock.Keyed, error) bool) {
		errStopped := errors.New("stopped")
		err := c.over(ctx, func(ctx context.Context) error {
			for k, err := range c.line.conn.List(ctx, prefix) {
				if err != nil {
					return err
				} else if !yield(k, nil) {
					return errStopped
				}
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStopped) {
			yield(recordlock.Keyed{}, err)
		}
	}
}
