package holdfast

import (
	"errors"
	"log/slog"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/clock"
)

// New makes a client of an engine. Only engines call it: users call zklock.Dial,
// dynamolock.New or memlock.New. It calls open once, which connects to the engine and
// returns its driver; if that fails, so does New. A ctx is open's own business, and so is
// how often it tries. An open that fails leaves nothing behind.
func New(config driver.Config, hooks Hooks, open func(driver.Host) (driver.Driver, error)) (*Client, error) {
	if config.Owner == "" {
		config.Owner = defaultOwner()
	}
	if err := CheckOwner("Options.Owner", config.Owner); err != nil {
		return nil, err
	}
	if config.Margin < 0 {
		return nil, driver.Invalid("Options.Margin", "%v is negative", config.Margin)
	}
	if config.Clock == nil {
		config.Clock = clock.Real{}
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	h := &host{
		Clock:  config.Clock,
		margin: config.Margin,
		log:    config.Logger,
		feed:   newFeed(config.Clock, config.Logger, hooks),
		owner:  config.Owner,
	}
	engine, err := open(h)
	if err == nil && engine == nil {
		err = errors.New("holdfast: open returned no driver")
	}
	if err != nil {
		h.feed.close()
		return nil, err
	}
	return newClient(config, h, engine), nil
}

// valid refuses a client that no engine has made, such as that within a zero zklock.Client.
func (c *Client) valid() error {
	if c == nil || c.engine == nil {
		return driver.Invalid("client", "it was not made by an engine, such as zklock.Dial or dynamolock.New")
	}
	return nil
}

// HoldOf returns the engine's side of a lock that the client of host was granted; nil
// for another client's. It is for engines that offer more than the contract.
func HoldOf(h driver.Host, lock *Lock) driver.Hold {
	if lock == nil || lock.client == nil || lock.client.host != h {
		return nil
	}
	return lock.hold
}

// host implements [driver.Host].
type host struct {
	driver.Clock

	margin time.Duration
	log    *slog.Logger
	feed   *feed
	owner  string
}

func (h *host) Logger() *slog.Logger                 { return h.log }
func (h *host) Owner() string                        { return h.owner }
func (h *host) Margin(l time.Duration) time.Duration { return driver.Margin(h.margin, l) }
func (h *host) SetConnected(connected bool)          { h.feed.setConnected(connected) }
func (h *host) Heartbeat(key string, sent driver.Instant, err error) {
	h.feed.heartbeat(key, sent.Mono, err)
}
