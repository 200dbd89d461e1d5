package locktest

import (
	"context"
	"errors"
	"maps"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast/driver"
)

// faultyLosses are faults that show when a message is lost, and never else.
var faultyLosses = []fault{
	{name: "who has taken a key without hearing of it does not know its own grant", breaks: "G6", update: estranged(taking)},
	{name: "who looks for what it has left does not know it", breaks: "G6", get: func(next getter) getter {
		return func(ctx context.Context, in *dynamodb.GetItemInput) (*dynamodb.GetItemOutput, error) {
			out, err := next(ctx, in)
			if err == nil {
				out.Item = strange(out.Item)
			}
			return out, err
		}
	}},
	{name: "a release that is repeated finds that the lock is lost", breaks: "G10", update: estranged(releasing)},
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
	{name: "Close leaves a goroutine", breaks: "G11", engine: granted(func(*faulty, string, *driver.Grant) { go func() { select {} }() })},
}

// estranged makes a faulty engine that takes what refuses one kind of request for somebody else's.
func estranged(kind write) func(updater) updater {
	return func(next updater) updater {
		return func(ctx context.Context, in *dynamodb.UpdateItemInput) (*dynamodb.UpdateItemOutput, error) {
			out, err := next(ctx, in)
			var refused *types.ConditionalCheckFailedException
			if writeOf(in) == kind && errors.As(err, &refused) {
				refused.Item = strange(refused.Item)
			}
			return out, err
		}
	}
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
