package locktest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

// allAPI is the portable API with other calls for several keys.
type allAPI struct {
	API
	acquire, try func(context.Context, []string, ...holdfast.Option) (*holdfast.Locks, error)
	do           func(context.Context, []string, func(context.Context, *holdfast.Locks) error, ...holdfast.Option) error
}

func (c *allAPI) AcquireAll(ctx context.Context, keys []string, opts ...holdfast.Option) (*holdfast.Locks, error) {
	return c.acquire(ctx, keys, opts...)
}

func (c *allAPI) TryAcquireAll(ctx context.Context, keys []string, opts ...holdfast.Option) (*holdfast.Locks, error) {
	return c.try(ctx, keys, opts...)
}

func (c *allAPI) DoAll(
	ctx context.Context, keys []string, fn func(context.Context, *holdfast.Locks) error, opts ...holdfast.Option,
) error {
	return c.do(ctx, keys, fn, opts...)
}

// all puts a client above a correct engine that takes several keys in a faulty way.
func all(replace func(c *allAPI)) func(*Client) {
	return func(client *Client) {
		api := client.API
		c := &allAPI{API: api, acquire: api.AcquireAll, try: api.TryAcquireAll}
		c.do = func(
			ctx context.Context, keys []string, fn func(context.Context, *holdfast.Locks) error, opts ...holdfast.Option,
		) (err error) {
			if fn == nil {
				return api.DoAll(ctx, keys, fn, opts...)
			}
			locks, err := c.acquire(ctx, keys, opts...)
			if err != nil {
				return err
			}
			fnCtx, cancel := locks.Context(ctx)
			defer cancel()
			defer func() { err = errors.Join(err, locks.Release(context.WithoutCancel(ctx))) }()
			return fn(fnCtx, locks)
		}
		replace(c)
		client.API = c
	}
}

// last reports whether a key is the last of those of a case.
func last(key string) bool {
	return strings.Contains(key, "any") && !strings.Contains(key, "any0") && !strings.Contains(key, "any1")
}

