package main

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
)

// TestWatchLooksSeldom checks when a watch reads the queue again: sooner after a change, and later the more contenders there are; and
// not at all where there is no queue, or during an outage.
func TestWatchLooksSeldom(t *testing.T) {
	const never = -1
	for _, test := range []struct {
		queues, wanted, down bool
		waiters              int
		want                 time.Duration
	}{
		{true, false, false, 0, time.Second},
		{true, false, false, 198, 10 * time.Second},
		{true, true, false, 0, 250 * time.Millisecond},
		{true, true, false, 198, time.Second},
		{true, true, true, 0, 250 * time.Millisecond},
		{true, false, true, 0, never},
		{false, true, false, 0, never},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := &watcher{client: &client{queues: test.queues}, interval: time.Second, ended: time.Now(), wanted: test.wanted}
			w.seen.info.Queue = make([]holdfast.Waiter, test.waiters)
			if test.down {
				w.seen.down = time.Now()
			}
			got := time.Duration(never)
			if due := w.due(); due != nil {
				<-due
				got = time.Since(w.ended)
			}
			if got != test.want {
				t.Errorf("%+v: the next look comes after %v", test, got)
			}
		})
	}
}
