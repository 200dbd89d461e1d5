package dynamolock

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/clock"
)

// A Client takes locks in one table. Its methods are those of
// [holdfast.Client], which the package documentation lists, and those below.
type Client struct {
	*holdfast.Client

	engine *engine
}

// New makes a client for a table that exists: see [CreateTable]. It looks at the
// table first, waits while it is being created, for as long as ctx or
// [Options.OpenTimeout] allows, and then is Ready.
//
// It fails with [holdfast.ErrInvalid] for options out of bounds, before anything
// is sent; with [ErrTable] if there is no such table, or one with other keys;
// with [holdfast.ErrDenied] if the credentials are missing or do not suffice;
// and with [holdfast.ErrDisconnected], and what ctx ended with, if nothing
// answers in time. ddb is used until Close, and is not closed.
func New(ctx context.Context, ddb API, options *Options) (*Client, error) {
	if ddb == nil {
		return nil, fmt.Errorf("dynamolock: %w", driver.Invalid("ddb", "it is nil"))
	}
	o, err := filled(options)
	if err != nil {
		return nil, fmt.Errorf("dynamolock: %w", err)
	}
	var e *engine
	portable, err := holdfast.New(driver.Config{
		Owner:  o.Owner,
		Margin: o.Margin,
		AnyKey: true,
		Logger: o.Logger,
		Clock:  clock.From(ctx),
	}, o.Hooks, func(host driver.Host) (driver.Driver, error) {
		e = newEngine(host, ddb, o)
		if err := e.open(ctx); err != nil {
			return nil, fmt.Errorf("dynamolock: %w", err)
		}
		host.SetConnected(true)
		return e, nil
	})
	if err != nil {
		return nil, err
	}
	return &Client{Client: portable, engine: e}, nil
}

// Options returns the options in force, defaults filled in.
func (c *Client) Options() Options { return c.engine.opts }

// ConditionCheck returns a check for a transaction (TransactWriteItems) of one's
// own that makes it succeed only while the engine has the lock for its holder:
// not if it was released, taken over, reclaimed or broken. A fencing token, for
// writes within DynamoDB.
//
//	check, err := client.ConditionCheck(lock)
//	_, err = ddb.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{
//		TransactItems: []types.TransactWriteItem{{ConditionCheck: check}, {Put: ...}},
//	})
//
// A check that fails shows in the TransactionCanceledException as the reason
// ConditionalCheckFailed. The reason TransactionConflict is none of the lock's end:
// heartbeats write the same item, so try the transaction again. The check stays
// good for as long as the lock is held.
//
// ConditionCheck itself sends nothing. It fails with what lock.Err returns
// if the lock has ended, and with [holdfast.ErrInvalid] if it is not a lock of
// this client.
func (c *Client) ConditionCheck(lock *holdfast.Lock) (*types.ConditionCheck, error) {
	if lock == nil {
		return nil, fmt.Errorf("dynamolock: condition check: %w", driver.Invalid("lock", "it is nil"))
	}
	if err := lock.Err(); err != nil {
		return nil, fmt.Errorf("dynamolock: condition check %q: %w", lock.Key(), err)
	}
	e := c.engine
	h, ok := holdfast.HoldOf(e.host, lock).(*hold)
	if !ok {
		return nil, fmt.Errorf("dynamolock: condition check %q: %w",
			lock.Key(), driver.Invalid("lock", "it is not a lock of this client"))
	}
	x := &expression{}
	x.cond = h.unchanged(x)
	if e.opts.Mode != FailClosed {
		x.cond = all(x.live(), x.cond)
	}
	return &types.ConditionCheck{
		TableName:                           &e.opts.Table,
		Key:                                 h.key,
		ConditionExpression:                 &x.cond,
		ExpressionAttributeNames:            x.names,
		ExpressionAttributeValues:           x.values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}, nil
}

// API is what a client calls of the AWS SDK: [*dynamodb.Client] has it, and so
// may a wrapper of it, for tracing or counting. A method must end when its ctx
// does, and pass on the options that it is given: they switch off retries. It must
// send with its ctx or one derived from it: by an [net/http/httptrace.ClientTrace] in
// there the client learns whether a request that failed was sent at all. Below it
// should be net/http, or else what never reached a server counts as if it might have.
type API interface {
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	DeleteItem(context.Context, *dynamodb.DeleteItemInput, ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error)
	Query(context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error)
	Scan(context.Context, *dynamodb.ScanInput, ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error)
	DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error)
	DescribeTimeToLive(context.Context, *dynamodb.DescribeTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error)
}

// TableAPI is what [CreateTable] calls of the AWS SDK.
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
