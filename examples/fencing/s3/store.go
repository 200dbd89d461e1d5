package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/holdfast-go/holdfast"
)

var (
	// errStale is what a holder of the past is told.
	errStale = errors.New("refused: a newer holder has written")
	// errChanged is what S3 says to a write whose condition does not hold.
	errChanged = errors.New("the object is not the one that was read")
)

// A report is an object that a lock protects. The token is in the body, and not
// in the metadata: an ETag says nothing of those, so two writes of the same text
// would look alike.
type report struct {
	Token holdfast.Token `json:"token"`
	Text  string         `json:"text"`
}

// A store keeps reports in a bucket.
type store struct {
	client *s3.Client
	bucket string
}

// write puts a text in the place of what is there, unless that is of a newer
// holder. The look at the token refuses a holder who comes too late. If-Match
// refuses one who was in time when it looked, and too late when it wrote.
func (s store) write(ctx context.Context, key string, token holdfast.Token, text string) error {
	for {
		old, etag, err := s.read(ctx, key)
		if err != nil {
			return err
		}
		if old.Token > token {
			return fmt.Errorf("%w: token %d is older than %d", errStale, token, old.Token)
		}
		err = s.put(ctx, key, report{token, text}, etag)
		if !errors.Is(err, errChanged) {
			return err
		}
		// Somebody else has written since it was read. Look at the token again.
	}
}

// read returns what is there with its ETag, which is nil if there is nothing.
func (s store) read(ctx context.Context, key string) (report, *string, error) {
	out, err := s.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &s.bucket, Key: &key})
	var none *types.NoSuchKey
	switch {
	case errors.As(err, &none):
		return report{}, nil, nil
	case err != nil:
		return report{}, nil, err
	}
	defer out.Body.Close()
	body, err := io.ReadAll(out.Body)
	if err != nil {
		return report{}, nil, err
	}
	var r report
	return r, out.ETag, json.Unmarshal(body, &r)
}

// put writes on the condition that what is there has an ETag still; if that is
// nil, that there still is nothing.
func (s store) put(ctx context.Context, key string, r report, etag *string) error {
	in := &s3.PutObjectInput{IfMatch: etag}
	if etag == nil {
		in.IfNoneMatch = aws.String("*")
	}
	return s.send(ctx, in, key, r)
}

// putBlindly writes whatever is there.
func (s store) putBlindly(ctx context.Context, key string, r report) error {
	return s.send(ctx, &s3.PutObjectInput{}, key, r)
}

func (s store) send(ctx context.Context, in *s3.PutObjectInput, key string, r report) error {
	body, err := json.Marshal(r)
	if err != nil {
		return err
	}
	in.Bucket, in.Key, in.Body = &s.bucket, &key, bytes.NewReader(body)
	_, err = s.client.PutObject(ctx, in)
	var answer *awshttp.ResponseError
	if errors.As(err, &answer) {
		switch answer.HTTPStatusCode() {
		case http.StatusPreconditionFailed, // the condition does not hold
			http.StatusConflict, // another write of the object was under way
			http.StatusNotFound: // If-Match, and the object was deleted
			return errChanged
		}
	}
	return err
}
