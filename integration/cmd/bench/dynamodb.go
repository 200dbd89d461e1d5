package main

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/integration/internal/dynamoserver"
	"github.com/holdfast-go/holdfast/integration/internal/faulthttp"
)

// dynamo is a table that is reached directly or through a proxy.
type dynamo struct {
	target *dynamoserver.Target
	proxy  *faulthttp.Proxy // adds linkLatency
	table  string
	drop   func(context.Context) error
}

// startDynamoDB finds or starts the server and makes the table once.
func (b *bench) startDynamoDB(ctx context.Context) (*dynamo, error) {
	if b.dynamo != nil {
		return b.dynamo, nil
	}
	target, err := dynamoserver.Open(ctx)
	if err != nil {
		return nil, err
	}
	d := &dynamo{target: target}
	if d.table, d.drop, err = target.CreateTable(ctx); err != nil {
		target.Close()
		return nil, err
	}
	if d.proxy, err = faulthttp.Listen(target.Endpoint()); err != nil {
		d.close()
		return nil, err
	}
	d.proxy.Transport.SetRule(faulthttp.All("", faulthttp.Delay(linkLatency)))
	b.uses("DynamoDB's API from", string(target.Source()))
	b.dynamo = d
	return d, nil
}

func (d *dynamo) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_ = d.drop(ctx) // needed on a server that keeps running
	if d.proxy != nil {
		d.proxy.Close()
	}
	d.target.Close()
}

// url is the server's or the proxy's. AWS is far anyway, and checks for which host a request was signed.
func (d *dynamo) url(far bool) string {
	if far && d.target.Source() != dynamoserver.AWS {
		return d.proxy.URL()
	}
	return d.target.Endpoint()
}

// dynamoClient is holdfast on DynamoDB.
func dynamoClient(far bool) connect {
	return func(ctx context.Context, l *lifetime) (*client, error) {
		d, err := l.startDynamoDB(ctx)
		if err != nil {
			return nil, err
		}
		sdk := d.target.Client(func(o *dynamodb.Options) { o.BaseEndpoint = aws.String(d.url(far)) })
		c, err := dynamolock.New(ctx, sdk, &dynamolock.Options{Table: d.table, Owner: owner, Lease: dynamolock.DefaultLease})
		if err != nil {
			return nil, err
		}
		return holdfastClient(l, c.Client), nil
	}
}
