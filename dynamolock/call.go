package dynamolock

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast/internal/backoff"
)

// once switches off the SDK's retries for one request: whether and when to try
// again depends on the lease, and must not depend on a quota that all users of
// the SDK's client share.
func once(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} }

// call sends one request and waits for at most Options.Timeout. What it learns
// of the connection it reports, unless it is the caller who gave up.
func call[In, Out any](
	ctx context.Context, b *engine, op string, key attributes, in In,
	send func(context.Context, In, ...func(*dynamodb.Options)) (Out, error),
) (Out, error) {
	attempt, cancel := context.WithTimeout(ctx, b.opts.Timeout)
	defer cancel()
	sending := newSending()
	attempt = sending.trace(attempt)
	var out Out
	err := settle(attempt, func() (err error) {
		sent := b.host.Now()
		out, err = send(attempt, in, once)
		if answered(err) {
			b.pulse.heard(b.host.Now().Sub(sent))
		}
		return err
	})
	if err == nil {
		b.link.up()
		return out, nil
	}
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) {
		b.link.up()
		return out, err
	}
	if conflicting(err) {
		b.link.up()
		return out, &callError{op: op, table: b.opts.Table, kind: refused, err: err}
	}
	e := &callError{op: op, table: b.opts.Table, kind: classify(err), unsent: sending.never(), err: err}
	if ctx.Err() == nil && (e.kind != permanent || errors.Is(e, ErrTable)) {
		if key != nil {
			b.link.down(key, err)
		}
		b.host.Logger().Debug("request failed", "call", op, "table", b.opts.Table, "key", b.opts.Keys.name(key), "error", err)
	}
	return out, e
}

// The delay after a conflict with a transaction: the item is free again as soon
// as that is done, so waiting for longer and longer would only be worse.
const (
	minConflictDelay = 10 * time.Millisecond
	maxConflictDelay = 50 * time.Millisecond
)

// settle sends a request again as long as the answer is that a transaction is
// just writing the item; and once if it is that the clock of this machine is
// wrong, by which the SDK signed, since it goes by the server's from then on.
// Neither is a failure of the connection, or says anything of the lock.
func settle(ctx context.Context, send func() error) error {
	for corrected := false; ; {
		err := send()
		switch {
		case err == nil:
			return nil
		case conflicting(err):
			if !backoff.Sleep(ctx, conflictDelay(), nil) {
				return err
			}
		case skewed(err) && !corrected:
			corrected = true
		default:
			return err
		}
	}
}

func conflictDelay() time.Duration {
	return minConflictDelay + rand.N(maxConflictDelay-minConflictDelay)
}

// attributes are an item, or the key of one.
type attributes = map[string]types.AttributeValue

// update sends one UpdateItem. If its condition fails, it returns the item that
// was in the way, read in the same moment or right after, and no error.
func (b *engine) update(ctx context.Context, key attributes, e *expression) (updated attributes, old *item, err error) {
	in := &dynamodb.UpdateItemInput{
		TableName:                           &b.opts.Table,
		Key:                                 key,
		ConditionExpression:                 &e.cond,
		UpdateExpression:                    e.update(),
		ExpressionAttributeNames:            e.names,
		ExpressionAttributeValues:           e.values,
		ReturnValues:                        e.returns,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	out, err := call(ctx, b, "UpdateItem", key, in, b.api.UpdateItem)
	if err == nil {
		return out.Attributes, nil, nil
	}
	old, err = b.inTheWay(ctx, key, err)
	return nil, old, err
}

// remove sends one DeleteItem, like update.
func (b *engine) remove(ctx context.Context, key attributes, e *expression) (old *item, err error) {
	in := &dynamodb.DeleteItemInput{
		TableName:                           &b.opts.Table,
		Key:                                 key,
		ConditionExpression:                 &e.cond,
		ExpressionAttributeNames:            e.names,
		ExpressionAttributeValues:           e.values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	_, err = call(ctx, b, "DeleteItem", key, in, b.api.DeleteItem)
	if err == nil {
		return nil, nil
	}
	return b.inTheWay(ctx, key, err)
}

// inTheWay returns the item that made a condition fail. Not every server sends
// it along, and none does if there was no item.
func (b *engine) inTheWay(ctx context.Context, key attributes, err error) (*item, error) {
	var failed *types.ConditionalCheckFailedException
	switch {
	case !errors.As(err, &failed):
		return nil, err
	case len(failed.Item) > 0:
		return decode(b.opts.Table, failed.Item)
	}
	return b.get(ctx, key, true)
}

// get reads an item.
func (b *engine) get(ctx context.Context, key attributes, consistent bool) (*item, error) {
	in := &dynamodb.GetItemInput{TableName: &b.opts.Table, Key: key, ConsistentRead: &consistent}
	out, err := call(ctx, b, opGet, key, in, b.api.GetItem)
	if err != nil {
		return nil, err
	}
	return decode(b.opts.Table, out.Item)
}

// persist tries something again for as long as its failures are transient, and
// ctx allows. A call that ctx ended before there was an answer fails with what
// it failed with before, or else with errNoAnswer.
func (b *engine) persist(ctx context.Context, try func() error) error {
	loop := b.retries().Start()
	var last error
	for {
		err := try()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil && last != nil:
			return last
		case ctx.Err() != nil:
			return errNoAnswer
		case !transient(err):
			return err
		}
		last = err
		if !loop.Wait(ctx, b.wake(err)) {
			return err
		}
	}
}

// wake returns what is to cut the delay after a failure short: the news that
// the table can be reached again, unless it is the server that asks for patience.
func (b *engine) wake(err error) <-chan struct{} {
	if !unheard(err) {
		return nil
	}
	return b.link.whenUp()
}

// retries are the delays between the tries of what a caller's Retry does not
// govern.
func (b *engine) retries() backoff.Policy {
	return backoff.Policy{Initial: b.opts.RetryDelay, Max: b.opts.Heartbeat}
}
