//go:build !linux

package integration_test

import "time"

// sharedNow is a time that all processes of this machine share, as long as
// nobody sets the clock.
func sharedNow() int64 { return time.Now().UnixNano() }
