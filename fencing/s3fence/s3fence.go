// Package s3fence refuses late writes to objects in S3, or in another store with S3's API and conditional writes. An object carries the
// token of the holder that wrote it, and is written only over the version that was read:
//
//	bucket := s3fence.Bucket{Client: s3.NewFromConfig(cfg), Name: "reports"}
//	err := bucket.Update(ctx, "nightly", lock.Token(), func(old s3fence.Object) ([]byte, error) {
//		return report(old.Body)
//	})
//	// fencing.ErrStale: a later holder has written the object
//
// # The promise
//
// Once a holder has written an object, every Put with a smaller token fails with [fencing.ErrStale] or [ErrChanged]. If a former holder
// writes between the holder's Get and its Put, the Put fails with [ErrChanged], so no write is overwritten unseen. Each object is fenced by
// itself: to fence several, write one of them before reading the others.
//
// # The format
//
// The first line of an object has the token and a random number. Get removes the line, and refuses an object without it. Metadata would not
// do, because the ETag, on which a write depends, covers only the body. The random number gives each version an ETag of its own.
//
// # Rules
//
//   - The store has conditional writes, as S3 has: If-Match and If-None-Match in PutObject. If in doubt, call [Bucket.Probe].
//   - Set RetryMaxAttempts of the client to 1: if the SDK repeats a write whose answer was lost, and the Get after it fails, Update applies
//     its change twice.
//   - All writers use this package. Deleting an object deletes its token.
//   - Holders of shared locks that write one object refuse each other: this package is for exclusive locks.
//   - The tokens of another engine may be smaller. Stop the programs, and Update each object with the token math.MaxInt64, so that all
//     former holders are stale. The new programs use new keys.
package s3fence

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fencing"
)

// ErrChanged: the object is not the version that was read. Read it again.
var ErrChanged = errors.New("the object has changed")

// A Bucket keeps objects that carry tokens.
type Bucket struct {
	Client *s3.Client
	Name   string
}

// An Object is a version of an object, or the absence of one.
type Object struct {
	Key   string
	Body  []byte         // nil if there is no object
	Token holdfast.Token // of the holder that wrote it; 0 if there is no object

	etag, number string
}

var firstLine = regexp.MustCompile(`^holdfast-fence ([0-9]{1,19}) ([A-Z0-9]+)\n`)

// Get reads an object. If there is none, the result has Token 0.
func (b Bucket) Get(ctx context.Context, key string) (Object, error) {
	out, err := b.Client.GetObject(ctx, &s3.GetObjectInput{Bucket: &b.Name, Key: &key})
	var none *types.NoSuchKey
	if errors.As(err, &none) {
		return Object{Key: key}, nil
	}
	var body []byte
	if err == nil {
		defer out.Body.Close()
		body, err = io.ReadAll(out.Body)
	}
	if err != nil {
		return Object{}, fmt.Errorf("s3fence: get %q: %w", key, err)
	}
	line := firstLine.FindSubmatch(body)
	if line == nil || aws.ToString(out.ETag) == "" {
		return Object{}, fmt.Errorf("s3fence: get %q: the object was not written by this package, or has no ETag", key)
	}
	token, _ := strconv.ParseUint(string(line[1]), 10, 64) // of 19 digits at most
	return Object{Key: key, Body: body[len(line[0]):], Token: holdfast.Token(token), etag: *out.ETag, number: string(line[2])}, nil
}

// Put replaces old, which Get returned, by an object with a token and a body. It fails with [fencing.ErrStale] if the token of old is
// greater, and with [ErrChanged] if the object has changed since. After other errors the object may have been written, or may yet be
// if nothing else is written before.
func (b Bucket) Put(ctx context.Context, old Object, token holdfast.Token, body []byte) error {
	if err := fencing.Check(old.Key, token); err != nil {
		return err
	}
	if old.Token > token {
		return fencing.Stale(old.Key, token, old.Token)
	}
	number := rand.Text()
	text := fmt.Appendf(nil, "holdfast-fence %d %s\n%s", token, number, body)
	in := &s3.PutObjectInput{Bucket: &b.Name, Key: &old.Key, Body: bytes.NewReader(text), IfMatch: &old.etag}
	if old.etag == "" {
		in.IfMatch, in.IfNoneMatch = nil, aws.String("*")
	}
	_, err := b.Client.PutObject(ctx, in)
	if err == nil {
		return nil
	}
	var answer *awshttp.ResponseError
	if errors.As(err, &answer) {
		switch answer.HTTPStatusCode() {
		case http.StatusPreconditionFailed, // the condition does not hold
			http.StatusConflict, // another write of the object was under way
			http.StatusNotFound: // If-Match, and the object was deleted
			// The answer to a first try of the SDK may have been lost. Its second try then meets the object of the first.
			if now, failed := b.Get(ctx, old.Key); failed == nil && now.number == number {
				return nil
			}
			err = fmt.Errorf("%w: %w", ErrChanged, err)
		}
	}
	return fmt.Errorf("s3fence: put %q: %w", old.Key, err)
}

// Update reads an object and replaces it by what change makes of it, again if the object has changed meanwhile. It fails with
// [fencing.ErrStale] if a holder with a greater token wrote the object.
func (b Bucket) Update(ctx context.Context, key string, token holdfast.Token, change func(old Object) ([]byte, error)) error {
	for {
		old, err := b.Get(ctx, key)
		if err != nil {
			return err
		}
		if old.Token > token {
			return fencing.Stale(key, token, old.Token)
		}
		body, err := change(old)
		if err != nil {
			return err
		}
		if err := b.Put(ctx, old, token, body); !errors.Is(err, ErrChanged) {
			return err
		}
	}
}

// Probe fails if the store ignores the conditions of writes. It leaves an object at key, which has no other use.
func (b Bucket) Probe(ctx context.Context, key string) error {
	for i, old := range []Object{{Key: key, etag: `"0"`}, {Key: key}, {Key: key}} {
		err := b.Put(ctx, old, 1, nil)
		if err == nil && i != 1 { // the second may create the object
			return fmt.Errorf("s3fence: bucket %q ignores the conditions of writes", b.Name)
		}
		if err != nil && !errors.Is(err, ErrChanged) {
			return err
		}
	}
	return nil
}
