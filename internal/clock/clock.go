// Package clock has the clock that clients run on: the machine's own, unless tests say
// otherwise.
package clock

import (
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// Real is the machine's own clock.
type Real struct{}

// Now implements [driver.Clock].
func (Real) Now() driver.Instant {
	now := time.Now()
	return driver.Instant{Mono: now, Wall: now.Round(0)}
}

// AfterFunc implements [driver.Clock].
func (Real) AfterFunc(d time.Duration, f func()) driver.Timer { return time.AfterFunc(d, f) }
