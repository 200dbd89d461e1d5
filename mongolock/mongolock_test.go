package mongolock_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/mongostore"
	"github.com/holdfast-go/holdfast/internal/recordlock"
	"github.com/holdfast-go/holdfast/mongolock"
)

func TestNew_BadOptions(t *testing.T) {
	s := serve(t, nil)
	locks := connect(t, s.addr)
	for field, all := range map[string][]mongolock.Options{
		"Options.Lease":     {{Lease: -1}, {Lease: recordlock.MinLease - 1}, {Lease: recordlock.MaxLease + time.Second}, {Lease: 2e9 + 1}},
		"Options.Heartbeat": {{Lease: 3 * time.Second, Heartbeat: time.Second}, {Heartbeat: -1}},
		"Options.Poll":      {{Poll: -1}, {Poll: recordlock.MinPoll - 1}, {Poll: mongolock.DefaultLease + 1}},
		"Options.Timeout":   {{Timeout: -1}, {Timeout: 7 * time.Second}, {Margin: 10 * time.Second}},
		"Options.Margin":    {{Margin: -1}},
		"Options.Owner":     {{Owner: "a\x00b"}},
		"Options.TTL":       {{TTL: -2}, {TTL: time.Hour}, {TTL: 9 * recordlock.MaxLease, Lease: recordlock.MaxLease}},
	} {
		for _, o := range all {
			_, err := mongolock.New(t.Context(), locks, &o)
			var invalid *holdfast.InvalidError
			if !errors.As(err, &invalid) || invalid.Field != field {
				t.Errorf("%+v: %v, want an InvalidError for %s", o, err, field)
			}
		}
	}
	if _, err := mongolock.New(t.Context(), nil, nil); !errors.Is(err, holdfast.ErrInvalid) {
		t.Error(err)
	}
	if err := new(mongolock.Client).BreakNow(t.Context(), holdfast.Info{}); !errors.Is(err, holdfast.ErrInvalid) {
		t.Error(err)
	}
	if len(s.sent) != 0 {
		t.Errorf("something was sent: %v", s.sent)
	}
}

// A server that cannot keep locks is refused with an error that says why, in time.
func TestNew_BadServer(t *testing.T) {
	on := func(command string, answer bson.D) func(string, bson.Raw) bson.D {
		return func(got string, _ bson.Raw) bson.D {
			if got == command {
				return answer
			}
			return nil
		}
	}
	credentials := options.Client().SetAuth(options.Credential{Username: "me", Password: "secret-word", AuthMechanism: "PLAIN"})
	for name, test := range map[string]struct {
		answer func(string, bson.Raw) bson.D
		client *options.ClientOptions
		want   error
		text   string
	}{
		"standalone": {on("hello", hello(bson.E{Key: "setName", Value: ""})), nil, mongolock.ErrServer, "--replSet"},
		"secondary":  {on("hello", hello(bson.E{Key: "isWritablePrimary", Value: false})), nil, holdfast.ErrDisconnected, "not the primary"},
		"wrong password": {
			on("saslStart", failure(18, "AuthenticationFailed")), credentials, holdfast.ErrDenied, "AuthenticationFailed",
		},
		"no permission":    {on("find", failure(13, "Unauthorized")), nil, holdfast.ErrDenied, "find in \"db.locks\""},
		"no linearizable":  {on("find", failure(123, "NotAReplicaSet")), nil, mongolock.ErrServer, "NotAReplicaSet"},
		"no majority":      {on("find", failure(50, "MaxTimeMSExpired")), nil, holdfast.ErrDisconnected, "MaxTimeMSExpired"},
		"too old":          {on("isMaster", hello(bson.E{Key: "maxWireVersion", Value: 4})), nil, mongolock.ErrServer, "wire version"},
		"unknown to hello": {on("hello", failure(59, "CommandNotFound")), nil, nil, "CommandNotFound"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := test.client
			if set == nil {
				set = options.Client()
			}
			refused(t, connect(t, serve(t, test.answer).addr, set), 3*time.Second, test.want, test.text)
		})
	}
	t.Run("web server", func(t *testing.T) {
		t.Parallel()
		web := httptest.NewServer(http.NotFoundHandler())
		t.Cleanup(web.Close)
		refused(t, connect(t, web.Listener.Addr().String()), 3*time.Second, holdfast.ErrDisconnected, "Addr: "+web.Listener.Addr().String())
	})
	t.Run("refused connection", func(t *testing.T) {
		t.Parallel()
		refused(t, connect(t, closedPort(t)), 0, holdfast.ErrDisconnected, "connection refused")
	})
	t.Run("silence", func(t *testing.T) {
		t.Parallel()
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		refused(t, connect(t, l.Addr().String()), 3*time.Second, holdfast.ErrDisconnected, "Addr: "+l.Addr().String())
	})
}

