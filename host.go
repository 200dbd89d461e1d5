package holdfast

import (
	"errors"
	"log/slog"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/clock"
)

// New makes a client of an engine, for engines only: programs call zklock.Dial, dynamolock.New or memlock.New. It calls open once
// to connect. If open fails, so does New; open then leaves nothing behind. onEvent may be nil: see [Event].
func New(config driver.Config, onEvent func(Event), open func(driver.Host) (driver.Driver, error)) (*Client, error) {
	if config.Owner == "" {
		config.Owner = defaultOwner()
	}
	if err := driver.CheckOwner("Options.Owner", config.Owner); err != nil {
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
	f := newFeed(config.Clock, onEvent)
	h := &host{Clock: config.Clock, config: config, log: f.logger(config.Logger), feed: f}
	engine, err := open(h)
	if err == nil && engine == nil {
		err = errors.New("holdfast: open returned no driver")
	}
	if err != nil {
		f.close()
		return nil, err
	}
	return newClient(h, engine), nil
}

// valid refuses a client that no engine has made, such as that within a zero zklock.Client.
func (c *Client) valid() error {
	if c == nil || c.engine == nil {
		return driver.Invalid("client", "it was not made by an engine, such as zklock.Dial or dynamolock.New")
	}
	return nil
}

// host implements [driver.Host].
type host struct {
	driver.Clock

	config driver.Config
	log    *slog.Logger
	feed   *feed
}

func (h *host) Logger() *slog.Logger                 { return h.log }
func (h *host) Owner() string                        { return h.config.Owner }
func (h *host) Margin(l time.Duration) time.Duration { return driver.Margin(h.config.Margin, l) }

// SetConnected implements [driver.Host].
func (h *host) SetConnected(connected bool) {
	switch {
	case !h.feed.setConnected(connected):
	case connected:
		h.log.Info("connected")
	default:
		h.log.Warn("disconnected")
	}
}

// Heartbeat implements [driver.Host].
func (h *host) Heartbeat(key string, sent driver.Instant, err error) {
	h.feed.emit(Event{Kind: Heartbeat, Key: key, Err: err}, sent.Mono)
}
