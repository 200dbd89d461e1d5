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
	*scale
	target *dynamoserver.Target
	proxy  *faulthttp.Proxy // adds linkLatency
	table  string
	drop   func(context.Context) error
}

func newDynamoEnv(ctx context.Context, size *scale) (*dynamoEnv, error) {
	target, err := dynamoserver.Open(ctx)
	if err != nil {
		return nil, err
	}
	table, drop, err := target.CreateTable(ctx)
	if err != nil {
		target.Close()
		return nil, err
	}
	e := &dynamoEnv{scale: size, target: target, table: table, drop: drop}
	if e.proxy, err = faulthttp.Listen(target.Endpoint()); err != nil {
		e.close()
		return nil, err
	}
	e.proxy.Transport.SetRule(faulthttp.All("", faulthttp.Delay(linkLatency)))
	return e, nil
}

func (e *dynamoEnv) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_ = e.drop(ctx) // the table of a server that keeps running
	if e.proxy != nil {
		e.proxy.Close()
	}
	e.target.Close()
}

// url is how a place is reached. AWS is far as it is, and checks for which host a request was signed.
func (e *dynamoEnv) url(p place) string {
	if p.far && e.target.Source() != dynamoserver.AWS {
		return e.proxy.URL()
	}
	return e.target.Endpoint()
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
	closeClient(w.Client.Client)
	w.wire.Close()
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
