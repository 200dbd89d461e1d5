// Package strict checks, in tests, what must be so if the code is right.
package strict

import (
	"fmt"
	"sync/atomic"
)

var on atomic.Bool

// On has Check panic, in this process, from now on.
func On() { on.Store(true) }

// Check panics with a message if something is not as it must be. Outside of tests it does nothing.
func Check(ok bool, format string, args ...any) {
	if !ok && on.Load() {
		panic(fmt.Sprintf(format, args...))
	}
}
