package locktest

import (
	"context"
	"errors"
	"iter"
	"maps"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

// faultyLosses are faults that show when a message is lost, and never else.
var faultyLosses = []fault{
	{name: "who looks for what it has left does not know it", breaks: "G6", get: func(next getter) getter {
		return func(ctx context.Context, in *dynamodb.GetItemInput) (*dynamodb.GetItemOutput, error) {
			out, err := next(ctx, in)
			if err == nil {
				out.Item = strange(out.Item)
			}
			return out, err
		}
	}},
	{name: "who releases a lock does not hear that it was lost", breaks: "G10", update: func(next updater) updater {
		return func(ctx context.Context, in *dynamodb.UpdateItemInput) (*dynamodb.UpdateItemOutput, error) {
			out, err := next(ctx, in)
			var refused *types.ConditionalCheckFailedException
			if writeOf(in) == releasing && errors.As(err, &refused) {
				return &dynamodb.UpdateItemOutput{}, nil
			}
			return out, err
		}
	}},
	{name: "an engine measures time by a clock of its own", breaks: "G2", client: func(c *Client) { c.Pause, c.Resume = c.Cut, c.Heal }},
}

// faultyReturns are faults of calls that do not return, or leave something that does not.
var faultyReturns = []fault{
	{name: "who has given up waits on", breaks: "G5", engine: failing(
		func(_ context.Context, _ *faulty, _ *driver.Request, _ error) error { select {} },
	)},
	{name: "a release never returns", breaks: "G10", engine: granted(func(_ *faulty, _ string, g *driver.Grant) {
		g.Hold = releaser{g.Hold, func(context.Context) error { select {} }}
	})},
	{name: "Close waits for a List", breaks: "G11", client: func(c *Client) { c.API = &lister{API: c.API} }},
	{name: "Close leaves a goroutine", breaks: "G11", engine: granted(func(*faulty, string, *driver.Grant) { go func() { select {} }() })},
}

// A lister closes when nobody lists.
type lister struct {
	API
	lists sync.WaitGroup
}

func (l *lister) List(ctx context.Context, prefix string) iter.Seq2[holdfast.Info, error] {
	return func(yield func(holdfast.Info, error) bool) {
		l.lists.Add(1)
		defer l.lists.Done()
		for info, err := range l.API.List(ctx, prefix) {
			if !yield(info, err) {
				return
			}
		}
	}
}

func (l *lister) Close(ctx context.Context) error {
	l.lists.Wait()
	return l.API.Close(ctx)
}

// strange returns an item as somebody else's.
func strange(item map[string]types.AttributeValue) map[string]types.AttributeValue {
	guid, ok := item["guid"].(*types.AttributeValueMemberB)
	if !ok {
		return item
	}
	item = maps.Clone(item)
	item["guid"] = &types.AttributeValueMemberB{Value: append([]byte("0123456789ABCDEF"), guid.Value[16:]...)}
	return item
}