func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// refused insists that New fails in time, with an error that has no secrets.
func refused(t *testing.T, locks *mongo.Collection, limit time.Duration, want error, text string) {
	t.Helper()
	began := time.Now()
	ctx := t.Context()
	if limit > 0 {
		bounded, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		ctx = bounded
	}
	c, err := mongolock.New(ctx, locks, nil)
	if c != nil || want != nil && !errors.Is(err, want) || !strings.Contains(err.Error(), text) {
		t.Errorf("%v; want %v, %q", err, want, text)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %v", took)
	}
	if strings.Contains(err.Error(), "secret-word") {
		t.Errorf("it shows a secret: %v", err)
	}
}

// open returns the store of a client.
func open(t *testing.T, s *script, o *mongolock.Options) recordlock.Store {
	t.Helper()
	c, err := mongolock.New(t.Context(), connect(t, s.addr), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return recordlock.ByRevision(mongostore.Of(c))
}

var someHolder = recordlock.Holder{
	Grant: strings.Repeat("G", 32), Beat: strings.Repeat("B", 32), Lease: 20 * time.Second, Owner: "me", Data: []byte("x"),
	Since: time.UnixMilli(1e12).UTC(), Touched: time.UnixMilli(1e12).UTC(),
}

// A document outlives its token, even if that is ahead of the time: the next document begins with the time.
func TestStore_TokenAhead_KeptLonger(t *testing.T) {
	ahead := time.Now().AddDate(1, 0, 0).UnixMilli() // once granted by a client whose clock was a year ahead
	s := serve(t, func(command string, request bson.Raw) bson.D {
		if command != "find" || request.Lookup("filter", "_id").StringValue() == "" {
			return nil
		}
		return found(bson.D{{Key: "_id", Value: "k"}, {Key: "rev", Value: bson.NewObjectID()}, {Key: "token", Value: ahead}})
	})
	now, done, err := open(t, s, &mongolock.Options{}).Take(t.Context(), "k", someHolder, driver.Mode{})
	if !done || err != nil {
		t.Fatal(done, err)
	}
	if ends := s.sent[len(s.sent)-1].doc.Lookup("u", "expires").Time(); ends.UnixMilli() <= int64(now.Token) {
		t.Errorf("the document is deleted at %v, when a new one gets a token below %d", ends, now.Token)
	}
}

// A failed write is known to be not done only if it was not sent or the server refuses it for good.
func TestStore_FailedWrite_Class(t *testing.T) {
	const permanent = recordlock.Class(-1)
	concern := bson.D{{Key: "ok", Value: 1}, {Key: "n", Value: 1}, {Key: "writeConcernError", Value: failure(64, "WriteConcernTimeout")}}
	unmet := bson.D{{Key: "ok", Value: 1}, {Key: "n", Value: 1}, {Key: "writeConcernError", Value: failure(100, "UnsatisfiableWriteConcern")}}
	indexed := bson.D{{Key: "ok", Value: 1}, {Key: "n", Value: 0}, {Key: "writeErrors", Value: bson.A{bson.D{
		{Key: "index", Value: 0}, {Key: "code", Value: 11000}, {Key: "errmsg", Value: "E11000 duplicate key error index: key_1"},
	}}}}
	for name, test := range map[string]struct {
		insert bson.D
		class  recordlock.Class
		match  error
	}{
		"not primary":          {failure(10107, "NotWritablePrimary"), recordlock.Unknown, holdfast.ErrDisconnected},
		"stepped down":         {failure(11602, "InterruptedDueToReplStateChange"), recordlock.Unknown, holdfast.ErrDisconnected},
		"no majority":          {concern, recordlock.Unknown, holdfast.ErrDisconnected},
		"denied":               {failure(13, "Unauthorized"), permanent, holdfast.ErrDenied},
		"another index":        {indexed, permanent, nil},
		"validation":           {failure(121, "DocumentValidationFailure"), permanent, nil},
		"no answer in time":    {bson.D{}, recordlock.Unknown, holdfast.ErrDisconnected},
		"connection that ends": {bson.D{}, recordlock.Unknown, holdfast.ErrDisconnected},
		"no voters":            {unmet, recordlock.Unknown, holdfast.ErrDisconnected},
		"unsatisfiable":        {failure(100, "UnsatisfiableWriteConcern"), permanent, mongolock.ErrServer},
		"primary overloaded":   {failure(462, "IngressRequestRateLimitExceeded"), recordlock.Unknown, holdfast.ErrDisconnected},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			silence := make(chan struct{})
			var down atomic.Bool
			s := serve(t, func(command string, _ bson.Raw) bson.D {
				switch {
				case down.Load(), command == "insert" && name == "connection that ends":
					down.Store(true)
					return bson.D{}
				case command == "insert" && len(test.insert) == 0:
					<-silence
				case command == "insert":
					return test.insert
				}
				return nil
			})
			store := open(t, s, &mongolock.Options{})
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			if len(test.insert) == 0 {
				ctx, cancel = context.WithTimeout(t.Context(), time.Second)
			}
			defer cancel()
			_, done, err := store.Take(ctx, "k", someHolder, driver.Mode{})
			close(silence)
			var e *recordlock.Error
			class := permanent
			if errors.As(err, &e) {
				class = e.Class
			}
			if done || err == nil || class != test.class || test.match != nil && !errors.Is(err, test.match) ||
				!strings.Contains(err.Error(), `insert in "db.locks"`) {
				t.Errorf("%v: class %d, want %d", err, class, test.class)
			}
		})
	}
}

