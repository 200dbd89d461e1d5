// S3 shows fencing tokens for objects in S3 or a store like it, with package s3fence. A holder is paused, and its write arrives when
// another client has had the lock: without a fence, and with one.
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
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/engine"
	"github.com/holdfast-go/holdfast/examples/internal/late"
	"github.com/holdfast-go/holdfast/fencing"
	"github.com/holdfast-go/holdfast/fencing/s3fence"
)

const key = "examples/fencing/s3/report"

func main() {
	engine.Main(func(ctx context.Context, e *engine.Engine) error { return run(ctx, os.Stdout, e) })
}

func run(ctx context.Context, out io.Writer, e *engine.Engine) error {
	bucket, stop, err := serve(ctx)
	if err != nil {
		return err
	}
	defer stop()
	for _, act := range acts {
		fmt.Fprintf(out, "%s:\n", act.title)
		refused, err := late.Write(ctx, out, e, key, act.turn(bucket))
		if err != nil {
			return err
		}
		text, err := act.text(ctx, bucket)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "       the object is %s\n", text)
		if late := text == "alice's"; late == act.refused || errors.Is(refused, fencing.ErrStale) != act.refused {
			return fmt.Errorf("the late write was not what it was to be: %w", refused)
		}
	}
	return nil
}

// serve starts a server with a bucket.
func serve(ctx context.Context) (s3fence.Bucket, func(), error) {
	server := httptest.NewServer(gofakes3.New(s3mem.New(), gofakes3.WithLogger(gofakes3.DiscardLog())).Server())
	client := s3.New(s3.Options{
		BaseEndpoint: &server.URL,
		UsePathStyle: true,
		Region:       "us-east-1",
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "anybody", SecretAccessKey: "anything"}, nil
		}),
	})
	bucket := s3fence.Bucket{Client: client, Name: "reports"}
	if _, err := client.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: &bucket.Name}); err != nil {
		server.Close()
		return s3fence.Bucket{}, nil, err
	}
	return bucket, server.Close, nil
}

// acts are ways to write an object under a lock.
var acts = []struct {
	title   string
	turn    func(s3fence.Bucket) late.Turn
	text    func(context.Context, s3fence.Bucket) (string, error)
	refused bool
}{
	{"no fence", unfenced, plainText, false},
	{"the token in the object", fenced, fencedText, true},
}

const plainKey, fencedKey = "plain", "fenced"

func unfenced(b s3fence.Bucket) late.Turn {
	return func(_ context.Context, c *engine.Client, _ *holdfast.Lock) (func(context.Context) error, error) {
		return func(ctx context.Context) error {
			text := strings.NewReader(c.Owner() + "'s")
			_, err := b.Client.PutObject(ctx, &s3.PutObjectInput{Bucket: &b.Name, Key: aws.String(plainKey), Body: text})
			return err
		}, nil
	}
}

func plainText(ctx context.Context, b s3fence.Bucket) (string, error) {
	out, err := b.Client.GetObject(ctx, &s3.GetObjectInput{Bucket: &b.Name, Key: aws.String(plainKey)})
	if err != nil {
		return "", err
	}
	defer out.Body.Close()
	text, err := io.ReadAll(out.Body)
	return string(text), err
}

func fenced(b s3fence.Bucket) late.Turn {
	return func(_ context.Context, c *engine.Client, lock *holdfast.Lock) (func(context.Context) error, error) {
		return func(ctx context.Context) error { return report(ctx, b, lock.Token(), c.Owner()+"'s") }, nil
	}
}

// report replaces the object, unless a later holder of the lock has written it.
func report(ctx context.Context, bucket s3fence.Bucket, token holdfast.Token, text string) error {
	return bucket.Update(ctx, fencedKey, token, func(s3fence.Object) ([]byte, error) {
		return []byte(text), nil // may use the old object
	})
}

func fencedText(ctx context.Context, b s3fence.Bucket) (string, error) {
	o, err := b.Get(ctx, fencedKey)
	return string(o.Body), err
}
