package holdfast

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/driver"
)

// The limits of what every engine can store.
const (
	MaxKey   = 512             // bytes of a key
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
	if c.anyKey && key != "" {
		return c.engine.CheckKey(key, mode)
	}
	portable := key
	if c.absolute {
		portable = strings.TrimPrefix(key, "/")
	}
	if err := CheckKey("key", portable); err != nil {
		return err
	}
	return c.engine.CheckKey(key, mode)
}

// CheckKey refuses a key that is not portable between engines, as zklock and memlock
// do. dynamolock accepts more, see dynamolock.Keys; a program that may be moved to
// another engine can check its keys here. field is what the error calls the key. A portable key has 1 to [MaxKey]
// bytes of valid UTF-8 without control characters, made of elements separated
// by slashes, none of them empty, "." or "..".
func CheckKey(field, key string) error {
	switch {
	case key == "":
		return driver.Invalid(field, "it is empty")
	case len(key) > MaxKey:
		return driver.Invalid(field, "%d bytes, at most %d are allowed", len(key), MaxKey)
	case !utf8.ValidString(key):
		return driver.Invalid(field, "%q is not valid UTF-8", key)
	case strings.ContainsFunc(key, unicode.IsControl):
		return driver.Invalid(field, "%q has a control character", key)
	}
	for element := range strings.SplitSeq(key, "/") {
		switch element {
		case "":
			return driver.Invalid(field, "%q has an empty path element", key)
		case ".", "..":
			return driver.Invalid(field, "%q has the path element %q", key, element)
		}
	}
	return nil
}

// CheckOwner refuses an owner name that is not portable between engines: 1 to
// [MaxOwner] bytes of valid UTF-8 without NUL.
func CheckOwner(field, name string) error {
	switch {
	case name == "":
		return driver.Invalid(field, "it is empty")
	case len(name) > MaxOwner:
		return driver.Invalid(field, "%d bytes, at most %d are allowed", len(name), MaxOwner)
	case !utf8.ValidString(name):
		return driver.Invalid(field, "%q is not valid UTF-8", name)
	case strings.Contains(name, "\x00"):
		return driver.Invalid(field, "it has a NUL byte")
	}
	return nil
}