// The format of documents is that of all versions.
func TestStore_Format(t *testing.T) {
	s := serve(t, nil)
	store := open(t, s, &mongolock.Options{TTL: mongolock.NoTTL})
	now, done, err := store.Take(t.Context(), "k", someHolder, driver.Mode{Shared: true, Limit: 3})
	if !done || err != nil {
		t.Fatal(done, err)
	}
	insert := s.sent[len(s.sent)-1]
	doc := insert.doc
	rev := now.Version.(bson.ObjectID).Hex()
	expires := doc.Lookup("expires").Time().UnixMilli()
	want := fmt.Sprintf(`{"_id": "k","rev": {"$oid":"%s"},"token": {"$numberLong":"%d"},"mode": {"shared": true,"limit": {"$numberInt":"3"}},`+
		`"holders": [{"grant": "%s","beat": "%s","token": {"$numberLong":"%d"},"lease": {"$numberLong":"20000000000"},"owner": "me",`+
		`"data": {"$binary":{"base64":"eA==","subType":"00"}},"since": {"$date":{"$numberLong":"1000000000000"}},`+
		`"touched": {"$date":{"$numberLong":"1000000000000"}},"asked": false,"broken": false}],"broken": {"$numberLong":"0"},`+
		`"intent": {"grant": "","beat": "","mode": {"shared": false,"limit": {"$numberInt":"0"}},"lease": {"$numberLong":"0"},`+
		`"poll": {"$numberLong":"0"}},"expires": {"$date":{"$numberLong":"%d"}}}`,
		rev, now.Token, someHolder.Grant, someHolder.Beat, now.Token, expires)
	if doc.String() != want {
		t.Errorf("%s\nwant\n%s", doc, want)
	}
	if in := time.Until(time.UnixMilli(expires)); in < mongolock.DefaultTTL-time.Minute {
		t.Errorf("it expires in %v", in)
	}
	concern := insert.command.Lookup("writeConcern").String()
	if concern != `{"w": "majority","j": true}` {
		t.Errorf("%s", insert.command)
	}
}

// Take of a document reads it, and replaces that revision. A fresh read is linearizable.
func TestStore_ReplacesRevision(t *testing.T) {
	old := bson.NewObjectID()
	s := serve(t, func(command string, request bson.Raw) bson.D {
		if command != "find" || request.Lookup("filter", "_id").StringValue() == "" {
			return nil
		}
		return found(bson.D{{Key: "_id", Value: "k"}, {Key: "rev", Value: old}, {Key: "token", Value: 7}})
	})
	store := open(t, s, &mongolock.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	now, done, err := store.Take(ctx, "k", someHolder, driver.Mode{})
	if !done || err != nil || now.Token != 8 || now.Version == any(old) {
		t.Error(now, done, err)
	}
	sent := s.sent[len(s.sent)-1]
	if got := sent.doc.Lookup("q").String(); got != fmt.Sprintf(`{"_id": "k","rev": {"$oid":"%s"}}`, old.Hex()) {
		t.Error(got)
	}
	if ms := sent.command.Lookup("maxTimeMS").AsInt64(); ms <= 0 || ms > 30_000 {
		t.Errorf("maxTimeMS %d", ms)
	}
	_, err = store.Read(ctx, "k", true)
	if got := s.sent[len(s.sent)-1].command.Lookup("readConcern").String(); err != nil || got != `{"level": "linearizable"}` {
		t.Error(got, err)
	}
}

// A read may be stale: only a linearizable one refuses a Take, and one that shows no document takes no key that has one.
func TestStore_StaleRead(t *testing.T) {
	held := found(bson.D{
		{Key: "_id", Value: "k"},
		{Key: "rev", Value: bson.NewObjectID()},
		{Key: "token", Value: 7},
		{Key: "holders", Value: bson.A{bson.D{
			{Key: "grant", Value: someHolder.Grant},
			{Key: "beat", Value: someHolder.Beat},
			{Key: "token", Value: 7},
			{Key: "lease", Value: int64(time.Second)},
		}}},
	})
	duplicate := bson.D{{Key: "ok", Value: 1}, {Key: "n", Value: 0}, {Key: "writeErrors", Value: bson.A{bson.D{
		{Key: "index", Value: 0}, {Key: "code", Value: 11000}, {Key: "errmsg", Value: "E11000 duplicate key error index: _id_"},
	}}}}
	for name, test := range map[string]struct{ stale, insert, fresh bson.D }{
		"shows a holder":    {stale: held},
		"shows no document": {insert: duplicate, fresh: held},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(command string, request bson.Raw) bson.D {
				switch {
				case command == "insert":
					return test.insert
				case command != "find" || request.Lookup("filter", "_id").StringValue() == "":
					return nil
				case request.Lookup("readConcern", "level").StringValue() == "majority":
					return test.stale
				}
				return test.fresh
			})
			now, done, err := open(t, s, &mongolock.Options{}).Take(t.Context(), "k", someHolder, driver.Mode{})
			if done != (test.fresh == nil) || err != nil || len(now.Holders) != 1 {
				t.Error(now, done, err)
			}
		})
	}
}

