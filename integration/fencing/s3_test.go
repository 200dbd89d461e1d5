package fencing_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fencing"
	"github.com/holdfast-go/holdfast/fencing/s3fence"
)

// newBucket starts an S3 server with a bucket. The server's requests go through wrap.
func newBucket(t *testing.T, wrap func(http.Handler) http.Handler) s3fence.Bucket {
	t.Helper()
	server := httptest.NewServer(wrap(gofakes3.New(s3mem.New(), gofakes3.WithLogger(gofakes3.DiscardLog())).Server()))
	t.Cleanup(server.Close)
	client := s3.New(s3.Options{
		BaseEndpoint: &server.URL,
		UsePathStyle: true,
		Region:       "us-east-1",
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "any", SecretAccessKey: "any"}, nil
		}),
	})
	b := s3fence.Bucket{Client: client, Name: "bucket"}
	_, err := client.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &b.Name})
	must(t, err)
	return b
}

func plain(h http.Handler) http.Handler { return h }

// put writes without any condition.
func put(ctx context.Context, b s3fence.Bucket, key, body string) error {
	_, err := b.Client.PutObject(ctx, &s3.PutObjectInput{Bucket: &b.Name, Key: &key, Body: strings.NewReader(body)})
	return err
}

// Put writes over the version that was read and nothing else, with a token that does not fall.
func TestPut(t *testing.T) {
	b, ctx := newBucket(t, plain), t.Context()
	get := func(key string) s3fence.Object {
		t.Helper()
		o, err := b.Get(ctx, key)
		must(t, err)
		return o
	}
	step := func(what string, old s3fence.Object, token holdfast.Token, body string, want error) {
		t.Helper()
		if err := b.Put(ctx, old, token, []byte(body)); !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	none := get("k")
	step("token 0", none, 0, "", holdfast.ErrInvalid)
	step("no key", s3fence.Object{}, 1, "", holdfast.ErrInvalid)
	step("a new object", none, 33, "first", nil)
	first := get("k")
	if string(first.Body) != "first" || first.Token != 33 || first.Key != "k" {
		t.Errorf("the object is %+v", first)
	}
	step("a new object where one is", none, 34, "", s3fence.ErrChanged)
	step("a former holder that has read", first, 32, "", fencing.ErrStale)
	step("the same text by the next holder", first, 34, "first", nil)
	step("a former holder, with a version of the same text", first, 33, "", s3fence.ErrChanged)
	step("the holder again", get("k"), 34, "", nil)
	if o := get("k"); len(o.Body) != 0 || o.Token != 34 {
		t.Errorf("the object is %+v", o)
	}
	last := get("k")
	key := "k"
	_, err := b.Client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &b.Name, Key: &key})
	must(t, err)
	step("an object that was deleted", last, 35, "", s3fence.ErrChanged)
	for _, body := range []string{"", "text", "holdfast-fence 33\n", "holdfast-fence 99999999999999999999 A\n"} {
		must(t, put(ctx, b, "foreign", body))
		if _, err := b.Get(ctx, "foreign"); err == nil {
			t.Errorf("Get takes %q", body)
		}
	}
	if _, err := (s3fence.Bucket{Client: b.Client, Name: "none"}).Get(ctx, "k"); err == nil {
		t.Error("Get finds no object in a bucket that does not exist")
	}
}

// Probe tells a store with conditional writes from one without them.
func TestProbe(t *testing.T) {
	for range 2 {
		if err := newBucket(t, plain).Probe(t.Context(), "probe"); err != nil {
			t.Error(err)
		}
	}
	for _, header := range []string{"If-Match", "If-None-Match"} {
		b := newBucket(t, func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				r.Header.Del(header)
				h.ServeHTTP(w, r)
			})
		})
		if err := b.Probe(t.Context(), "probe"); err == nil {
			t.Errorf("a store that ignores %s passes", header)
		}
	}
}

// A Put whose first answer is lost succeeds by the second try of the SDK, and is made once.
func TestPutLostAnswer(t *testing.T) {
	var lose atomic.Bool
	b := newBucket(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPut && lose.CompareAndSwap(true, false) {
				h.ServeHTTP(httptest.NewRecorder(), r)
				w.WriteHeader(http.StatusInternalServerError)
				return
			}
			h.ServeHTTP(w, r)
		})
	})
	for i := range 3 {
		lose.Store(true)
		calls := 0
		err := b.Update(t.Context(), "k", 33, func(old s3fence.Object) ([]byte, error) {
			calls++
			return append(old.Body, 'x'), nil
		})
		if o, _ := b.Get(t.Context(), "k"); err != nil || calls != 1 || len(o.Body) != i+1 || lose.Load() {
			t.Errorf("%v after %d calls, the object is %q", err, calls, o.Body)
		}
	}
}

// A record is an object that counts its writes and the late ones among them.
type record struct {
	Writes, Late int
	Greatest     holdfast.Token
}

// next returns the record that a write with a token makes of a text with a record, which is empty at first.
func next(text []byte, token holdfast.Token) ([]byte, error) {
	var r record
	if len(text) > 0 {
		if err := json.Unmarshal(text, &r); err != nil {
			return nil, err
		}
	}
	if r.Writes++; token < r.Greatest {
		r.Late++
	}
	r.Greatest = max(r.Greatest, token)
	return json.Marshal(r)
}

// Holders that are stopped before they read, between reading and writing, and after writing change nothing late, nor overwrite a write
// that they have not seen. Without conditions, some do, although each object has the form of this package.
func TestS3Race(t *testing.T) {
	for _, fenced := range []bool{false, true} {
		b := newBucket(t, plain)
		must(t, b.Put(t.Context(), s3fence.Object{Key: "k"}, 1, nil))
		var r race
		r.run(t, fenced, func(ctx context.Context, u *turn) error {
			change := func(old s3fence.Object) ([]byte, error) {
				u.at(midway)
				return next(old.Body, u.token)
			}
			u.at(atFirst)
			defer u.at(atTheLast)
			if fenced {
				return b.Update(ctx, "k", u.token, change)
			}
			old, err := b.Get(ctx, "k")
			if err != nil {
				return err
			}
			body, err := change(old)
			if err != nil {
				return err
			}
			return put(ctx, b, "k", fmt.Sprintf("holdfast-fence %d A\n%s", u.token, body))
		})
		var end record
		if o, err := b.Get(t.Context(), "k"); err != nil || json.Unmarshal(o.Body, &end) != nil {
			t.Fatal(err, o)
		}
		written := int(r.written.Load())
		t.Logf("%d late, %d lost", end.Late, written-end.Writes)
		if passed := end.Late > 0 || end.Writes != written; passed == fenced || fenced && r.refused.Load() == 0 {
			t.Errorf("fenced %t: %+v after %d writes", fenced, end, written)
		}
	}
}
