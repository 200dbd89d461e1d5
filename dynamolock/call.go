package dynamolock

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/backoff"
)

// paceKey is the key of a context's value: a *pulse that hears of its requests, too.
type paceKey struct{}

// call sends one request and waits for at most Options.Timeout. It reports to health
// whether the table answered, unless the caller gave up.
func call[In, Out any](
	ctx context.Context, e *engine, op string, key attributes, in In,
	send func(context.Context, In, ...func(*dynamodb.Options)) (Out, error),
) (Out, error) {
	attempt, cancel := context.WithTimeout(ctx, e.opts.Timeout)
	defer cancel()
	sending := newSending()
	attempt = sending.trace(attempt)
	var out Out
	var sent driver.Instant
	err := settle(attempt, func() (err error) {
		sent = e.host.Now()
		out, err = send(attempt, in, e.reach.once)
		if answered(err) {
			took := e.host.Now().Sub(sent)
			e.pulse.heard(took)
			if pace, ok := ctx.Value(paceKey{}).(*pulse); ok {
				pace.heard(took)
			}
		}
		return err
	})
	if err == nil {
		e.dated(out)
		e.health.up(op, key)
		return out, nil
	}
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) {
		e.health.up(op, key)
		return out, err
	}
	if conflicting(err) {
		e.health.up(op, key)
		return out, &callError{op: op, table: e.opts.Table, kind: refused, err: err}
	}
	failure := &callError{op: op, table: e.opts.Table, kind: classify(err), unsent: sending.never(), err: err}
	if ctx.Err() == nil && (failure.kind != permanent || errors.Is(failure, ErrTable)) {
		if key != nil {
			e.health.down(op, key, sent, err)
		}
		e.host.Logger().Debug("request failed", "call", op, "table", e.opts.Table, "key", e.opts.Keys.name(key), "error", err)
	}
	return out, failure
}

// The delay after a conflict with a transaction. It does not grow: the item can be
// written again as soon as the transaction is over.
const (
	minConflictDelay = 10 * time.Millisecond
	maxConflictDelay = 50 * time.Millisecond
)

// settle repeats a request as long as the answer is that a transaction is writing the
// item. It repeats the request once if the answer is that the clock by which the SDK
// signed is wrong: the SDK corrects its clock by that answer. Neither is a failure of the
// connection, or says anything about the lock.
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
func (e *engine) update(ctx context.Context, key attributes, x *expression) (updated attributes, old *item, err error) {
	in := &dynamodb.UpdateItemInput{
		TableName:                           &e.opts.Table,
		Key:                                 key,
		ConditionExpression:                 &x.cond,
		UpdateExpression:                    x.update(),
		ExpressionAttributeNames:            x.names,
		ExpressionAttributeValues:           x.values,
		ReturnValues:                        x.returns,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	out, err := call(ctx, e, opUpdate, key, in, e.api.UpdateItem)
	if err == nil {
		return out.Attributes, nil, nil
	}
	old, err = e.inTheWay(ctx, key, err)
	return nil, old, err
}

// remove sends one DeleteItem, like update. It returns what it has removed.
func (e *engine) remove(ctx context.Context, key attributes, x *expression) (removed attributes, old *item, err error) {
	in := &dynamodb.DeleteItemInput{
		TableName:                           &e.opts.Table,
		Key:                                 key,
		ConditionExpression:                 &x.cond,
		ExpressionAttributeNames:            x.names,
		ExpressionAttributeValues:           x.values,
		ReturnValues:                        types.ReturnValueAllOld,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	out, err := call(ctx, e, "DeleteItem", key, in, e.api.DeleteItem)
	if err == nil {
		return out.Attributes, nil, nil
	}
	old, err = e.inTheWay(ctx, key, err)
	return nil, old, err
}

// inTheWay returns the item that made a condition fail. Not every server sends
// it along, and none does if there was no item.
func (e *engine) inTheWay(ctx context.Context, key attributes, err error) (*item, error) {
	var failed *types.ConditionalCheckFailedException
	switch {
	case !errors.As(err, &failed):
		return nil, err
	case len(failed.Item) > 0:
		return decode(e.opts.Table, failed.Item)
	}
	return e.get(ctx, key, true)
}

// get reads an item.
func (e *engine) get(ctx context.Context, key attributes, consistent bool) (*item, error) {
	in := &dynamodb.GetItemInput{TableName: &e.opts.Table, Key: key, ConsistentRead: &consistent}
	out, err := call(ctx, e, opGet, key, in, e.api.GetItem)
	if err != nil {
		return nil, err
	}
	return decode(e.opts.Table, out.Item)
}

// persist tries something again as long as its failures are transient and ctx allows. If
// ctx ends before there is an answer, it returns the error of the try before, or else
// errNoAnswer.
func (e *engine) persist(ctx context.Context, try func() error) error {
	loop := e.times.calls.Start()
	var last error
	for {
		err := try()
		switch {
		case err == nil:
			return nil
		case !transient(err) && !errors.Is(err, errNoAnswer): // an answer, if ctx has ended or not
			return err
		case ctx.Err() != nil && last != nil:
			return last
		case ctx.Err() != nil:
			return errNoAnswer
		}
		last = err
		if !loop.Wait(ctx, e.wake(err)) {
			return err
		}
	}
}

// wake returns a channel that ends the delay after a failure: it closes when an outage of
// the table is over. It is nil if the server itself asked the client to slow down.
func (e *engine) wake(err error) <-chan struct{} {
	if !unheard(err) {
		return nil
	}
	return e.health.whenUp()
}

// A sending knows whether a request ever had a connection. net/http reports when it looks
// for one and when it has one. With another HTTP client below the SDK nothing is reported,
// and nothing is known.
type sending struct {
	wanted, got, dialing atomic.Bool

	once   sync.Once
	dialed chan struct{} // closed when a dial has come to an end
}

func newSending() *sending { return &sending{dialed: make(chan struct{})} }

func (s *sending) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn:      func(string) { s.wanted.Store(true) },
		GotConn:      func(httptrace.GotConnInfo) { s.got.Store(true) },
		ConnectStart: func(string, string) { s.dialing.Store(true) },
		ConnectDone:  func(string, string, error) { s.once.Do(func() { close(s.dialed) }) },
	})
}

// never reports whether it is certain that nothing was sent so far.
func (s *sending) never() bool { return s.wanted.Load() && !s.got.Load() }

// outlive waits until the connection has probably been made that a cancelled request was
// waiting for: net/http goes on dialing, for the next request. Without the wait, requests
// that are cancelled one after the other would dial without bound.
func (s *sending) outlive(ctx context.Context, timeout, grace time.Duration) {
	if s.dialing.Load() {
		backoff.Sleep(ctx, timeout, s.dialed)
	}
	backoff.Sleep(ctx, grace, nil) // TLS, on a good day
}
