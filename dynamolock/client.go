package dynamolock

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/recordlock"
)

// A Client acquires locks in one table. Its methods are those of
// [holdfast.Client], which the package documentation lists, and those below.
type Client struct {
	*holdfast.Client

	store *store
}

// New returns a client for a table that exists: see [CreateTable]. It describes the table first, and waits while the table is being
// created, for as long as ctx or [Options.OpenTimeout] allows. The client is then Ready.
//
// It fails with [holdfast.ErrInvalid] for options out of bounds, before anything is sent; with [ErrTable] if there is no such table, or
// one with other keys; with [holdfast.ErrDenied] if the credentials are missing or do not suffice; and with [holdfast.ErrDisconnected],
// and what ctx ended with, if nothing answers in time. ddb is used until Close, and is not closed. Of an HTTP client that the SDK has
// built ([awshttp.BuildableClient]) New uses a copy, with a connection pool of its own, that dials every address of the endpoint's name
// within [Options.Timeout].
//
// [awshttp.BuildableClient]: https://pkg.go.dev/github.com/aws/aws-sdk-go-v2/aws/transport/http#BuildableClient
func New(ctx context.Context, ddb API, options *Options) (*Client, error) {
	if ddb == nil {
		return nil, fmt.Errorf("dynamolock: %w", driver.Invalid("ddb", "it is nil"))
	}
	o, err := filled(options)
	if err != nil {
		return nil, fmt.Errorf("dynamolock: %w", err)
	}
	st := &store{api: ddb, opts: o, reach: reach{timeout: o.Timeout}}
	portable, err := holdfast.New(driver.Config{
		Owner: o.Owner, Margin: o.Margin, Logger: o.Logger, Clock: clock.From(ctx), Lease: func() time.Duration { return o.Lease },
		Features: driver.Features{Shares: o.Mode == FailOpen, Tokenless: o.Mode == FailClosed, NeverExpires: o.Mode != FailOpen, AnyKey: true},
	}, o.OnEvent, func(host driver.Host) (driver.Driver, error) {
		st.host = host
		locks := recordlock.New(host, st, recordlock.Options{
			Lease: o.Lease, Heartbeat: o.Heartbeat, Poll: o.Poll, Timeout: o.Timeout, RetryDelay: o.RetryDelay,
			NeverExpires: o.Mode != FailOpen, Late: o.late(), TrustLocalTime: o.TrustLocalTime,
		})
		st.tasks = locks.Tasks()
		if err := st.open(ctx); err != nil {
			return nil, fmt.Errorf("dynamolock: %w", err)
		}
		host.SetConnected(true)
		return &engine{locks, &st.reach}, nil
	})
	if err != nil {
		return nil, err
	}
	return &Client{Client: portable, store: st}, nil
}

// engine closes the connections of the store after the locks.
type engine struct {
	*recordlock.Engine
	reach *reach
}

// Close implements driver.Driver.
func (e *engine) Close(ctx context.Context) error {
	defer e.reach.close()
	return e.Engine.Close(ctx)
}

// open waits until the table can be used.
func (s *store) open(ctx context.Context) error {
	ctx, cancel, rounds := s.opts.open(ctx)
	defer cancel()
	t := &table{clock: s.host, ddb: s.api, name: s.opts.Table, keys: s.opts.Keys, timeout: s.opts.Timeout, reach: &s.reach, rounds: rounds}
	out, err := t.wait(ctx)
	if err != nil {
		s.reach.close()
		return ended(ctx, err)
	}
	if len(out.Table.Replicas) > 0 {
		s.host.Logger().Warn("a global table: locks that are taken in one region do not exclude in another", "table", s.opts.Table)
	}
	s.ttl.heard(out.ResultMetadata, s.host.Now())
	s.learnTTL(ctx)
	return nil
}

// Options returns the options in force, defaults filled in.
func (c *Client) Options() Options {
	if c.store == nil {
		return Options{}
	}
	return c.store.opts
}

