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

// Options are the settings of a client. The zero value, like nil, stands for the defaults. [New] copies them and never changes them.
type Options struct {
	// Store is where the client takes locks. Default nil: a new store, which no other client can use.
	Store *Store

	// Lease is how long the store waits for a silent client before it gives the client's locks to others. Default 0: [DefaultLease].
	// From [MinLease] to [MaxLease].
	Lease time.Duration

	// Owner is the default owner name, 1 to [holdfast.MaxOwner] bytes of UTF-8 without NUL. Default "": host:pid:random.
	Owner string

	// Margin is how much sooner the client gives up its locks than the store does. Default 0: max(50 ms, Lease/20). Not negative;
	// more than half of Lease counts as half.
	Margin time.Duration

	// Logger receives the log of the client, on a goroutine of the client; Close waits for it. Default nil: silent.
	Logger *slog.Logger

	// OnEvent receives all events of the client: see [holdfast.Event]. There is no Heartbeat. Default: none.
	OnEvent func(holdfast.Event)

	// Wrap, if set, returns the driver that the client uses instead of its engine, which Wrap is given along with the host. With it,
	// a test can inject faults of its own. Default nil: the engine as it is.
	Wrap func(driver.Host, driver.Driver) driver.Driver

	clock driver.Clock // set by tests
}

// validate refuses what is out of bounds and fills in the defaults that are not holdfast's.
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
	} else if o.Store.queues == nil {
		return driver.Invalid("Options.Store", "NewStore did not make it")
	}
	return nil
}
