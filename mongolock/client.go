package mongolock

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/backoff"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/recordlock"
)

// A Client acquires locks in one collection. Its methods are those of [holdfast.Client] and BreakNow.
type Client struct {
	*holdfast.Client

	store *store
}

// New returns a client for a collection, which need not exist. It asks the primary whether it can keep locks, and creates the TTL index.
// The client is then Ready. The collection's own concerns and read preference do not matter, nor does a session in a ctx. The collection's
// mongo.Client is used until Close, and is not closed. Give locks a mongo.Client of their own if others may use up its connections.
//
// It fails with [holdfast.ErrInvalid] for options out of bounds, before anything is sent; with [ErrServer] if the server cannot keep locks;
// with [holdfast.ErrDenied] if the credentials do not suffice; and with [holdfast.ErrDisconnected], and what ctx ended with, if no primary
// answers in time. Without a deadline of ctx, that is 15 seconds, or 2 seconds if all addresses refuse connections.
func New(ctx context.Context, collection *mongo.Collection, options *Options) (*Client, error) {
	if collection == nil {
		return nil, fmt.Errorf("mongolock: %w", driver.Invalid("collection", "it is nil"))
	}
	o, times, err := options.filled()
	if err != nil {
		return nil, fmt.Errorf("mongolock: %w", err)
	}
	c := &Client{}
	c.Client, err = holdfast.New(driver.Config{
		Owner: o.Owner, Margin: o.Margin, Logger: o.Logger, Clock: clock.From(ctx), Lease: func() time.Duration { return o.Lease },
		Features: driver.Features{Shares: true, AnyKey: true},
	}, o.OnEvent, func(host driver.Host) (driver.Driver, error) {
		c.store = newStore(host, collection, o)
		if err := c.store.open(ctx, times.OpenTimeout); err != nil {
			return nil, fmt.Errorf("mongolock: %w", err)
		}
		host.SetConnected(true)
		return recordlock.New(host, recordlock.ByRevision(c.store), recordlock.Options{
			Lease: o.Lease, Heartbeat: o.Heartbeat, Poll: o.Poll, Timeout: o.Timeout, RetryDelay: times.RetryDelay, Late: o.Lease,
		}), nil
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// BreakNow is Break, but frees the key at once: the holder does not know until its next heartbeat, and another client may have the key by
// then. Only fencing covers that gap. Errors are those of Break.
func (c *Client) BreakNow(ctx context.Context, info holdfast.Info) error {
	if ctx != nil { // else Break refuses it
		ctx = recordlock.AtOnce(ctx)
	}
	return c.Break(ctx, info)
}

// The defaults and bounds of [Options].
const (
	DefaultLease = recordlock.DefaultLease // 20 s
	DefaultTTL   = 30 * 24 * time.Hour
	MinTTL       = 24 * time.Hour
	NoTTL        = time.Duration(-1) // as TTL: documents stay in the collection
)

// Options are the settings of a client. The zero value of each field stands for its default. [New] copies them and never changes them.
type Options struct {
	// Lease is how long others wait for a silent holder. Default 0: [DefaultLease]. From 1 s to 24 h, in whole milliseconds. Clients may
	// have different ones. An election of a replica set takes up to 12 s by default: a shorter lease may end in a failover.
	Lease time.Duration

	// Heartbeat is the time from one renewal of a lock to the next. Default 0: Lease/4. Less than a third of Lease.
	Heartbeat time.Duration

	// Poll is the time from one read of a key that a call waits for to the next, give or take an eighth. Of two clients, the one that
	// reads more often gets the key more often. Default 0: 1 s, or Lease if that is less. From 10 ms to Lease.
	Poll time.Duration

	// Timeout bounds each write with the reads that it needs, and each other read. Default 0: Lease/6, at most 5 s. Heartbeat + 2 x Timeout
	// must be less than Lease - Margin, so that one lost request does not cost the lock.
	Timeout time.Duration

	// Margin is how much sooner a client gives up a lock than others may take it, for clocks that run at different rates. At most half of
	// Lease. Default 0: max(50 ms, Lease/20).
	Margin time.Duration

	// TTL is how long the document of a key that no client uses stays. [New] creates the TTL index that deletes it, on the field
	// expires. Default 0: [DefaultTTL]. At least [MinTTL], and ten times Lease. [NoTTL]: New creates no index.
	TTL time.Duration

	// Standalone allows a server that is not a member of a replica set, for development: its disk is the only copy of the locks.
	Standalone bool

	// Owner is the default owner name, 1 to [holdfast.MaxOwner] bytes of UTF-8 without NUL. Default "": host:pid:random.
	Owner string

	// Logger receives the log of the client, on a goroutine of the client; Close waits for it. Default nil: silent.
	Logger *slog.Logger

	// OnEvent receives all events of the client: see [holdfast.Event]. A Heartbeat has the Key of its lock, and there is no Queued.
	OnEvent func(holdfast.Event)
}

// filled returns a copy of the options with the defaults filled in, and all times. It refuses options out of bounds.
func (o *Options) filled() (filled Options, times recordlock.Times, err error) {
	if o != nil {
		filled = *o
	}
	f := &filled
	times = recordlock.Times{Lease: f.Lease, Heartbeat: f.Heartbeat, Poll: f.Poll, Timeout: f.Timeout, Margin: f.Margin}
	if err = times.Fill(); err != nil {
		return filled, times, err
	}
	f.Lease, f.Heartbeat, f.Poll, f.Timeout = times.Lease, times.Heartbeat, times.Poll, times.Timeout
	least := 10 * f.Lease
	if f.TTL = cmp.Or(f.TTL, max(DefaultTTL, least)); f.TTL != NoTTL && f.TTL < max(MinTTL, least) {
		err = driver.Invalid("Options.TTL", "%v, at least %v is needed", f.TTL, max(MinTTL, least))
	}
	return filled, times, err
}

const openAttempt = 2 * time.Second // enough for the driver to try each address that refuses connections twice

// open waits until the server can be used: until ctx ends if it has a deadline.
func (s *store) open(ctx context.Context, limit time.Duration) error {
	trying, stop := context.WithCancel(outside(ctx))
	defer stop()
	policy := backoff.Policy{Max: time.Second, Total: limit}
	_, patient := ctx.Deadline()
	if patient {
		policy.Total = 0
	}
	err := policy.Retry(trying, s.host, func() error {
		attempt, cancel := context.WithTimeout(trying, openAttempt)
		defer cancel()
		err := s.examine(attempt)
		if !patient && err != nil && unreachable(err) {
			stop()
		}
		return err
	})
	switch {
	case err == nil:
		s.createIndex(ctx)
	case ctx.Err() != nil:
		err = fmt.Errorf("%w: %w", driver.ContextError(ctx), err)
	}
	return err
}

// examine asks the primary whether it can keep locks, and tries a linearizable read.
func (s *store) examine(ctx context.Context) error {
	var hello struct {
		Primary bool      `bson:"isWritablePrimary"`
		Set     string    `bson:"setName"`
		Message string    `bson:"msg"` // of a router of shards
		Time    time.Time `bson:"localTime"`
	}
	admin := s.majority.Database().Client().Database("admin")
	err := admin.RunCommand(ctx, bson.D{{Key: "hello", Value: 1}}, options.RunCmd().SetReadPreference(readpref.Primary())).Decode(&hello)
	replicated := hello.Set != "" || hello.Message == "isdbgrid"
	switch {
	case err != nil:
		return s.failed("hello", err)
	case !hello.Primary: // a direct connection to another member, or an election has begun
		return &recordlock.Error{Err: fmt.Errorf("%q: %w: the server is not the primary of its replica set", s.name, driver.ErrDisconnected)}
	case !replicated && !s.opts.Standalone:
		return fmt.Errorf("%q: %w: it is standalone, so no majority confirms writes. Make it a replica set (mongod --replSet), "+
			"or set Options.Standalone for development", s.name, ErrServer)
	case !replicated:
		s.majority = s.majority.Clone(options.Collection().SetReadConcern(readconcern.Local()))
		s.linearizable = s.majority
	}
	s.server, s.made = hello.Time, s.host.Now()
	_, err = s.Read(ctx, "", true)
	return err
}

// createIndex creates the TTL index. Locks do not depend on it.
func (s *store) createIndex(ctx context.Context) {
	if s.opts.TTL == NoTTL {
		return
	}
	ctx, cancel := context.WithTimeout(outside(ctx), s.opts.Timeout)
	defer cancel()
	_, err := s.majority.Indexes().CreateOne(ctx, mongo.IndexModel{
		Keys: bson.D{{Key: "expires", Value: 1}}, Options: options.Index().SetExpireAfterSeconds(0),
	})
	if err != nil {
		s.host.Logger().Warn("the TTL index cannot be created: documents of unused keys may stay", "error", s.failed("createIndexes", err))
	}
}
