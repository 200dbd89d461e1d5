package dynamolock_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
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

// TestReleaseBesideSilence tests hazard D56: a release of a key that is answered does not wait for those of keys that are not, whether
// these have been silent for long or since a moment ago.
func TestReleaseBesideSilence(t *testing.T) {
	for name, c := range map[string]struct {
		locks int
		since time.Duration
		most  time.Duration
	}{
		"300 lost":           {300, 2 * lease, time.Second},
		"1000 lost":          {1000, 2 * lease, time.Second},
		"300, a moment ago":  {300, 0, 5 * time.Second},
		"1000, a moment ago": {1000, 0, 20 * time.Second},
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

// TestTriesBesideSilence tests hazard D56: tries of keys that are answered succeed, while one key in ten is not.
func TestTriesBesideSilence(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		const keys, callers = 2000, 50
		a := h.client(t)
		a.conn.SetFault(silentPartition)
		var all sync.WaitGroup
		var tries, failed atomic.Int32
		end := time.Now().Add(time.Minute)
		for range callers {
			all.Go(func() {
				for time.Now().Before(end) {
					n := rand.N(keys)
					key := fmt.Sprint("k", n)
					if n < keys/10 {
						key = fmt.Sprint("silent", n)
					}
					ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
					lock, err := a.TryAcquire(ctx, key)
					cancel()
					switch {
					case err == nil:
						mustRelease(t, lock)
					case n >= keys/10 && !errors.Is(err, holdfast.ErrHeld): // another caller may have it
						failed.Add(1)
					}
					tries.Add(1)
					time.Sleep(10 * time.Millisecond)
				}
			})
		}
		all.Wait()
		t.Logf("%d tries, up to %d requests at once", tries.Load(), a.conn.Peak())
		if n := failed.Load(); n > 0 {
			t.Errorf("%d tries of keys that are answered have failed", n)
		}
		a.conn.SetFault(nil)
		time.Sleep(2 * lease)
	})
}

// TestUndoBesideSilence tests hazard D56: what a call has left for a key that is answered is given back at once, whatever is left for
// keys that are not.
func TestUndoBesideSilence(t *testing.T) {
	bubble(t, dynamolock.Options{Mode: dynamolock.FailClosed}, func(t *testing.T, h *harness) {
		a, b := h.client(t), h.client(t)
		a.conn.SetFault(silentPartition)
		var all sync.WaitGroup
		for i := range 300 {
			all.Go(func() { _, _ = a.TryAcquire(within(t, lease), fmt.Sprint("silent", i), once) })
		}
		all.Wait()
		lost := false
		a.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
			if keyOf(op) == "healthy" && !lost {
				lost = true
				return dynamofake.LoseReply(io.ErrUnexpectedEOF)
			}
			return silentPartition(op)
		})
		if _, err := a.TryAcquire(t.Context(), "healthy", once); err == nil {
			t.Fatal("granted")
		}
		began := time.Now()
		lock, err := b.Acquire(within(t, time.Hour), "healthy")
		if err != nil {
			t.Fatal(err)
		}
		if d := time.Since(began); d > 2*poll {
			t.Errorf("the key was free after %v", d)
		}
		mustRelease(t, lock)
		a.conn.SetFault(nil)
		time.Sleep(20 * time.Minute)
	})
}
