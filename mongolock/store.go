package mongolock

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/mongostore"
	"github.com/holdfast-go/holdfast/internal/recordlock"
)

// store implements [recordlock.RevisionStore] on a collection, with one document per key.
type store struct {
	host driver.Host
	opts Options
	name string // of the collection, with its database
	// Both read from the primary, majority what no failover can roll back, linearizable what was confirmed last. On a standalone server
	// they are the same.
	majority, linearizable *mongo.Collection
	keep                   time.Duration // how long a document stays after its latest write; an index of another client deletes it, too
	server                 time.Time     // of the server, when the client was made
	made                   driver.Instant
}

func newStore(host driver.Host, collection *mongo.Collection, o Options) *store {
	journaled := true
	s := &store{host: host, opts: o, name: collection.Database().Name() + "." + collection.Name(), keep: o.TTL}
	if o.TTL == NoTTL {
		s.keep = DefaultTTL
	}
	s.majority = collection.Clone(options.Collection().SetReadPreference(readpref.Primary()).SetReadConcern(readconcern.Majority()).
		SetWriteConcern(&writeconcern.WriteConcern{W: writeconcern.WCMajority, Journal: &journaled}).SetRegistry(bson.NewRegistry()))
	s.linearizable = s.majority.Clone(options.Collection().SetReadConcern(readconcern.Linearizable()))
	return s
}

func init() {
	mongostore.Of = func(client any) recordlock.RevisionStore { return client.(*Client).store }
}

const (
	maxKey   = 2048    // bytes
	maxToken = 1 << 62 // the greatest that is accepted
)

// CheckKey implements recordlock.RevisionStore.
func (s *store) CheckKey(key string) error { return checkKey("key", key) }

func checkKey(field, key string) error {
	switch {
	case len(key) > maxKey:
		return driver.Invalid(field, "%d bytes, at most %d are allowed", len(key), maxKey)
	case !utf8.ValidString(key):
		return driver.Invalid(field, "it is not valid UTF-8")
	}
	return nil
}

// Read implements recordlock.RevisionStore. A read that is not fresh saves the server a round trip to the majority.
func (s *store) Read(ctx context.Context, key string, fresh bool) (recordlock.Record, error) {
	from := s.majority
	if fresh {
		from = s.linearizable
	}
	raw, err := from.FindOne(outside(ctx), bson.D{{Key: "_id", Value: key}}).Raw()
	switch {
	case errors.Is(err, mongo.ErrNoDocuments):
		return recordlock.Record{}, nil
	case err != nil:
		return recordlock.Record{}, s.failed("find", err)
	}
	id, rec, err := decode(raw)
	if err == nil && id != key {
		err = fmt.Errorf("%w: the collection takes it for the key %q: its collation is not simple", ErrRecord, id)
	}
	if err != nil {
		return rec, fmt.Errorf("%q: %w", s.name, err)
	}
	return rec, nil
}

// outside returns ctx without a session of the caller: the caller's transaction does not contain the locks.
func outside(ctx context.Context) context.Context { return mongo.NewSessionContext(ctx, nil) }

// Put implements recordlock.RevisionStore.
func (s *store) Put(ctx context.Context, key string, version any, next recordlock.Record) (now recordlock.Record, done bool, err error) {
	used := s.Now()
	if token := time.UnixMilli(int64(next.Token)); token.After(used) { // the next document of the key begins with a greater one
		used = token
	}
	raw, rev, err := encode(key, &next, used.Add(s.keep))
	if err != nil {
		return now, false, err
	}
	next.Version = rev
	if version == nil {
		_, err = s.majority.InsertOne(outside(ctx), raw)
		switch {
		case mongo.IsDuplicateKeyError(err) && strings.Contains(err.Error(), "_id"):
			return now, false, nil
		case err != nil:
			return now, false, s.failed("insert", err)
		}
		return next, true, nil
	}
	result, err := s.majority.ReplaceOne(outside(ctx), bson.D{{Key: "_id", Value: key}, {Key: "rev", Value: version}}, raw)
	if err != nil {
		return now, false, s.failed("replace", err)
	}
	return next, result.MatchedCount == 1, nil
}

// Now implements recordlock.RevisionStore: the time by this machine's wall clock, or the server's as it was when the client was made, and
// what has passed since, whichever is later.
func (s *store) Now() time.Time {
	now := s.host.Now()
	if server := s.server.Add(now.Sub(s.made)); server.After(now.Wall) {
		return server
	}
	return now.Wall
}

