package locktest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

var readerMode = driver.Mode{Shared: true}

// requestOf makes a faulty engine that changes requests for shared holds that apply says.
func requestOf(apply func(driver.Mode) bool, change func(ctx context.Context, f *faulty, req *driver.Request)) wrapper {
	return replaced(func(f *faulty) {
		f.acquire = func(ctx context.Context, req *driver.Request) (driver.Grant, error) {
			changed := *req
			if apply(req.Mode) {
				change(ctx, f, &changed)
			}
			return f.Driver.Acquire(ctx, &changed)
		}
	})
}

func isReader(m driver.Mode) bool { return m == readerMode }
func isPermit(m driver.Mode) bool { return m.Limit > 0 }

// after makes a faulty engine that does something to what a request for a shared hold came to.
func after(change func(ctx context.Context, f *faulty, req *driver.Request, g *driver.Grant, err error) error) wrapper {
	return replaced(func(f *faulty) {
		f.acquire = func(ctx context.Context, req *driver.Request) (driver.Grant, error) {
			g, err := f.Driver.Acquire(ctx, req)
			if req.Mode.Shared {
				err = change(ctx, f, req, &g, err)
			}
			return g, err
		}
	})
}

// telling makes a faulty engine that tells of shared keys in another way.
func telling(change func(*driver.Info)) wrapper {
	return replaced(func(f *faulty) {
		f.inspect = func(ctx context.Context, key string) (driver.Info, error) {
			info, err := f.Driver.Inspect(ctx, key)
			if info.Shared {
				change(&info)
			}
			return info, err
		}
	})
}

// others are the grants of a shared key but for one.
func (f *faulty) others(ctx context.Context, info driver.Info) []driver.Info {
	now, err := f.Driver.Inspect(ctx, info.Key)
	if err != nil {
		return nil
	}
	var others []driver.Info
	for _, h := range now.Holders {
		if h.Grant != info.Grant {
			others = append(others, driver.Info{Key: info.Key, Held: true, Holder: driver.Holder{Grant: h.Grant}})
		}
	}
	return others
}

// neighbour is another grant of the key.
func neighbour(call func(f *faulty) func(context.Context, driver.Info) error) func(f *faulty) func(context.Context, driver.Info) error {
	return func(f *faulty) func(context.Context, driver.Info) error {
		return func(ctx context.Context, info driver.Info) error {
			if others := f.others(ctx, info); len(others) > 0 {
				info = others[0]
			}
			return call(f)(ctx, info)
		}
	}
}

// block waits for the end of ctx, and gives the grant back.
func block(ctx context.Context, g *driver.Grant) error {
	<-ctx.Done()
	_ = g.Hold.Release(context.Background())
	return ctx.Err()
}

// toTheBack sends every other waiter to the back.
func toTheBack(apply func(driver.Mode) bool) wrapper {
	return replaced(func(f *faulty) {
		f.acquire = func(ctx context.Context, req *driver.Request) (driver.Grant, error) {
			g, err := f.Driver.Acquire(ctx, req)
			if err != nil || !req.Wait || !apply(req.Mode) || g.Token%2 == 1 {
				return g, err
			}
			if err := g.Hold.Release(ctx); err != nil {
				return driver.Grant{}, err
			}
			return f.Driver.Acquire(ctx, req)
		}
	})
}

