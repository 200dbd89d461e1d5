package locktest

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

// setter is a hold with another SetData.
type setter struct {
	driver.Hold
	set func(context.Context, []byte) error
}

func (h setter) SetData(ctx context.Context, data []byte) error { return h.set(ctx, data) }

// onData makes a faulty engine with another SetData.
func onData(set func(ctx context.Context, f *faulty, key string, hold driver.Hold, data []byte) error) wrapper {
	return granted(func(f *faulty, key string, g *driver.Grant) {
		hold := g.Hold
		g.Hold = setter{hold, func(ctx context.Context, data []byte) error { return set(ctx, f, key, hold, data) }}
	})
}

// faultyData are the faults in what SetData does.
var faultyData = []fault{
	{name: "data is confirmed but not stored", breaks: "G16", engine: onData(
		func(context.Context, *faulty, string, driver.Hold, []byte) error { return nil },
	)},
	{name: "data is stored a moment after it is confirmed", breaks: "G16", engine: onData(
		func(_ context.Context, f *faulty, _ string, hold driver.Hold, data []byte) error {
			time.AfterFunc(time.Millisecond, func() { _ = hold.SetData(f.life, data) })
			return nil
		},
	)},
	{name: "empty data removes nothing", breaks: "G16", engine: onData(
		func(ctx context.Context, _ *faulty, _ string, hold driver.Hold, data []byte) error {
			if len(data) == 0 {
				return nil
			}
			return hold.SetData(ctx, data)
		},
	)},
	{name: "data ends at the first NUL", breaks: "G16", engine: onData(
		func(ctx context.Context, _ *faulty, _ string, hold driver.Hold, data []byte) error {
			text, _, _ := strings.Cut(string(data), "\x00")
			return hold.SetData(ctx, []byte(text))
		},
	)},
	{name: "what was given up is stored later", breaks: "G16", engine: onData(
		func(ctx context.Context, f *faulty, _ string, hold driver.Hold, data []byte) error {
			err := hold.SetData(ctx, data)
			if err != nil && ctx.Err() != nil {
				go func() {
					_, _ = f.Driver.Inspect(f.life, "until it is healed")
					time.Sleep(lease / 4)
					_ = hold.SetData(f.life, data)
				}()
			}
			return err
		},
	)},
	{name: "the end of ctx does not end SetData", breaks: "G16", engine: onData(
		func(_ context.Context, f *faulty, _ string, hold driver.Hold, data []byte) error {
			return hold.SetData(f.life, data)
		},
	)},
	{name: "a lock is broken to have other data", breaks: "G16", engine: onData(
		func(ctx context.Context, f *faulty, key string, hold driver.Hold, data []byte) error {
			err := hold.SetData(ctx, data)
			if info, looked := f.Driver.Inspect(ctx, key); looked == nil && err == nil {
				err = f.Driver.Break(ctx, info)
			}
			return err
		},
	)},
	{name: "a break shows as a reclaim once data was set", breaks: "G16", engine: replaced(func(f *faulty) {
		f.acquire = func(ctx context.Context, req *driver.Request) (driver.Grant, error) {
			changed, written := *req, &atomic.Bool{}
			changed.Lost = func(cause error) {
				if written.Load() {
					cause = holdfast.ErrReclaimed
				}
				req.Lost(cause)
			}
			g, err := f.Driver.Acquire(ctx, &changed)
			if err == nil {
				hold := g.Hold
				g.Hold = setter{hold, func(ctx context.Context, data []byte) error {
					written.Store(true)
					return hold.SetData(ctx, data)
				}}
			}
			return g, err
		}
	})},
	{name: "observers are told of no new data", breaks: "G16", engine: replaced(func(f *faulty) {
		f.observe = func(ctx context.Context, key string, tell func(driver.Info)) error {
			var told driver.Info
			return f.Driver.Observe(ctx, key, func(info driver.Info) {
				if told.Grant == info.Grant {
					info.Data = told.Data
				}
				told = info
				tell(info)
			})
		}
	})},
	{name: "SetData of a broken lock agrees", breaks: "G16", engine: replaced(func(f *faulty) {
		f.acquire = func(ctx context.Context, req *driver.Request) (driver.Grant, error) {
			slow := *req
			slow.Lost = func(cause error) { time.AfterFunc(time.Millisecond, func() { req.Lost(cause) }) }
			g, err := f.Driver.Acquire(ctx, &slow)
			if err == nil {
				hold := g.Hold
				g.Hold = setter{hold, func(ctx context.Context, data []byte) error {
					if err := hold.SetData(ctx, data); !errors.Is(err, holdfast.ErrBroken) {
						return err
					}
					return nil
				}}
			}
			return g, err
		}
	})},
}

// faultyTableData are those that are easy to make on DynamoDB.
var faultyTableData = []fault{
	{name: "data goes to whoever has the key", breaks: "G16", update: unconditional(beating)},
}
