package locktest

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

// asking makes a faulty engine that asks in another way.
func asking(ask func(ctx context.Context, f *faulty, info driver.Info) error) wrapper {
	return replaced(func(f *faulty) {
		f.ask = func(ctx context.Context, info driver.Info) error { return ask(ctx, f, info) }
	})
}

// askedFor makes a faulty engine that shows keys that were asked for in another way.
func askedFor(change func(*driver.Info)) wrapper {
	var asked atomic.Bool // by any client
	return replaced(func(f *faulty) {
		f.ask = func(ctx context.Context, info driver.Info) error {
			asked.Store(true)
			return f.Driver.Ask(ctx, info)
		}
		f.inspect = func(ctx context.Context, key string) (driver.Info, error) {
			info, err := f.Driver.Inspect(ctx, key)
			if asked.Load() && info.Held {
				change(&info)
			}
			return info, err
		}
	})
}

// whileCut makes a faulty engine that asks in another way while any client is cut off.
func whileCut(name string, ask func(ctx context.Context, f *faulty, info driver.Info) error) fault {
	var cut atomic.Bool
	return fault{
		name: name, breaks: "G17",
		client: func(c *Client) {
			off, on := c.Cut, c.Heal
			c.Cut = func() { cut.Store(true); off() }
			c.Heal = func() { on(); cut.Store(false) }
		},
		engine: asking(func(ctx context.Context, f *faulty, info driver.Info) error {
			if cut.Load() {
				return ask(ctx, f, info)
			}
			return f.Driver.Ask(ctx, info)
		}),
	}
}

// faultyAsks ask falsely, or are told so.
var faultyAsks = []fault{
	{name: "an ask is not told", breaks: "G17", engine: request(func(req *driver.Request) { req.Asked = func() {} })},
	{name: "an ask ends the lock", breaks: "G17", engine: request(func(req *driver.Request) {
		lost, asked := req.Lost, req.Asked
		req.Asked = func() { asked(); lost(holdfast.ErrBroken) }
	})},
	{name: "an ask comes before the holder listens, and is lost", breaks: "G17", engine: replaced(func(f *faulty) {
		f.acquire = func(ctx context.Context, req *driver.Request) (driver.Grant, error) {
			var listens atomic.Bool
			deaf := *req
			deaf.Asked = func() {
				if listens.Load() {
					req.Asked()
				}
			}
			time.AfterFunc(time.Millisecond, func() { listens.Store(true) })
			return f.Driver.Acquire(ctx, &deaf)
		}
	})},
	{name: "each lock is asked for", breaks: "G17", engine: request(func(req *driver.Request) { req.Asked() })},
	{name: "a wish is told to all that come after", breaks: "G17", engine: func() wrapper {
		var wanted atomic.Bool
		return request(func(req *driver.Request) {
			asked := req.Asked
			if wanted.Load() {
				asked()
			}
			req.Asked = func() { wanted.Store(true); asked() }
		})
	}()},
	{name: "an ask is reported a second time", breaks: "G17", onEvent: repeated(holdfast.Asked)},
	{name: "an ask is not reported", breaks: "G17", onEvent: dropped(holdfast.Asked)},
	{name: "an ask is reported without the owner", breaks: "G17", onEvent: altered(func(e *holdfast.Event) bool {
		e.Owner = ""
		return true
	}, holdfast.Asked)},
	{name: "an ask is reported after the end", breaks: "G17", onEvent: postponed(holdfast.Asked)},
	{name: "whoever holds the key is asked", breaks: "G17", engine: asking(func(ctx context.Context, f *faulty, info driver.Info) error {
		now, err := f.Driver.Inspect(ctx, info.Key)
		if err != nil || !now.Held {
			return err
		}
		return f.Driver.Ask(ctx, now)
	})},
	{name: "a grant that is over is asked without an error", breaks: "G17", engine: asking(func(ctx context.Context, f *faulty, info driver.Info) error {
		if err := f.Driver.Ask(ctx, info); !errors.Is(err, holdfast.ErrChanged) {
			return err
		}
		return nil
	})},
	{name: "who asks once more is refused", breaks: "G17", engine: func() wrapper {
		var asked atomic.Bool
		return asking(func(ctx context.Context, f *faulty, info driver.Info) error {
			if asked.Swap(true) {
				return holdfast.ErrChanged
			}
			return f.Driver.Ask(ctx, info)
		})
	}()},
	whileCut("a holder that is cut off is never told", func(context.Context, *faulty, driver.Info) error { return nil }),
	whileCut("Ask waits until the holder has heard", func(ctx context.Context, _ *faulty, _ driver.Info) error {
		<-ctx.Done()
		return holdfast.ErrDisconnected
	}),
	{name: "an ask erases the owner", breaks: "G17", engine: askedFor(func(i *driver.Info) { i.Owner = "" })},
	{name: "an ask adds to the data", breaks: "G17", engine: askedFor(func(i *driver.Info) { i.Data = append(i.Data, "\x00__REVOKE__"...) })},
	{name: "an ask takes a token", breaks: "G17", engine: askedFor(func(i *driver.Info) { i.Token++ })},
	{name: "a break after an ask passes for a reclaim", breaks: "G17", engine: func() wrapper {
		var wanted atomic.Bool
		return replaced(func(f *faulty) {
			f.ask = func(ctx context.Context, info driver.Info) error {
				wanted.Store(true)
				return f.Driver.Ask(ctx, info)
			}
			f.acquire = func(ctx context.Context, req *driver.Request) (driver.Grant, error) {
				changed := *req
				changed.Lost = func(cause error) {
					if wanted.Load() {
						cause = holdfast.ErrReclaimed
					}
					req.Lost(cause)
				}
				return f.Driver.Acquire(ctx, &changed)
			}
		})
	}()},
}

// faultyTableAsks are faults that are easy to make on DynamoDB.
var faultyTableAsks = []fault{
	{name: "an ask is a touch", breaks: "G17", update: changed(wishing, func(in *dynamodb.UpdateItemInput) {
		in.ExpressionAttributeValues[":touch"] = &types.AttributeValueMemberB{Value: []byte("another guid")}
		*in.UpdateExpression += ", #guid = :touch"
	})},
	{name: "the answer to a heartbeat is not read", breaks: "G17", update: changed(beating, func(in *dynamodb.UpdateItemInput) {
		in.ReturnValues = types.ReturnValueNone
	})},
	{name: "a heartbeat removes the wish", breaks: "G17", update: changed(beating, func(in *dynamodb.UpdateItemInput) {
		in.ExpressionAttributeNames["#wish"] = "holdfastAskedToken"
		*in.UpdateExpression += " REMOVE #wish"
	})},
}