// faultyShares are the faults of shared locks.
var faultyShares = []fault{
	{name: "readers and writers do not see each other", breaks: "G19", engine: requestOf(
		isReader,
		func(_ context.Context, _ *faulty, req *driver.Request) { req.Key += " readers" },
	)},
	{name: "a writer does not see the second reader", breaks: "G19", engine: requestOf(
		isReader,
		func(ctx context.Context, f *faulty, req *driver.Request) {
			if info, err := f.Driver.Inspect(ctx, req.Key); err == nil && info.Shared {
				req.Key += " too"
			}
		},
	)},
	{name: "a reader is served as a writer", breaks: "G19", engine: requestOf(
		isReader,
		func(_ context.Context, _ *faulty, req *driver.Request) { req.Mode = driver.Mode{} },
	)},
	{name: "the tokens of readers are above those of writers", breaks: "G19", engine: after(
		func(_ context.Context, _ *faulty, _ *driver.Request, g *driver.Grant, err error) error {
			g.Token += 1000
			return err
		},
	)},
	{name: "readers have the same token", breaks: "G19", engine: after(
		func(_ context.Context, _ *faulty, _ *driver.Request, g *driver.Grant, err error) error {
			g.Token |= 1
			return err
		},
	)},
	{name: "the release of one frees all", breaks: "G19", engine: after(
		func(_ context.Context, f *faulty, req *driver.Request, g *driver.Grant, err error) error {
			if err == nil {
				hold := g.Hold
				g.Hold = releaser{hold, func(ctx context.Context) error {
					for _, other := range f.others(ctx, driver.Info{Key: req.Key}) {
						_ = f.Driver.Break(ctx, other)
					}
					return hold.Release(ctx)
				}}
			}
			return err
		},
	)},
	{name: "the break of one breaks its neighbour", breaks: "G19", engine: replaced(func(f *faulty) {
		f.brk = neighbour(func(f *faulty) func(context.Context, driver.Info) error { return f.Driver.Break })(f)
	})},
	{name: "an ask reaches the neighbour", breaks: "G19", engine: replaced(func(f *faulty) {
		f.ask = neighbour(func(f *faulty) func(context.Context, driver.Info) error { return f.Driver.Ask })(f)
	})},
	{name: "a live client keeps a dead reader alive", breaks: "G19", engine: func() wrapper {
		var newest *faulty
		return replaced(func(f *faulty) {
			newest = f
			f.acquire = func(ctx context.Context, req *driver.Request) (driver.Grant, error) {
				g, err := f.Driver.Acquire(ctx, req)
				if err != nil || !isReader(req.Mode) {
					return g, err
				}
				twin := *req
				twin.Lost = func(error) {}
				also, err := newest.Driver.Acquire(ctx, &twin)
				hold, lease := g.Hold, g.Lease
				g.Hold = releaser{hold, func(ctx context.Context) error {
					if lease.Live() { // the dead give nothing back
						_ = also.Hold.Release(ctx)
					}
					return hold.Release(ctx)
				}}
				return g, err
			}
		})
	}()},
	{name: "the loss of a reader is not told", breaks: "G19", engine: requestOf(
		isReader,
		func(_ context.Context, _ *faulty, req *driver.Request) { req.Lost = func(error) {} },
	)},
	{name: "Inspect shows only the oldest", breaks: "G19", engine: telling(func(i *driver.Info) { i.Holders = i.Holders[:1] })},
	{name: "the newest reader comes first", breaks: "G19", engine: telling(func(i *driver.Info) { slices.Reverse(i.Holders) })},
	{name: "Inspect does not say that a key is shared", breaks: "G19", engine: telling(func(i *driver.Info) { i.Shared = false })},
	{name: "Observe tells only of the oldest", breaks: "G19", engine: replaced(func(f *faulty) {
		f.observe = func(ctx context.Context, key string, tell func(driver.Info)) error {
			return f.Driver.Observe(ctx, key, func(info driver.Info) {
				info.Shared, info.Holders = false, nil
				tell(info)
			})
		}
	})},
	{name: "a reader that gives up stays", breaks: "G19", engine: after(
		func(ctx context.Context, f *faulty, req *driver.Request, _ *driver.Grant, err error) error {
			if err != nil && req.Wait && ctx.Err() != nil {
				f.leave(req)
			}
			return err
		},
	)},
	{name: "a reader that lost its link joins twice", breaks: "G19", engine: requestOf(
		isReader,
		func(_ context.Context, f *faulty, req *driver.Request) {
			retry := req.Retry
			req.Retry = func(ctx context.Context, err error, wake <-chan struct{}) error {
				if again := retry(ctx, err, wake); again != nil {
					return again
				}
				f.leave(req)
				return nil
			}
		},
	)},
}

