package driver

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// The largest key and owner name, in bytes.
const (
	MaxKey   = 512
	MaxOwner = 256
)

// CheckKey refuses a key that is not portable between engines. A portable key has 1 to [MaxKey] bytes of valid UTF-8 without control
// characters. It consists of elements separated by slashes; no element is empty, "." or "..". dynamolock accepts more: see
// dynamolock.Keys. field names the key in the error.
func CheckKey(field, key string) error {
	switch {
	case key == "":
		return Invalid(field, "it is empty")
	case len(key) > MaxKey:
		return Invalid(field, "%d bytes, at most %d are allowed", len(key), MaxKey)
	case !utf8.ValidString(key):
		return Invalid(field, "%q is not valid UTF-8", key)
	case strings.ContainsFunc(key, unicode.IsControl):
		return Invalid(field, "%q has a control character", key)
	}
	for element := range strings.SplitSeq(key, "/") {
		switch element {
		case "":
			return Invalid(field, "%q has an empty path element", key)
		case ".", "..":
			return Invalid(field, "%q has the path element %q", key, element)
		}
	}
	return nil
}

// CheckOwner refuses an owner name that is not portable between engines: 1 to [MaxOwner] bytes of valid UTF-8 without NUL.
func CheckOwner(field, name string) error {
	switch {
	case name == "":
		return Invalid(field, "it is empty")
	case len(name) > MaxOwner:
		return Invalid(field, "%d bytes, at most %d are allowed", len(name), MaxOwner)
	case !utf8.ValidString(name):
		return Invalid(field, "%q is not valid UTF-8", name)
	case strings.Contains(name, "\x00"):
		return Invalid(field, "it has a NUL byte")
	}
	return nil
}
