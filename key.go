package holdfast

import (
	"strings"

	"github.com/holdfast-go/holdfast/driver"
)

// The limits of what every engine can store.
const (
	MaxKey   = driver.MaxKey   // bytes of a key
	MaxOwner = driver.MaxOwner // bytes of an owner name
	MaxData  = 64 * 1024       // bytes of data

	MaxLimit      = 128  // permits of a semaphore; see WithLimit
	MaxSharedData = 1024 // bytes of data of a hold that is shared
)

// checkKey applies the portable rules, then the engine's own.
func (c *Client) checkKey(key string, mode driver.Mode) error {
	if err := c.valid(); err != nil {
		return err
	}
	if c.config.Features.AnyKey && key != "" {
		return c.engine.CheckKey(key, mode)
	}
	portable := key
	if c.config.AbsoluteKeys {
		portable = strings.TrimPrefix(key, "/")
	}
	if err := driver.CheckKey("key", portable); err != nil {
		return err
	}
	return c.engine.CheckKey(key, mode)
}
