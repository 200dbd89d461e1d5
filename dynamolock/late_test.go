package dynamolock_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver/drivertest"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

// odd is an API behind a wrapper, or of a server that returns less.
type odd struct {
	dynamolock.API
	twice  bool // sends each write twice, and returns the second reply
	silent bool // does not return the item on which a condition failed
	refuse item // refuses each write because of this item
	writes atomic.Int32
}

func (o *odd) UpdateItem(
	ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options),
) (*dynamodb.UpdateItemOutput, error) {
	o.writes.Add(1)
	if o.refuse != nil {
		return nil, &types.ConditionalCheckFailedException{Item: o.refuse}
	}
	if o.twice {
		_, _ = o.API.UpdateItem(ctx, in, opts...)
	}
	out, err := o.API.UpdateItem(ctx, in, opts...)
	var failed *types.ConditionalCheckFailedException
	if o.silent && errors.As(err, &failed) {
		failed.Item = nil
	}
	return out, err
}

// odd returns a client of such an API.
func (h *harness) odd(t *testing.T, api *odd) *client {
	t.Helper()
	return h.clientOn(t, &drivertest.Clock{}, func(conn *dynamofake.Client) dynamolock.API {
		api.API = conn
		return api
	})
}

// A release that was refused, even for no readable reason, was not carried out: the lock had been lost.
func TestRefusedReleaseIsNotUnanswered(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		c, b := h.odd(t, &odd{silent: true}), h.client(t)
		lock := c.hold(t, "k")
		b.breakIt(t, "k", true)
		b.hold(t, "k")
		var asked atomic.Bool
		c.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
			if op.Name == "GetItem" && !asked.Swap(true) {
				return dynamofake.Fail(dynamofake.ServerError())
			}
			return dynamofake.Fault{}
		})
		if err := lock.Release(t.Context()); !errors.Is(err, holdfast.ErrBroken) {
			t.Errorf("%v, want ErrBroken", err)
		}
	})
}

// A write that should succeed but never does ends in an error, not in a busy loop.
func TestRefusedForNoReason(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		api := &odd{refuse: npm("7", "1", "g")}
		c := h.odd(t, api)
		_, errAcquire := c.Acquire(t.Context(), "k")
		_, errTry := c.TryAcquire(t.Context(), "k")
		if !errors.Is(errAcquire, dynamolock.ErrItem) || !errors.Is(errTry, dynamolock.ErrItem) {
			t.Errorf("%v, %v", errAcquire, errTry)
		}
		if n := api.writes.Load(); n > 10 { // 5 a call
			t.Errorf("%d writes", n)
		}
	})
}