// faultyPermits are the faults of semaphores.
var faultyPermits = []fault{
	{name: "one permit too many", breaks: "G20", engine: requestOf(
		isPermit,
		func(_ context.Context, _ *faulty, req *driver.Request) { req.Mode.Limit++ },
	)},
	{name: "one permit too few", breaks: "G20", engine: requestOf(
		isPermit,
		func(_ context.Context, _ *faulty, req *driver.Request) { req.Mode.Limit = max(1, req.Mode.Limit-1) },
	)},
	{name: "a former use of the key lives on beside its reclaim", breaks: "G20", engine: requestOf(
		isPermit,
		func(_ context.Context, _ *faulty, req *driver.Request) {
			if req.Reclaim && req.Mode.Limit != 2 {
				req.Key += " in another place"
			}
		},
	)},
	{name: "only the oldest lets the next in", breaks: "G20", engine: replaced(func(f *faulty) {
		f.acquire = func(ctx context.Context, req *driver.Request) (driver.Grant, error) {
			before, _ := f.Driver.Inspect(ctx, req.Key)
			g, err := f.Driver.Acquire(ctx, req)
			if err != nil || !req.Wait || before.Limit == 0 || len(before.Holders) < before.Limit {
				return g, err
			}
			for ctx.Err() == nil {
				if now, _ := f.Driver.Inspect(ctx, req.Key); now.Grant != before.Grant {
					return g, nil
				}
				time.Sleep(time.Millisecond)
			}
			return g, block(ctx, &g)
		}
	})},
	{name: "a permit goes with a waiter that gives up", breaks: "G20", engine: after(
		func(ctx context.Context, f *faulty, req *driver.Request, _ *driver.Grant, err error) error {
			if err != nil && req.Wait && ctx.Err() != nil {
				f.leave(req)
			}
			return err
		},
	)},
	{name: "a try is refused while another tries", breaks: "G20", engine: func() wrapper {
		var trying sync.Mutex
		return replaced(func(f *faulty) {
			f.acquire = func(ctx context.Context, req *driver.Request) (driver.Grant, error) {
				if !isPermit(req.Mode) || req.Wait {
					return f.Driver.Acquire(ctx, req)
				}
				if !trying.TryLock() {
					return driver.Grant{}, driver.Held(driver.Info{Key: req.Key})
				}
				defer trying.Unlock()
				time.Sleep(time.Millisecond)
				return f.Driver.Acquire(ctx, req)
			}
		})
	}()},
	{name: "each limit is a semaphore of its own", breaks: "G20", engine: requestOf(
		isPermit,
		func(_ context.Context, _ *faulty, req *driver.Request) { req.Key += string(rune('a' + req.Mode.Limit)) },
	)},
	{name: "another limit is refused, and does not wait", breaks: "G20", engine: replaced(func(f *faulty) {
		f.acquire = func(ctx context.Context, req *driver.Request) (driver.Grant, error) {
			if info, err := f.Driver.Inspect(ctx, req.Key); err == nil && info.Limit > 0 && info.Limit != req.Mode.Limit {
				return driver.Grant{}, driver.Held(info)
			}
			return f.Driver.Acquire(ctx, req)
		}
	})},
	{name: "of releases at once one is noticed", breaks: "G20", engine: func() wrapper {
		var mu sync.Mutex
		var last time.Time
		return after(func(ctx context.Context, _ *faulty, req *driver.Request, g *driver.Grant, err error) error {
			mu.Lock()
			missed := err == nil && req.Wait && time.Now().Equal(last)
			last = time.Now()
			mu.Unlock()
			if missed {
				return block(ctx, g)
			}
			return err
		})
	}()},
	{name: "Inspect does not tell the limit", breaks: "G20", engine: telling(func(i *driver.Info) { i.Limit = 0 })},
	{name: "a reclaim takes all permits", breaks: "G20", engine: requestOf(
		isPermit,
		func(ctx context.Context, f *faulty, req *driver.Request) {
			if req.Reclaim {
				for _, other := range f.others(ctx, driver.Info{Key: req.Key}) {
					_ = f.Driver.Break(ctx, other)
				}
			}
		},
	)},
}