// List implements recordlock.RevisionStore. Corrupt documents become the error at the end.
func (s *store) List(ctx context.Context, prefix string) iter.Seq2[recordlock.Keyed, error] {
	return func(yield func(recordlock.Keyed, error) bool) {
		if err := checkKey("prefix", prefix); err != nil {
			yield(recordlock.Keyed{}, err)
			return
		}
		held := bson.D{{Key: "$exists", Value: true}}
		filter := bson.D{{Key: "_id", Value: bson.D{{Key: "$gte", Value: prefix}}}, {Key: "holders.0", Value: held}}
		ctx := outside(ctx)
		cursor, err := s.majority.Find(ctx, filter, options.Find().SetSort(bson.D{{Key: "_id", Value: 1}}))
		if err != nil {
			yield(recordlock.Keyed{}, s.failed("find", err))
			return
		}
		defer func() { _ = cursor.Close(ctx) }()
		var corrupt error
		for cursor.Next(ctx) {
			key, rec, err := decode(cursor.Current)
			if !strings.HasPrefix(key, prefix) { // the first key after those with the prefix
				break
			} else if err != nil {
				corrupt = errors.Join(corrupt, fmt.Errorf("%q in %q: %w", key, s.name, err))
			} else if !yield(recordlock.Keyed{Key: key, Record: rec}, nil) {
				return
			}
		}
		if err = cursor.Err(); err != nil {
			err = s.failed("find", err)
		}
		if err = errors.Join(corrupt, err); err != nil {
			yield(recordlock.Keyed{}, err)
		}
	}
}

// A document is the record of a key in the collection. The names of its fields are those of Go, in lower case. Durations are in
// nanoseconds.
type document struct {
	Key string `bson:"_id"`
	// Rev is new with each write. It is no counter: after a failover the next primary may count to the number of a write that was rolled
	// back, with other contents.
	Rev     bson.ObjectID
	Token   driver.Token
	Mode    driver.Mode
	Holders []recordlock.Holder
	Broken  driver.Token
	Intent  recordlock.Intent
	Expires time.Time // the TTL index deletes the document then
}

// encode returns the document of a record, with a new rev.
func encode(key string, rec *recordlock.Record, expires time.Time) (raw bson.Raw, rev bson.ObjectID, err error) {
	if rec.Token > maxToken {
		return nil, rev, fmt.Errorf("%w: the token %d is the greatest", ErrRecord, rec.Token)
	}
	rev = bson.NewObjectID()
	raw, err = bson.Marshal(&document{key, rev, rec.Token, rec.Mode, rec.Holders, rec.Broken, rec.Intent, expires})
	return raw, rev, err
}

// decode reads a document. It fails, with an error that matches ErrRecord, if the document is not a lock's.
func decode(raw bson.Raw) (key string, rec recordlock.Record, err error) {
	var d document
	if err = bson.Unmarshal(raw, &d); err == nil {
		err = d.check()
	}
	if err != nil {
		return d.Key, rec, fmt.Errorf("%w: %w", ErrRecord, err)
	}
	return d.Key, recordlock.Record{
		Version: d.Rev, Token: d.Token, Mode: d.Mode, Holders: d.Holders, Broken: d.Broken, Intent: d.Intent,
	}, nil
}

// check refuses what no client has written.
func (d *document) check() error {
	named := func(grant, beat string, lease time.Duration) bool {
		return len(grant) == recordlock.GrantLen && len(beat) == recordlock.GrantLen && lease > 0 && lease <= recordlock.MaxLease
	}
	switch exclusive := !d.Mode.Shared; {
	case d.Rev.IsZero():
		return errors.New("it has no rev")
	case d.Token > maxToken || d.Broken > d.Token:
		return errors.New("its tokens are out of range")
	case d.Mode.Limit < 0 || exclusive && (d.Mode.Limit > 0 || len(d.Holders) > 1):
		return errors.New("its holders and its mode do not go together")
	case d.Intent != (recordlock.Intent{}) && !named(d.Intent.Grant, d.Intent.Beat, d.Intent.Lease):
		return errors.New("its intent is corrupt")
	case slices.ContainsFunc(d.Holders, func(h recordlock.Holder) bool {
		return !named(h.Grant, h.Beat, h.Lease) || h.Token == 0 || h.Token > d.Token
	}):
		return errors.New("a holder is corrupt")
	}
	return nil
}
