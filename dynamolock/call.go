package dynamolock

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast/internal/backoff"
	"github.com/holdfast-go/holdfast/internal/recordlock"
)

// call sends one request, and classifies its failure. The limit of its time is that of ctx.
func call[In, Out any](
	ctx context.Context, s *store, op string, key attributes, in In,
	send func(context.Context, In, ...func(*dynamodb.Options)) (Out, error),
) (Out, error) {
	sending := &sending{}
	traced := sending.trace(ctx)
	var out Out
	err := settle(ctx, func() (err error) {
		out, err = send(traced, in, s.reach.once)
		return err
	})
	var failed *types.ConditionalCheckFailedException
	switch {
	case err == nil:
		s.dated(out)
		return out, nil
	case errors.As(err, &failed):
		return out, err
	}
	failure := &callError{op: op, table: s.opts.Table, kind: classify(err), err: err}
	if ctx.Err() == nil {
		s.host.Logger().Debug("request failed", "call", op, "table", s.opts.Table, "key", s.opts.Keys.name(key), "error", err)
	}
	switch {
	case conflicting(err):
		return out, &recordlock.Error{Class: recordlock.Busy, Err: failure}
	case failure.kind == refused:
		return out, &recordlock.Error{Class: recordlock.Throttled, Err: failure}
	case failure.kind == unknown && sending.never():
		return out, &recordlock.Error{Class: recordlock.NotDone, Err: failure}
	case failure.kind == unknown:
		return out, &recordlock.Error{Class: recordlock.Unknown, Err: failure}
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

// A sending knows whether a request ever had a connection. net/http reports when it looks
// for one and when it has one. With another HTTP client below the SDK nothing is reported,
// and nothing is known.
type sending struct {
	wanted, got atomic.Bool
}

func (s *sending) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { s.wanted.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { s.got.Store(true) },
	})
}

// never reports whether it is certain that nothing was sent so far.
func (s *sending) never() bool { return s.wanted.Load() && !s.got.Load() }
