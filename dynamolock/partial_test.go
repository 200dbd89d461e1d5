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
	"syscall"
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
		"1000 lost":          {1000, 2 * lease, 5 * time.Second},
		"300, a moment ago":  {300, 0, 5 * time.Second},
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

// TestTriesBesideSilence tests hazard D56: tries of keys that are answered succeed, while one key in ten is not.
func TestTriesBesideSilence(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		const keys, callers = 2000, 50
		a := h.client(t)
		a.conn.SetFault(silentPartition)
		var all sync.WaitGroup
		var tries, failed atomic.Int32
		end := time.Now().Add(4 * time.Second)
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
// keys that are not. That they had been answered again after an earlier silence does not matter.
func TestUndoBesideSilence(t *testing.T) {
	test := func(t *testing.T, h *harness, again bool) {
		a, b := h.client(t), h.client(t)
		silence := func() {
			a.conn.SetFault(silentPartition)
			var all sync.WaitGroup
			for i := range 300 {
				all.Go(func() { _, _ = a.TryAcquire(within(t, lease), fmt.Sprint("silent", i), once) })
			}
			all.Wait()
		}
		if again {
			silence()
			a.conn.SetFault(nil)
			time.Sleep(20 * time.Minute)
		}
		silence()
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
	}
	for name, again := range map[string]bool{"first": false, "second": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, dynamolock.Options{Mode: dynamolock.FailClosed}, func(t *testing.T, h *harness) { test(t, h, again) })
		})
	}
}

// TestReleaseAfterAnOutage tests hazard D56: keys of which reads had failed, long before, do not count as silent.
func TestReleaseAfterAnOutage(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a := h.client(t)
		var all sync.WaitGroup
		var silent, healthy []*holdfast.Lock
		for i := range 1000 {
			silent = append(silent, a.hold(t, fmt.Sprint("silent", i)))
		}
		for i := range 50 {
			healthy = append(healthy, a.hold(t, fmt.Sprint("healthy", i)))
		}
		a.conn.SetFault(always(dynamofake.Fail(syscall.ECONNREFUSED)))
		for i := range healthy {
			all.Go(func() { _, _ = a.Inspect(within(t, time.Second), fmt.Sprint("healthy", i)) })
		}
		all.Wait()
		a.conn.SetFault(nil)
		time.Sleep(time.Minute) // heartbeats are answered
		a.conn.SetFault(silentPartition)
		time.Sleep(2 * lease)
		for _, lock := range silent {
			all.Go(func() { _ = lock.Release(within(t, lease)) })
		}
		time.Sleep(10 * time.Millisecond)
		if d := took(func() {
			var some sync.WaitGroup
			for _, lock := range healthy {
				some.Go(func() { mustRelease(t, lock) })
			}
			some.Wait()
		}); d > time.Second {
			t.Errorf("the releases took %v", d)
		}
		all.Wait()
		a.conn.SetFault(nil)
		time.Sleep(2 * lease)
	})
}

// TestReleaseFailsOnce tests hazard D56: nor does a key of which one request has failed.
func TestReleaseFailsOnce(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a := h.client(t)
		var silent []*holdfast.Lock
		for i := range 1000 {
			silent = append(silent, a.hold(t, fmt.Sprint("silent", i)))
		}
		healthy := a.hold(t, "healthy")
		var lost atomic.Bool
		a.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
			if keyOf(op) == "healthy" && purposeOf(op) == release && !lost.Swap(true) {
				return dynamofake.Fail(syscall.ECONNREFUSED)
			}
			return silentPartition(op)
		})
		time.Sleep(2 * lease)
		var all sync.WaitGroup
		for _, lock := range silent {
			all.Go(func() { _ = lock.Release(within(t, lease)) })
		}
		time.Sleep(10 * time.Millisecond)
		if d := took(func() { mustRelease(t, healthy) }); d > 10*time.Second {
			t.Errorf("a release took %v", d)
		}
		all.Wait()
		a.conn.SetFault(nil)
		time.Sleep(2 * lease)
	})
}

// TestReleasesIntoSilence tests hazard D56: bounds apart are for a partition. In an outage few requests are under way.
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
			if n := a.requests(); n > 700 {
				t.Errorf("%d requests in a minute of silence", n)
			}
		}
		a.conn.SetFault(nil)
		all.Wait()
	})
}

// TestUndoAfterATimeLimit tests hazard D56: what is left for a key of which one request was not answered comes before what was tried in
// vain.
func TestUndoAfterATimeLimit(t *testing.T) {
	bubble(t, dynamolock.Options{Mode: dynamolock.FailClosed}, func(t *testing.T, h *harness) {
		a, b := h.client(t), h.client(t)
		a.conn.SetFault(silentPartition)
		var all sync.WaitGroup
		for i := range 300 {
			all.Go(func() { _, _ = a.TryAcquire(within(t, lease), fmt.Sprint("silent", i), once) })
		}
		all.Wait()
		time.Sleep(time.Minute)
		lost := false
		a.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
			if keyOf(op) == "healthy" && !lost {
				lost = true
				return dynamofake.LoseReply(context.DeadlineExceeded)
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
		if d := time.Since(began); d > 10*poll {
			t.Errorf("the key was free after %v", d)
		}
		mustRelease(t, lock)
		a.conn.SetFault(nil)
		time.Sleep(20 * time.Minute)
	})
}

// TestAdmitLooksAgain tests hazard D20: who waits because too many writes are under way finds one for its own key meanwhile.
func TestAdmitLooksAgain(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a := h.client(t)
		var sent atomic.Int32
		a.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
			if keyOf(op) == "k" && purposeOf(op) == acquire {
				sent.Add(1)
				return dynamofake.DelayReply(2 * time.Second)
			}
			return silentPartition(op)
		})
		for i := range 64 {
			go func() { _, _ = a.TryAcquire(within(t, 100*time.Millisecond), fmt.Sprint("silent", i)) }()
		}
		time.Sleep(50 * time.Millisecond)
		go func() { _, _ = a.TryAcquire(within(t, 200*time.Millisecond), "k") }()
		time.Sleep(75 * time.Millisecond) // the 64 have been given up: there is no room
		for range 20 {
			go func() { _, _ = a.TryAcquire(within(t, time.Second), "k") }()
		}
		time.Sleep(1500 * time.Millisecond) // the first write is answered 2 s after it was sent
		if n := sent.Load(); n > 1 {
			t.Errorf("%d writes for a key of which one that was given up is under way", n)
		}
		a.conn.SetFault(nil)
		time.Sleep(2 * lease)
	})
}
