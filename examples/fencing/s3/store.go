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
	// errStale is the answer to a former holder.
	errStale = errors.New("refused: a newer holder has written")
	// errChanged: the condition of a write does not hold.
	errChanged = errors.New("the object is not the one that was read")
)

// A report is an object that a lock protects. The token is in the body, because an
// ETag does not cover the metadata: two writes of the same text would look alike.
type report struct {
	Token holdfast.Token `json:"token"`
	Text  string         `json:"text"`
}

// A store keeps reports in a bucket.
type store struct {
	client *s3.Client
	bucket string
}

// write replaces the object, unless a newer holder wrote it. The comparison of
// tokens refuses a holder that reads too late. If-Match refuses one that reads in
// time and writes too late.
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
		// Somebody else has written since. Compare the token again.
	}
}

// read returns the object with its ETag, which is nil if there is no object.
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

// put writes if the object still has the ETag; nil means that there still is none.
func (s store) put(ctx context.Context, key string, r report, etag *string) error {
	in := &s3.PutObjectInput{IfMatch: etag}
	if etag == nil {
		in.IfNoneMatch = aws.String("*")
	}
	return s.send(ctx, in, key, r)
}

// putBlindly writes unconditionally.
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