// takingTurns makes an engine without a queue: writers that wait keep new readers out while they poll, and for a
// lease after that.
func takingTurns(expires time.Duration) wrapper {
	var mu sync.Mutex
	waiting := make(map[string]map[*driver.Request]time.Time) // when it was last heard of
	keptOut := func(key string) bool {
		mu.Lock()
		defer mu.Unlock()
		for _, heard := range waiting[key] {
			if time.Since(heard) < expires {
				return true
			}
		}
		return false
	}
	note := func(req *driver.Request, waits bool) {
		mu.Lock()
		defer mu.Unlock()
		if waiting[req.Key] == nil {
			waiting[req.Key] = make(map[*driver.Request]time.Time)
		}
		waiting[req.Key][req] = time.Now()
		if !waits {
			delete(waiting[req.Key], req)
		}
	}
	return replaced(func(f *faulty) {
		f.acquire = func(ctx context.Context, req *driver.Request) (driver.Grant, error) {
			try := *req
			try.Wait = false
			writes := req.Wait && req.Mode == driver.Mode{}
			if req.Yield {
				time.Sleep(10 * time.Millisecond)
			}
			for {
				var g driver.Grant
				var err error
				if req.Mode.Shared && keptOut(req.Key) {
					info, _ := f.Driver.Inspect(ctx, req.Key)
					err = driver.Held(info)
				} else {
					g, err = f.Driver.Acquire(ctx, &try)
				}
				if writes && errors.Is(err, holdfast.ErrHeld) && ctx.Err() == nil {
					note(req, true)
				}
				if !req.Wait || !errors.Is(err, holdfast.ErrHeld) || ctx.Err() != nil {
					if writes && !errors.Is(err, holdfast.ErrDisconnected) { // it cannot take back what it said, if it is cut off
						note(req, false)
					}
					return g, err
				}
				select {
				case <-time.After(time.Millisecond):
				case <-ctx.Done():
				}
			}
		}
	})
}

// faultyTurns are the faults of those who serve readers, writers and permits in turn.
var faultyTurns = []fault{
	{name: "a reader overtakes a writer that waits", breaks: "G21", engine: requestOf(
		isReader,
		func(ctx context.Context, f *faulty, req *driver.Request) {
			if info, err := f.Driver.Inspect(ctx, req.Key); err == nil && info.Shared {
				req.Key += " overtaken"
			}
		},
	)},
	{name: "every other reader is sent to the back", breaks: "G21", engine: toTheBack(isReader)},
	{name: "each permit that comes back wakes all who wait", breaks: "G21", engine: func() wrapper {
		var mu sync.Mutex
		all := make(map[*driver.Request]func(int))
		return replaced(func(f *faulty) {
			f.acquire = func(ctx context.Context, req *driver.Request) (driver.Grant, error) {
				mu.Lock()
				if isPermit(req.Mode) && req.Wait {
					all[req] = req.Queued
				}
				mu.Unlock()
				g, err := f.Driver.Acquire(ctx, req)
				mu.Lock()
				defer mu.Unlock()
				delete(all, req)
				for _, queued := range all {
					queued(len(all))
				}
				return g, err
			}
		})
	}()},
	{name: "every other permit is sent to the back", breaks: "G21", engine: toTheBack(isPermit)},
	{name: "readers behind a writer that gave up sleep on", breaks: "G21", engine: func() wrapper {
		var gaveUp atomic.Bool
		return replaced(func(f *faulty) {
			f.acquire = func(ctx context.Context, req *driver.Request) (driver.Grant, error) {
				g, err := f.Driver.Acquire(ctx, req)
				if !req.Mode.Shared && err != nil && ctx.Err() != nil {
					gaveUp.Store(true)
				}
				if isReader(req.Mode) && err == nil && req.Wait && gaveUp.Load() {
					return g, block(ctx, &g)
				}
				return g, err
			}
		})
	}()},
	{
		name: "without a queue, a writer that waits keeps nobody out", breaks: "G21",
		set: func(e *Engine) { e.Ordered = false }, engine: polling,
	},
	{
		name: "without a queue, a dead writer keeps readers out for ever", breaks: "G21",
		set: func(e *Engine) { e.Ordered = false }, engine: takingTurns(time.Hour),
	},
}