// A document that no client has written is left alone.
func TestStore_CorruptDocument(t *testing.T) {
	rev := bson.E{Key: "rev", Value: bson.NewObjectID()}
	holders := func(changes ...bson.E) bson.E {
		h := bson.D{
			{Key: "grant", Value: someHolder.Grant},
			{Key: "beat", Value: someHolder.Beat},
			{Key: "token", Value: 1},
			{Key: "lease", Value: int64(time.Second)},
		}
		return bson.E{Key: "holders", Value: bson.A{append(h, changes...), append(h, changes...)}}
	}
	for name, doc := range map[string]bson.D{
		"foreign":            {{Key: "name", Value: "private"}},
		"no rev":             {{Key: "token", Value: 1}},
		"rev of a type":      {{Key: "rev", Value: "private"}},
		"token of a type":    {rev, {Key: "token", Value: "private"}},
		"negative token":     {rev, {Key: "token", Value: -1}},
		"large token":        {rev, {Key: "token", Value: int64(1<<62 + 1)}},
		"broken ahead":       {rev, {Key: "token", Value: 1}, {Key: "broken", Value: 2}},
		"two holders":        {rev, {Key: "token", Value: 1}, holders()},
		"limit of exclusive": {rev, {Key: "token", Value: 1}, {Key: "mode", Value: bson.D{{Key: "limit", Value: 2}}}},
		"holder":             {rev, {Key: "token", Value: 1}, {Key: "holders", Value: bson.A{bson.D{{Key: "grant", Value: "private"}}}}},
		"intent":             {rev, {Key: "token", Value: 1}, {Key: "intent", Value: bson.D{{Key: "grant", Value: "private"}}}},
		"other key":          {rev, {Key: "_id", Value: "K"}},
	} {
		t.Run(name, func(t *testing.T) {
			doc := doc
			if name != "other key" {
				doc = append(bson.D{{Key: "_id", Value: "k"}}, doc...)
			}
			s := serve(t, func(command string, request bson.Raw) bson.D {
				if command != "find" || request.Lookup("filter", "_id").StringValue() == "" {
					return nil
				}
				return found(doc)
			})
			before := len(s.sent)
			_, done, err := open(t, s, &mongolock.Options{}).Take(t.Context(), "k", someHolder, driver.Mode{})
			if done || !errors.Is(err, mongolock.ErrRecord) || strings.Contains(err.Error(), "private") {
				t.Error(done, err)
			}
			for _, sent := range s.sent[before:] {
				if _, err := sent.command.LookupErr("find"); err != nil {
					t.Errorf("it was written: %v", sent)
				}
			}
		})
	}
}

// Locks are not written in the caller's transaction.
func TestStore_SessionOfCaller(t *testing.T) {
	s := serve(t, nil)
	locks := connect(t, s.addr)
	client, err := mongolock.New(t.Context(), locks, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close(context.Background())
	session, err := locks.Database().Client().StartSession()
	if err != nil {
		t.Fatal(err)
	}
	defer session.EndSession(t.Context())
	if err := session.StartTransaction(); err != nil {
		t.Fatal(err)
	}
	_, _, err = recordlock.ByRevision(mongostore.Of(client)).Take(mongo.NewSessionContext(t.Context(), session), "k", someHolder, driver.Mode{})
	if err != nil {
		t.Fatal(err)
	}
	for _, sent := range s.sent {
		if _, err := sent.command.LookupErr("startTransaction"); err == nil {
			t.Errorf("%v", sent)
		}
	}
}
