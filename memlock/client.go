package memlock

import (
	"log/slog"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

// The bounds and the default of [Options.Lease].
const (
	DefaultLease = 10 * time.Second
	MinLease     = 10 * time.Millisecond
	MaxLease     = 24 * time.Hour
)

// Options are the settings of a client. The zero value, like nil, stands for
// the defaults. [New] copies them and never changes them.
type Options struct {
	// Store is what the client takes locks from. Default nil: one of its own,
	// which no other client can see.
	Store *Store

	// Lease is how long the store waits for a silent client before it gives
	// its locks and its places to others. Default 0: [DefaultLease]. From
	// [MinLease] to [MaxLease].
	Lease time.Duration

	// Owner is the default owner name, 1 to [holdfast.MaxOwner] bytes of UTF-8
	// without NUL. Default "": host:pid:random.
	Owner string

	// Margin is by how much the client gives up its locks sooner than the store
	// does. Default 0: max(50 ms, Lease/20). Not negative; more than half of
	// Lease counts as half.
	Margin time.Duration

	// Logger gets what the client has to tell. Default nil: silent.
	Logger *slog.Logger

	// Hooks are called when something happens to the client or its locks. There
	// are no heartbeats to tell of. Default: none.
	Hooks holdfast.Hooks

	// Wrap, if set, is given the client's engine and what that reports to, and
	// returns what the client is to use in its place: the way to put faults of
	// one's own under a program that is tested. Default nil: the engine as it is.
	Wrap func(driver.Host, driver.Driver) driver.Driver

	clock driver.Clock // set by tests
}

// validate refuses what is out of bounds and fills in the defaults that are
// not holdfast's.
func (o *Options) validate() error {
	switch {
	case o.Lease == 0:
		o.Lease = DefaultLease
	case o.Lease < MinLease:
		return driver.Invalid("Options.Lease", "%v, at least %v is needed", o.Lease, MinLease)
	case o.Lease > MaxLease:
		return driver.Invalid("Options.Lease", "%v, at most %v is allowed", o.Lease, MaxLease)
	}
	if o.Store == nil {
		o.Store = NewStore()
	}
	return nil
}

// A Client takes locks from a [Store]. Its methods are those of
// [holdfast.Client]; the package documentation lists them.
type Client struct {
	*holdfast.Client

	engine *engine
}

// New returns a client; options may be nil. It does not block. It fails with
// [holdfast.ErrInvalid] if an option is out of bounds. Close ends the client,
// but one that is merely forgotten leaves no goroutine behind either.
func New(options *Options) (*Client, error) {
	var o Options
	if options != nil {
		o = *options
	}
	if err := o.validate(); err != nil {
		return nil, err
	}
	client := &Client{}
	portable, err := holdfast.New(driver.Config{
		Owner:  o.Owner,
		Margin: o.Margin,
		Logger: o.Logger,
		Clock:  o.clock,
	}, o.Hooks, func(host driver.Host) (driver.Driver, error) {
		client.engine = newEngine(o.Store, host, o.Lease)
		host.SetConnected(true)
		if o.Wrap == nil {
			return client.engine, nil
		}
		engine := o.Wrap(host, client.engine)
		if engine == nil {
			return nil, driver.Invalid("Options.Wrap", "it returned nil")
		}
		return engine, nil
	})
	if err != nil {
		return nil, err
	}
	client.Client = portable
	return client, nil
}

// Lease is how long the store waits for a silent client.
func (c *Client) Lease() time.Duration { return c.engine.lease }