// BreakNow is Break, but frees the key at once: the holder of a lock with a lease does not know until its next heartbeat, and another
// client may have the key by then. Only fencing covers that gap. Errors are those of Break.
func (c *Client) BreakNow(ctx context.Context, info holdfast.Info) error {
	if ctx != nil { // else Break refuses it
		ctx = recordlock.AtOnce(ctx)
	}
	return c.Break(ctx, info)
}

// ConditionCheck returns a check to put into your own transaction (TransactWriteItems). The transaction then succeeds only while the
// table says that lock is held: not once it was released, taken over, reclaimed or broken. It does for writes within DynamoDB what a
// fencing token does for other resources.
//
//	check, err := client.ConditionCheck(lock)
//	_, err = ddb.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{
//		TransactItems: []types.TransactWriteItem{{ConditionCheck: check}, {Put: ...}},
//	})
//
// A check that fails is reported in the TransactionCanceledException as the reason ConditionalCheckFailed. The reason TransactionConflict
// does not mean that the lock has ended: heartbeats write the same item, so try the transaction again. The check can be used for as long
// as the lock is held. With [FailClosed] do not use it, nor send a transaction with it again, once the lock is released: there a free key
// has no item, so a copy of the acquisition that arrives late brings back the one that the check looks for, until the client notices. In
// the other modes the item stays, and refuses such a copy.
//
// ConditionCheck itself sends nothing. If the lock has ended, it fails with the error of
// lock.Err; if the lock is not one of this client, with [holdfast.ErrInvalid].
func (c *Client) ConditionCheck(lock *holdfast.Lock) (*types.ConditionCheck, error) {
	if lock == nil || c.store == nil {
		return nil, fmt.Errorf("dynamolock: condition check: %w", driver.Invalid("lock", "it is not a lock of this client"))
	}
	s, err := c.store, lock.Err()
	var h recordlock.Holder
	var mode driver.Mode
	var key attributes
	if err == nil {
		var ok bool
		if h, mode, ok = recordlock.HeldBy(driver.HoldOf(s.host, lock)); !ok {
			err = driver.Invalid("lock", "it is not a lock of this client")
		} else {
			key, err = s.opts.Keys.encode(lock.Key()) // the caller's own, like all of the check
		}
	}
	if err != nil {
		return nil, fmt.Errorf("dynamolock: condition check %q: %w", lock.Key(), err)
	}
	table, x := s.opts.Table, s.holding(&h, mode)
	return &types.ConditionCheck{
		TableName: &table, Key: key, ConditionExpression: &x.cond, ExpressionAttributeNames: x.names, ExpressionAttributeValues: x.values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}, nil
}

// API is the part of the AWS SDK that a client calls. [*dynamodb.Client] implements it, and so can a wrapper, for tracing or counting. A
// method must return when its ctx ends, and pass on the options that it is given: they switch off the SDK's retries. It must not repeat a
// request by itself: in the modes that never expire, the request before the last could leave a key held for ever.
type API interface {
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	DeleteItem(context.Context, *dynamodb.DeleteItemInput, ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error)
	Query(context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error)
	Scan(context.Context, *dynamodb.ScanInput, ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error)
	DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error)
	DescribeTimeToLive(context.Context, *dynamodb.DescribeTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error)
}

// TableAPI is the part of the AWS SDK that [CreateTable] calls.
type TableAPI interface {
	CreateTable(context.Context, *dynamodb.CreateTableInput, ...func(*dynamodb.Options)) (*dynamodb.CreateTableOutput, error)
	DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error)
	DescribeTimeToLive(context.Context, *dynamodb.DescribeTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error)
	UpdateTimeToLive(context.Context, *dynamodb.UpdateTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateTimeToLiveOutput, error)
}

var (
	_ API      = (*dynamodb.Client)(nil)
	_ TableAPI = (*dynamodb.Client)(nil)
)
