package memlock

import (
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

// A Client acquires locks from a [Store]. Its methods are those of [holdfast.Client]; the package documentation lists them.
type Client struct {
	*holdfast.Client

	engine *engine
}

// New returns a client; options may be nil. It does not block. It fails with [holdfast.ErrInvalid] if an option is out of bounds.
// Close ends the client; one that is never closed leaves no goroutine behind either.
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
		Lease:  func() time.Duration { return o.Lease },

		Features: driver.Features{Ordered: true, Shares: true},
	}, o.OnEvent, func(host driver.Host) (driver.Driver, error) {
		client.engine = &engine{store: o.Store, host: host, lease: o.Lease}
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
func (c *Client) Lease() time.Duration {
	if c.engine == nil {
		return 0
	}
	return c.engine.lease
}
