package main

import (
	"context"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"

	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

// tableCable is the network of one process, over the line of its slot. It is a dynamolock.API.
type tableCable struct {
	line    *tableLine
	gate    gate
	severed atomic.Bool
}

func newTableCable(line *tableLine) *tableCable { return &tableCable{line: line} }

func (c *tableCable) open(ctx context.Context, config clientConfig) (locker, error) {
	return openTable(ctx, config, c)
}

func (c *tableCable) hold()    { c.gate.close() }
func (c *tableCable) release() { c.gate.open() }

func (c *tableCable) sever() {
	c.severed.Store(true)
	c.gate.open()
}

// over sends a request over a cable: not before a pause of the process is over, and what comes of it is not seen before,
// either. What was sent arrives meanwhile.
func over[In, Out any](
	ctx context.Context, c *tableCable, name string, in In, opts []func(*dynamodb.Options),
	send func(context.Context, In, ...func(*dynamodb.Options)) (*Out, error),
) (*Out, error) {
	c.gate.pass()
	failed := func(err error) error {
		return &smithy.OperationError{ServiceID: dynamodb.ServiceID, OperationName: name, Err: err}
	}
	if c.severed.Load() {
		<-ctx.Done()
		return nil, failed(&smithy.CanceledError{Err: ctx.Err()})
	}
	c.line.requests.count()
	connection := c.line.connection()
	attempt, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(connection, cancel)()
	out, err := send(attempt, in, opts...)
	c.gate.pass()
	if err != nil && connection.Err() != nil && ctx.Err() == nil {
		err = failed(dynamofake.Reset())
	}
	return out, err
}

func (c *tableCable) UpdateItem(
	ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options),
) (*dynamodb.UpdateItemOutput, error) {
	return over(ctx, c, "UpdateItem", in, opts, c.line.client.UpdateItem)
}

func (c *tableCable) GetItem(
	ctx context.Context, in *dynamodb.GetItemInput, opts ...func(*dynamodb.Options),
) (*dynamodb.GetItemOutput, error) {
	return over(ctx, c, "GetItem", in, opts, c.line.client.GetItem)
}

func (c *tableCable) DeleteItem(
	ctx context.Context, in *dynamodb.DeleteItemInput, opts ...func(*dynamodb.Options),
) (*dynamodb.DeleteItemOutput, error) {
	return over(ctx, c, "DeleteItem", in, opts, c.line.client.DeleteItem)
}

func (c *tableCable) Query(
	ctx context.Context, in *dynamodb.QueryInput, opts ...func(*dynamodb.Options),
) (*dynamodb.QueryOutput, error) {
	return over(ctx, c, "Query", in, opts, c.line.client.Query)
}

func (c *tableCable) Scan(
	ctx context.Context, in *dynamodb.ScanInput, opts ...func(*dynamodb.Options),
) (*dynamodb.ScanOutput, error) {
	return over(ctx, c, "Scan", in, opts, c.line.client.Scan)
}

func (c *tableCable) DescribeTable(
	ctx context.Context, in *dynamodb.DescribeTableInput, opts ...func(*dynamodb.Options),
) (*dynamodb.DescribeTableOutput, error) {
	return over(ctx, c, "DescribeTable", in, opts, c.line.client.DescribeTable)
}

func (c *tableCable) DescribeTimeToLive(
	ctx context.Context, in *dynamodb.DescribeTimeToLiveInput, opts ...func(*dynamodb.Options),
) (*dynamodb.DescribeTimeToLiveOutput, error) {
	return over(ctx, c, "DescribeTimeToLive", in, opts, c.line.client.DescribeTimeToLive)
}
