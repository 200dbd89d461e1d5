package dynamolock_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

// silentPartition is a fault: requests for keys that begin with "silent" are not answered.
func silentPartition(op dynamofake.Op) dynamofake.Fault {
	if strings.HasPrefix(keyOf(op), "silent") {
		return dynamofake.Drop()
	}
	return dynamofake.Fault{}
}

// TestReleaseBesideSilence: a release of a key that is answered does not wait for those of keys that are not, whether
// these have been silent for long or since a moment ago.
func TestReleaseBesideSilence(t *testing.T) {
	for name, c := range map[string]struct {
		locks int
		since time.Duration
		most  time.Duration
	}{
		"300 lost":           {300, 2 * lease, time.Second},
		"1000 lost":          {1000, 2 * lease, lease},
		"300, a moment ago":  {300, 0, lease},
		"1000, a moment ago": {1000, 0, 45 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
				a := h.client(t)
				var silent []*holdfast.Lock
				for i := range c.locks {
					silent = append(silent, a.hold(t, fmt.Sprint("silent", i)))
				}
				healthy := a.hold(t, "healthy")
				a.conn.SetFault(silentPartition)
				time.Sleep(c.since)
				var all sync.WaitGroup
				for _, lock := range silent {
					all.Go(func() { _ = lock.Release(within(t, lease)) })
				}
				time.Sleep(time.Millisecond)
				a.conn.ResetCounts()
				if d := took(func() { mustRelease(t, healthy) }); d > c.most {
					t.Errorf("a release took %v, want at most %v", d, c.most)
				}
				all.Wait()
				t.Logf("up to %d requests at once", a.conn.Peak())
				a.conn.SetFault(nil)
				time.Sleep(2 * lease)
			})
		})
	}
}

// TestReleasesIntoSilence: bounds apart are for a partition. In an outage few requests are under way.
func TestReleasesIntoSilence(t *testing.T) {
	bubble(t, dynamolock.Options{Mode: dynamolock.FailClosed}, func(t *testing.T, h *harness) {
		a := h.client(t)
		var locks []*holdfast.Lock
		for i := range 2000 {
			locks = append(locks, a.hold(t, fmt.Sprint(i)))
		}
		a.conn.SetFault(always(dynamofake.Drop()))
		var all sync.WaitGroup
		for _, lock := range locks {
			all.Go(func() { _ = lock.Release(within(t, 5*time.Minute)) })
		}
		time.Sleep(time.Minute)
		for range 3 {
			a.conn.ResetCounts()
			time.Sleep(time.Minute)
			if n := a.requests(); n > 1200 {
				t.Errorf("%d requests in a minute of silence", n)
			}
		}
		a.conn.SetFault(nil)
		all.Wait()
	})
}