// faultyAll take several keys in faulty ways.
var faultyAll = []fault{
	{name: "keys are taken in the order given", breaks: "G18", client: all(func(c *allAPI) {
		c.acquire = func(ctx context.Context, keys []string, opts ...holdfast.Option) (*holdfast.Locks, error) {
			if len(keys) != 2 { // those of DoAll
				return c.API.AcquireAll(ctx, keys, opts...)
			}
			for _, key := range keys {
				lock, err := c.API.Acquire(ctx, key, opts...)
				if err != nil {
					return nil, err
				}
				defer lock.Release(context.WithoutCancel(ctx))
				time.Sleep(lease / 100)
			}
			return c.API.AcquireAll(ctx, []string{keys[0] + "+"}, opts...)
		}
	})},
	{name: "a failure leaves what was taken", breaks: "G18", client: all(func(c *allAPI) {
		c.acquire = func(ctx context.Context, keys []string, opts ...holdfast.Option) (*holdfast.Locks, error) {
			locks, err := c.API.AcquireAll(ctx, keys, opts...)
			if errors.Is(err, holdfast.ErrHeld) {
				go c.API.Acquire(context.WithoutCancel(ctx), slices.Min(keys))
			}
			return locks, err
		}
	})},
	{name: "a try leaves what it took", breaks: "G18", client: all(func(c *allAPI) {
		c.try = func(ctx context.Context, keys []string, opts ...holdfast.Option) (*holdfast.Locks, error) {
			locks, err := c.API.TryAcquireAll(ctx, keys, opts...)
			if errors.Is(err, holdfast.ErrHeld) {
				_, _ = c.API.TryAcquire(ctx, slices.Min(keys))
			}
			return locks, err
		}
	})},
	{name: "a try does not say who is in the way", breaks: "G18", client: all(func(c *allAPI) {
		c.try = func(ctx context.Context, keys []string, opts ...holdfast.Option) (*holdfast.Locks, error) {
			locks, err := c.API.TryAcquireAll(ctx, keys, opts...)
			var held *holdfast.HeldError
			if errors.As(err, &held) {
				err = &holdfast.HeldError{Key: held.Key}
			}
			return locks, err
		}
	})},
	{name: "a try takes what is free", breaks: "G18", client: all(func(c *allAPI) {
		c.try = func(ctx context.Context, keys []string, opts ...holdfast.Option) (*holdfast.Locks, error) {
			locks, err := c.API.TryAcquireAll(ctx, keys, opts...)
			var held *holdfast.HeldError
			if !errors.As(err, &held) {
				return locks, err
			}
			free := slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return key == held.Key })
			return c.API.TryAcquireAll(ctx, free, opts...)
		}
	})},
	{name: "each key has the whole wait", breaks: "G18", client: all(func(c *allAPI) {
		c.acquire = func(ctx context.Context, keys []string, opts ...holdfast.Option) (*holdfast.Locks, error) {
			locks, err := c.API.AcquireAll(ctx, keys, opts...)
			if errors.Is(err, holdfast.ErrHeld) && ctx.Err() == nil {
				return c.API.AcquireAll(ctx, keys, opts...)
			}
			return locks, err
		}
	})},
	{name: "giving up several keys takes a second", breaks: "G18", client: all(func(c *allAPI) {
		c.acquire = func(ctx context.Context, keys []string, opts ...holdfast.Option) (*holdfast.Locks, error) {
			locks, err := c.API.AcquireAll(ctx, keys, opts...)
			if err != nil && ctx.Err() != nil {
				time.Sleep(time.Second)
			}
			return locks, err
		}
	})},
	{name: "a lock that was lost is returned with the others", breaks: "G18", client: all(func(c *allAPI) {
		c.acquire = func(ctx context.Context, keys []string, opts ...holdfast.Option) (*holdfast.Locks, error) {
			locks, err := c.API.AcquireAll(ctx, keys, opts...)
			if err == nil {
				info, _ := c.API.Inspect(ctx, keys[0])
				_ = c.API.Break(ctx, info)
			}
			return locks, err
		}
	})},
	{name: "a loss is noticed when all are held", breaks: "G18", engine: replaced(func(f *faulty) {
		waiting := make(chan struct{}, 1)
		f.acquire = func(ctx context.Context, req *driver.Request) (driver.Grant, error) {
			if !req.Wait {
				return f.Driver.Acquire(ctx, req)
			}
			waiting <- struct{}{}
			defer func() { <-waiting }()
			late := *req
			late.Lost = func(cause error) {
				go func() {
					waiting <- struct{}{}
					req.Lost(cause)
					<-waiting
				}()
			}
			return f.Driver.Acquire(ctx, &late)
		}
	})},
	{name: "only the end of the last is told", breaks: "G18", engine: request(func(req *driver.Request) {
		if !last(req.Key) {
			req.Lost = func(error) {}
		}
	})},
	{name: "the end of one ends the others", breaks: "G18", engine: replaced(func(f *faulty) {
		var mu sync.Mutex
		var lost []func(error)
		f.acquire = func(ctx context.Context, req *driver.Request) (driver.Grant, error) {
			each := *req
			each.Lost = func(cause error) {
				mu.Lock()
				defer mu.Unlock()
				req.Lost(cause)
				for _, lose := range lost {
					lose(cause)
				}
			}
			mu.Lock()
			lost = append(lost, req.Lost)
			mu.Unlock()
			return f.Driver.Acquire(ctx, &each)
		}
	})},
	{name: "a release that fails is the last", breaks: "G18", engine: replaced(func(f *faulty) {
		var stuck atomic.Bool
		f.acquire = func(ctx context.Context, req *driver.Request) (driver.Grant, error) {
			g, err := f.Driver.Acquire(ctx, req)
			if err != nil {
				return g, err
			}
			hold := g.Hold
			lost := new(atomic.Bool)
			g.Hold = releaser{hold, func(ctx context.Context) error {
				time.Sleep(time.Microsecond)
				if lost.Load() || stuck.Load() {
					return nil
				}
				err := hold.Release(ctx)
				stuck.Store(stuck.Load() || errors.Is(err, holdfast.ErrLost))
				return err
			}}
			return g, nil
		}
	})},
	{name: "the TTL begins with each", breaks: "G18", client: all(func(c *allAPI) {
		c.acquire = func(ctx context.Context, keys []string, opts ...holdfast.Option) (*holdfast.Locks, error) {
			began := time.Now()
			locks, err := c.API.AcquireAll(ctx, keys, opts...)
			if err == nil && time.Until(locks.Deadline()) < lease/2 {
				_ = locks.Extend(time.Nanosecond + max(0, lease/8-time.Since(began)))
				<-locks.Done()
			}
			return locks, err
		}
	})},
	{name: "only the first is reclaimed", breaks: "G18", engine: request(func(req *driver.Request) {
		req.Reclaim = req.Reclaim && !last(req.Key)
	})},
	{name: "data is that of the first only", breaks: "G18", engine: request(func(req *driver.Request) {
		if last(req.Key) {
			req.Data = nil
		}
	})},
	{name: "a panic keeps the locks", breaks: "G18", client: all(func(c *allAPI) {
		c.do = func(ctx context.Context, keys []string, fn func(context.Context, *holdfast.Locks) error, opts ...holdfast.Option) error {
			var stop any
			err := c.API.DoAll(ctx, keys, func(ctx context.Context, locks *holdfast.Locks) error {
				defer func() { stop = recover() }()
				return fn(ctx, locks)
			}, opts...)
			if stop != nil {
				_, _ = c.API.AcquireAll(ctx, keys)
				panic(stop)
			}
			return err
		}
	})},
	{name: "an end under DoAll is no error", breaks: "G18", client: all(func(c *allAPI) {
		c.do = func(ctx context.Context, keys []string, fn func(context.Context, *holdfast.Locks) error, opts ...holdfast.Option) error {
			err := c.API.DoAll(ctx, keys, fn, opts...)
			if errors.Is(err, holdfast.ErrLost) {
				return nil
			}
			return err
		}
	})},
	{name: "one acquisition is reported for all", breaks: "G18", onEvent: altered(func(e *holdfast.Event) bool {
		return strings.HasSuffix(e.Key, "any0")
	}, holdfast.Started, holdfast.Granted, holdfast.Failed, holdfast.Released)},
	{name: "equal keys count once", breaks: "G18", client: all(func(c *allAPI) {
		c.acquire = func(ctx context.Context, keys []string, opts ...holdfast.Option) (*holdfast.Locks, error) {
			return c.API.AcquireAll(ctx, slices.Compact(slices.Sorted(slices.Values(keys))), opts...)
		}
	})},
	{name: "a key is checked when its turn comes", breaks: "G18", client: all(func(c *allAPI) {
		c.acquire = func(ctx context.Context, keys []string, opts ...holdfast.Option) (*holdfast.Locks, error) {
			if len(keys) > 0 {
				if lock, err := c.API.TryAcquire(ctx, keys[0]); err == nil {
					defer lock.Release(ctx)
				} else if ctx.Err() != nil {
					return nil, err
				}
			}
			return c.API.AcquireAll(ctx, keys, opts...)
		}
	})},
}
