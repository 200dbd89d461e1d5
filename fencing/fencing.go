// Package fencing has what its subpackages share. They let the recipient of a write refuse a late one, which no lock can prevent:
//
//	sqlfence   a claim in the transaction that writes: PostgreSQL, MySQL, MariaDB, SQLite
//	s3fence    objects in S3 that carry the token
//	httpfence  requests that carry the token, and a handler that checks it
//
// A resource remembers the greatest token that has claimed it. Each holder claims the resource before it reads or writes there. A
// claim with a smaller token fails with [ErrStale], because the holder is a former one. A claim with the same token succeeds again,
// so a holder may repeat anything.
//
// No package accepts token 0, which a lock without fencing has: dynamolock in mode FailClosed. The token of a permit (WithLimit) is
// accepted and protects nothing: of two live permits, the claim of one makes the other stale.
package fencing

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

// ErrStale is the answer to a former holder: a later holder has claimed the resource. The work must not be repeated with this token.
var ErrStale = errors.New("a later holder has claimed the resource")

// Stale returns an error that matches [ErrStale]; token is the one that was refused because of the greater one, claimed.
func Stale(resource string, token, claimed holdfast.Token) error {
	return fmt.Errorf("fencing: %q refuses token %d: %w with token %d", resource, token, ErrStale, claimed)
}

// Check refuses, with a [holdfast.InvalidError], a claim that no resource accepts: token 0, a token above the greatest signed number
// of 64 bits, which databases cannot store, and a resource whose name does not have 1 to [holdfast.MaxKey] bytes or has a NUL byte.
func Check(resource string, token holdfast.Token) error {
	switch {
	case token == 0:
		return driver.Invalid("token", "it is 0: the lock has no fencing tokens")
	case token > math.MaxInt64:
		return driver.Invalid("token", "%d is greater than %d", token, int64(math.MaxInt64))
	case resource == "" || len(resource) > holdfast.MaxKey || strings.Contains(resource, "\x00"):
		return driver.Invalid("resource", "%q does not have 1 to %d bytes without NUL", resource, holdfast.MaxKey)
	}
	return nil
}
