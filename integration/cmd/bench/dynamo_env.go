package main

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/integration/internal/dynamoserver"
	"github.com/holdfast-go/holdfast/integration/internal/faulthttp"
)

// dynamoEnv is the table on which the DynamoDB rows are measured.
type dynamoEnv struct {
	scale
	target *dynamoserver.Target
	table  string
	drop   func(context.Context) error
}

func newDynamoEnv(ctx context.Context, quick bool) (*dynamoEnv, error) {
	target, err := dynamoserver.Open(ctx)
	if err != nil {
		return nil, err
	}
	table, drop, err := target.CreateTable(ctx)
	if err != nil {
		target.Close()
		return nil, err
	}
	return &dynamoEnv{scale: scale{quick: quick}, target: target, table: table, drop: drop}, nil
}

func (e *dynamoEnv) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_ = e.drop(ctx) // the table of a server that keeps running
	e.target.Close()
}

// connect opens a client as a program would.
func (e *dynamoEnv) connect(ctx context.Context, o dynamolock.Options, sdk ...func(*dynamodb.Options)) (*dynamolock.Client, error) {
	o.Table, o.Owner = e.table, owner
	return dynamolock.New(ctx, e.target.Client(sdk...), &o)
}

// wired makes a client whose requests are counted.
type wired struct {
	*dynamolock.Client
	wire      *faulthttp.Transport
	transport *http.Transport // below the wire
}

func (e *dynamoEnv) connectWired(ctx context.Context, o dynamolock.Options) (*wired, error) {
	transport := e.target.Transport()
	wire := faulthttp.New(transport)
	client, err := e.connect(ctx, o, func(o *dynamodb.Options) { o.HTTPClient = wire.Client() })
	if err != nil {
		wire.Close()
		return nil, err
	}
	return &wired{client, wire, transport}, nil
}

func (w *wired) close() {
	closeDynamo(w.Client)
	w.wire.Close()
}

// closeDynamo releases what a client still holds.
func closeDynamo(c *dynamolock.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	_ = c.Close(ctx)
}

// perPeriod counts the requests of an operation, or all with "", over a number
// of periods in which a sender makes one each. It starts half a period after a
// request, so that none is near either end.
func (w *wired) perPeriod(ctx context.Context, op string, period time.Duration, periods int) (float64, error) {
	sent := w.wire.Count(op)
	for began := time.Now(); w.wire.Count(op) == sent; {
		if time.Since(began) > 3*period {
			return 0, errors.New("no request in three periods")
		}
		if err := pause(ctx, time.Millisecond); err != nil {
			return 0, err
		}
	}
	if err := pause(ctx, period/2); err != nil {
		return 0, err
	}
	sent = w.wire.Count(op)
	if err := pause(ctx, time.Duration(periods)*period); err != nil {
		return 0, err
	}
	return float64(w.wire.Count(op)-sent) / float64(periods), nil
}

// pause is time.Sleep bounded by ctx.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// server names the server behind the API.
func (e *dynamoEnv) server() string {
	if e.target.Source() == dynamoserver.Dynalite {
		return "dynalite"
	}
	return string(e.target.Source())
}
