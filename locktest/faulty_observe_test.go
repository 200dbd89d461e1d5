package locktest

import (
	"context"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

// tells makes a faulty engine that changes what observers are told.
func tells(change func(f *faulty, tell func(driver.Info)) func(driver.Info)) wrapper {
	return replaced(func(f *faulty) {
		f.observe = func(ctx context.Context, key string, tell func(driver.Info)) error {
			return f.Driver.Observe(ctx, key, change(f, tell))
		}
	})
}

// yields makes a faulty client that changes what a loop over Observe gets.
func yields(change func(yield func(holdfast.Info, error) bool) func(holdfast.Info, error) bool) func(*Client) {
	return above(func(c *faultyClient) {
		c.observe = func(ctx context.Context, key string) iter.Seq2[holdfast.Info, error] {
			return func(yield func(holdfast.Info, error) bool) { c.API.Observe(ctx, key)(change(yield)) }
		}
	})
}

// faultyObservers are faults in what observers of a key are told.
var faultyObservers = []fault{
	{name: "every other state is left out", breaks: "G14", engine: tells(func(_ *faulty, tell func(driver.Info)) func(driver.Info) {
		n := 0
		return func(info driver.Info) {
			if n++; n%2 == 1 {
				tell(info)
			}
		}
	})},
	{name: "the last change is not told while the observer is busy", breaks: "G14", client: yields(
		func(yield func(holdfast.Info, error) bool) func(holdfast.Info, error) bool {
			var last time.Time
			return func(info holdfast.Info, err error) bool {
				if err == nil && time.Since(last) < time.Millisecond {
					return true
				}
				last = time.Now()
				return yield(info, err)
			}
		},
	)},
	{name: "the present state is not told", breaks: "G14", engine: tells(func(_ *faulty, tell func(driver.Info)) func(driver.Info) {
		began := false
		return func(info driver.Info) {
			if began {
				tell(info)
			}
			began = true
		}
	})},
	{name: "it is not told that nobody holds the key", breaks: "G14", engine: tells(func(_ *faulty, tell func(driver.Info)) func(driver.Info) {
		return func(info driver.Info) {
			if info.Held {
				tell(info)
			}
		}
	})},
	{name: "a waiter is told of as if it held the key", breaks: "G14", engine: replaced(func(f *faulty) {
		f.observe = func(ctx context.Context, key string, tell func(driver.Info)) error {
			for ctx.Err() == nil {
				info, err := f.Driver.Inspect(ctx, key)
				if n := len(info.Queue); n > 0 {
					info.Owner, info.Data = info.Queue[n-1].Owner, info.Queue[n-1].Data
				}
				if err == nil {
					tell(info)
				}
				time.Sleep(time.Millisecond)
			}
			return ctx.Err()
		}
	})},
	{name: "what a holder left is told as the state of a silent one", breaks: "G14", engine: tells(func(f *faulty, tell func(driver.Info)) func(driver.Info) {
		var last driver.Info
		return func(info driver.Info) {
			if !info.Held && time.Since(last.Since) > lease/2 {
				return
			}
			last = info
			tell(info)
		}
	})},
	{name: "a state is told twice", breaks: "G14", client: yields(
		func(yield func(holdfast.Info, error) bool) func(holdfast.Info, error) bool {
			return func(info holdfast.Info, err error) bool { return yield(info, err) && (err != nil || yield(info, err)) }
		},
	)},
	{name: "a former holder is told again", breaks: "G14", client: yields(
		func(yield func(holdfast.Info, error) bool) func(holdfast.Info, error) bool {
			var former holdfast.Info
			return func(info holdfast.Info, err error) bool {
				if err == nil && info.Held && former.Held && former.Token != info.Token {
					return yield(info, nil) && yield(former, nil) && yield(info, nil)
				}
				if info.Held {
					former = info
				}
				return yield(info, err)
			}
		},
	)},
	{name: "nothing is told after an outage", breaks: "G14", client: func(c *Client) {
		var deaf atomic.Bool
		cut := c.Cut
		c.Cut = func() {
			deaf.Store(true)
			cut()
		}
		yields(func(yield func(holdfast.Info, error) bool) func(holdfast.Info, error) bool {
			return func(info holdfast.Info, err error) bool { return err == nil && deaf.Load() || yield(info, err) }
		})(c)
	}},
	{name: "an outage is not told", breaks: "G14", client: yields(
		func(yield func(holdfast.Info, error) bool) func(holdfast.Info, error) bool {
			return func(info holdfast.Info, err error) bool { return info.Stale || yield(info, err) }
		},
	)},
	{name: "after an outage only a change is told", breaks: "G14", engine: tells(func(_ *faulty, tell func(driver.Info)) func(driver.Info) {
		var last driver.Info
		return func(info driver.Info) {
			if last.Key == "" || !info.Same(last) {
				tell(info)
			}
			last = info
		}
	})},
	{name: "who observes stands in the queue", breaks: "G14", engine: replaced(func(f *faulty) {
		f.observe = func(ctx context.Context, key string, tell func(driver.Info)) error {
			f.leave(&driver.Request{Key: key, Owner: "observer", Queued: func(int) {}})
			return f.Driver.Observe(ctx, key, tell)
		}
	})},
	{name: "one observer holds up the others", breaks: "G14", client: func(c *Client) {
		var one sync.Mutex
		yields(func(yield func(holdfast.Info, error) bool) func(holdfast.Info, error) bool {
			return func(info holdfast.Info, err error) bool {
				if err == nil {
					for !one.TryLock() {
						time.Sleep(time.Millisecond) // which a bubble knows to be a wait
					}
					defer one.Unlock()
				}
				return yield(info, err)
			}
		})(c)
	}},
	{name: "the end of ctx ends nothing", breaks: "G14", client: above(func(c *faultyClient) {
		c.observe = func(ctx context.Context, key string) iter.Seq2[holdfast.Info, error] {
			return c.API.Observe(context.WithoutCancel(ctx), key)
		}
	})},
	{name: "the end comes without an error", breaks: "G14", client: yields(
		func(yield func(holdfast.Info, error) bool) func(holdfast.Info, error) bool {
			return func(info holdfast.Info, err error) bool { return err != nil || yield(info, err) }
		},
	)},
	{name: "the end of the client is reported as that of ctx", breaks: "G14", client: yields(
		func(yield func(holdfast.Info, error) bool) func(holdfast.Info, error) bool {
			return func(info holdfast.Info, err error) bool {
				if err != nil {
					err = context.Canceled
				}
				return yield(info, err)
			}
		},
	)},
}
