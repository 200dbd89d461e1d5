package dynamolock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

// odd is an API behind a wrapper, or of a server that returns less.
type odd struct {
	dynamolock.API
	twice  bool // sends each write twice, and returns the second reply
	silent bool // does not return the item on which a condition failed
}

func (o *odd) UpdateItem(
	ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options),
) (*dynamodb.UpdateItemOutput, error) {
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

func (h *harness) odd(t *testing.T, api *odd) (*dynamolock.Client, *dynamofake.Client) {
	t.Helper()
	conn := h.db.Client()
	api.API = conn
	o := h.options
	c, err := dynamolock.New(t.Context(), api, &o)
	if err != nil {
		t.Fatal(err)
	}
	return c, conn
}

// A wrapper retries by itself, although it must not: an acquisition then meets its own
// item on what looks like the first try.
func TestAcquireSentTwice(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		c, _ := h.odd(t, &odd{twice: true})
		defer c.Close(t.Context())
		lock, err := c.TryAcquire(t.Context(), "k", holdfast.WithRetry(holdfast.Retry{Attempts: 1}))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * lease)
		if err := lock.Verify(t.Context()); err != nil {
			t.Error(err)
		}
		if err := lock.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A release that was refused, even without a readable reason, was not carried out: the
// lock had been lost before.
func TestRefusedReleaseIsNotUnanswered(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		c, conn := h.odd(t, &odd{silent: true})
		defer c.Close(t.Context())
		b := h.client(t)
		defer b.close(t)
		lock, err := c.Acquire(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		b.breakIt(t, "k", true)
		b.hold(t, "k")
		failures := 1
		conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
			if op.Name == "GetItem" && failures > 0 {
				failures--
				return dynamofake.Fail(dynamofake.ServerError())
			}
			return dynamofake.Fault{}
		})
		if err := lock.Release(t.Context()); !errors.Is(err, holdfast.ErrBroken) {
			t.Errorf("%v, want ErrBroken", err)
		}
	})
}
