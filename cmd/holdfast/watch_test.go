package main

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// TestWatchLooksSeldom checks that a watch reads the key at its interval, and less often the more contenders there are.
func TestWatchLooksSeldom(t *testing.T) {
	for waiters, want := range map[int]time.Duration{0: time.Second, 198: 10 * time.Second} {
		w := &watcher{interval: time.Second}
		w.seen.info.Queue = make([]holdfast.Waiter, waiters)
		if got := w.pause(); got != want {
			t.Errorf("with %d waiters the next look comes after %v, want %v", waiters, got, want)
		}
	}
}
