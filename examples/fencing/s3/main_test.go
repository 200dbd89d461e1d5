package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/engine"
	"github.com/holdfast-go/holdfast/examples/internal/story"
	"github.com/holdfast-go/holdfast/memlock"
)

func newStore(t *testing.T) store {
	t.Helper()
	s, stop, err := serve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return s
}

// The five acts end as the example says: of the two looks, at the token and at
// the ETag, neither is enough by itself.
func TestActs(t *testing.T) {
	const through, refused = `alice  goes on, and writes, without the lock\n.*the object is alice's\n`, `alice  goes on: [^\n]*\n.*the object is bob's\n`
	story.Tells(t, engine.Memory(), `^PUT, and no more:\n.*`+through+
		`look at the token, be stopped, PUT:\n.*`+through+
		`be stopped, GET, PUT with If-Match, and no look at the token:\n.*`+through+
		`look at the token, be stopped, PUT with If-Match:\n.*`+refused+
		`be stopped, look at the token, PUT with If-Match:\n.*`+refused+`$`, run)
}

// Writers that all write at once, with locks that are lost at any time, leave a
// history in which no token comes after a greater one. Each write adds its token
// to what it found, so the object is its own history.
func TestRace(t *testing.T) {
	s := newStore(t)
	written, _ := story.Race(t, 15, errStale, func(locks *memlock.Store, client *memlock.Client, turn int) error {
		return add(t, s, locks, client, turn%2 == 1)
	})
	r, _, err := s.read(t.Context(), "history")
	if err != nil {
		t.Fatal(err)
	}
	history := strings.Fields(r.Text)
	if len(history) != written {
		t.Errorf("%d writes have succeeded, and the object has %d", written, len(history))
	}
	last := 0
	for _, field := range history {
		token, err := strconv.Atoi(field)
		if err != nil || token < last {
			t.Fatalf("%q comes after %d (%v) in %q", field, last, err, r.Text)
		}
		last = token
	}
}

// add writes under the lock, or, if it is stopped, after it.
func add(t *testing.T, s store, locks *memlock.Store, client *memlock.Client, stopped bool) error {
	ctx := t.Context()
	lock, err := client.Acquire(ctx, key)
	if err != nil {
		return err
	}
	defer lock.Release(ctx)
	if stopped {
		locks.Expire(client) // and others are ahead, or will be
	}
	for {
		old, etag, err := s.read(ctx, "history")
		if err != nil {
			return err
		}
		if old.Token > lock.Token() {
			return fmt.Errorf("%w: token %d is older than %d", errStale, lock.Token(), old.Token)
		}
		err = s.put(ctx, "history", report{lock.Token(), fmt.Sprint(old.Text, " ", lock.Token())}, etag)
		if !errors.Is(err, errChanged) {
			return err
		}
	}
}

// The server of this example treats conditions as S3's documentation says. Without
// that, the other tests would show nothing.
func TestConditions(t *testing.T) {
	s := newStore(t)
	ctx := t.Context()
	if err := s.put(ctx, "k", report{1, "first"}, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.put(ctx, "k", report{2, "second"}, nil); !errors.Is(err, errChanged) {
		t.Errorf("If-None-Match, and there is an object: %v", err)
	}
	_, etag, err := s.read(ctx, "k")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.put(ctx, "k", report{3, "third"}, etag); err != nil {
		t.Errorf("If-Match with the ETag: %v", err)
	}
	if err := s.put(ctx, "k", report{4, "fourth"}, etag); !errors.Is(err, errChanged) {
		t.Errorf("If-Match with an old ETag: %v", err)
	}
	if err := s.put(ctx, "none", report{5, "fifth"}, etag); !errors.Is(err, errChanged) {
		t.Errorf("If-Match, and there is no object: %v", err)
	}
	if r, _, err := s.read(ctx, "k"); err != nil || r != (report{3, "third"}) {
		t.Errorf("the object is %v, %v", r, err)
	}
}

// A token in the metadata is no fence: the ETag is of the body, so a newer
// holder's write of the same text looks like nothing has happened.
func TestTokenInTheMetadata(t *testing.T) {
	s := newStore(t)
	ctx := t.Context()
	put := func(token holdfast.Token, etag *string) *string {
		t.Helper()
		key := "k"
		out, err := s.client.PutObject(ctx, &s3.PutObjectInput{
			Bucket: &s.bucket, Key: &key, IfMatch: etag,
			Body: strings.NewReader("the same text"), Metadata: map[string]string{"token": token.String()},
		})
		if err != nil {
			t.Fatal(err)
		}
		return out.ETag
	}
	first := put(33, nil)
	put(34, first)
	put(33, first) // late: it was refused if the token were in the body
}
