// S3 shows fencing tokens for objects in S3 or a store like it. S3 compares no
// tokens, but it has conditional writes (If-Match, If-None-Match); with the token
// in the object, these are enough. In each of five ways to write, a holder is
// paused, and its write arrives when somebody else holds the lock.
//
//	go run ./examples/fencing/s3                                                     locks in memory
//	go run ./examples/fencing/s3 -engine zookeeper -servers 127.0.0.1:2181           on ZooKeeper
//	go run ./examples/fencing/s3 -engine dynamodb -endpoint http://127.0.0.1:8000    on DynamoDB; AWS without -endpoint
//
// The objects are in an S3 server within this process (gofakes3), to which the AWS
// SDK talks over HTTP.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"os"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/engine"
	"github.com/holdfast-go/holdfast/examples/internal/late"
)

const key = "examples/fencing/s3/report"

func main() {
	engine.Main(func(ctx context.Context, e *engine.Engine) error { return run(ctx, os.Stdout, e) })
}

func run(ctx context.Context, out io.Writer, e *engine.Engine) error {
	s, stop, err := serve(ctx)
	if err != nil {
		return err
	}
	defer stop()
	for i, act := range acts {
		fmt.Fprintf(out, "%s:\n", act.title)
		object := fmt.Sprintf("report-%d", i+1)
		if err := s.put(ctx, object, report{Text: "yesterday's"}, nil); err != nil {
			return err
		}
		refused, err := late.Write(ctx, out, e, key, act.turn(s, object), late.AfterWrite)
		if err != nil {
			return err
		}
		r, _, err := s.read(ctx, object)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "       the object is %s\n", r.Text)
		if late := r.Text == "alice's"; late == act.refused || (refused != nil) != act.refused {
			return fmt.Errorf("the late write was not what it was to be: %w", refused)
		}
	}
	return nil
}

// serve starts a server with a bucket.
func serve(ctx context.Context) (store, func(), error) {
	server := httptest.NewServer(gofakes3.New(s3mem.New(), gofakes3.WithLogger(gofakes3.DiscardLog())).Server())
	client := s3.New(s3.Options{
		BaseEndpoint: &server.URL,
		UsePathStyle: true,
		Region:       "us-east-1",
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "anybody", SecretAccessKey: "anything"}, nil
		}),
	})
	s := store{client, "reports"}
	if _, err := client.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: &s.bucket}); err != nil {
		server.Close()
		return store{}, nil, err
	}
	return s, server.Close, nil
}

// acts are ways to write an object under a lock, each interrupted at the worst moment.
var acts = []struct {
	title   string
	turn    func(s store, object string) late.Turn
	refused bool
}{
	{"PUT, and no more", blind, false},
	{"look at the token, be stopped, PUT", lookThenPut, false},
	{"be stopped, GET, PUT with If-Match, and no look at the token", matchOnly, false},
	{"look at the token, be stopped, PUT with If-Match", lookThenMatch, true},
	{"be stopped, look at the token, PUT with If-Match", both, true},
}

func text(client *engine.Client) string { return client.Owner() + "'s" }

func blind(s store, object string) late.Turn {
	return func(_ context.Context, c *engine.Client, lock *holdfast.Lock) (func(context.Context) error, error) {
		return func(ctx context.Context) error {
			return s.putBlindly(ctx, object, report{lock.Token(), text(c)})
		}, nil
	}
}

func lookThenPut(s store, object string) late.Turn {
	return func(ctx context.Context, c *engine.Client, lock *holdfast.Lock) (func(context.Context) error, error) {
		old, _, err := s.read(ctx, object)
		if err == nil && old.Token > lock.Token() {
			err = errStale
		}
		return func(ctx context.Context) error {
			return s.putBlindly(ctx, object, report{lock.Token(), text(c)})
		}, err
	}
}

func matchOnly(s store, object string) late.Turn {
	return func(_ context.Context, c *engine.Client, lock *holdfast.Lock) (func(context.Context) error, error) {
		return func(ctx context.Context) error {
			_, etag, err := s.read(ctx, object)
			return errors.Join(err, s.put(ctx, object, report{lock.Token(), text(c)}, etag))
		}, nil
	}
}

func lookThenMatch(s store, object string) late.Turn {
	return func(ctx context.Context, c *engine.Client, lock *holdfast.Lock) (func(context.Context) error, error) {
		old, etag, err := s.read(ctx, object)
		if err == nil && old.Token > lock.Token() {
			err = errStale
		}
		return func(ctx context.Context) error {
			return s.put(ctx, object, report{lock.Token(), text(c)}, etag)
		}, err
	}
}

func both(s store, object string) late.Turn {
	return func(_ context.Context, c *engine.Client, lock *holdfast.Lock) (func(context.Context) error, error) {
		return func(ctx context.Context) error {
			return s.write(ctx, object, lock.Token(), text(c))
		}, nil
	}
}
