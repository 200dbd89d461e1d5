package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

// only returns an OnEvent that passes on the events of some kinds.
func only(tell func(holdfast.Event), kinds ...holdfast.EventKind) func(holdfast.Event) {
	return func(e holdfast.Event) {
		if slices.Contains(kinds, e.Kind) {
			tell(e)
		}
	}
}

// eventLog records what OnEvent receives, and fails the test if two calls overlap.
type eventLog struct {
	t     testing.TB
	calls sync.Mutex    // held during a call
	slow  time.Duration // how long each call takes
	all   []holdfast.Event
}

func (l *eventLog) note(e holdfast.Event) {
	if !l.calls.TryLock() {
		l.t.Error("two calls of OnEvent overlap")
		return
	}
	defer l.calls.Unlock()
	time.Sleep(l.slow)
	l.all = append(l.all, e)
}

// kinds are the kinds and keys of all events.
func (l *eventLog) kinds() (all []string) {
	for _, e := range l.all {
		all = append(all, fmt.Sprint(e.Kind, " ", e.Key))
	}
	return all
}

func TestOnEvent_Close_ReceivesAllEventsFirst(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := &engine{}
		b.acquire = func(ctx context.Context, req *driver.Request) (driver.Grant, error) {
			if req.Key == "a" {
				return b.grant(), nil
			}
			return driver.Grant{}, hang(ctx)
		}
		log := &eventLog{t: t, slow: time.Minute}
		c := b.open(t, driver.Config{}, log.note)
		acquire(t, c, "a")
		go c.Acquire(t.Context(), "b")
		synctest.Wait()
		mustClose(t, c)
		if want := []string{"started a", "granted a", "started b", "failed b", "released a"}; !slices.Equal(log.kinds(), want) {
			t.Fatalf("events %q, want %q", log.kinds(), want)
		}
		if failed := log.all[3]; !errors.Is(failed.Err, holdfast.ErrClosed) {
			t.Errorf("reported: %+v", failed)
		}
		b.host.SetConnected(true) // an engine that goes on
		b.host.Heartbeat("", b.host.Now(), nil)
		synctest.Wait()
		if n := len(log.all); n != 5 {
			t.Errorf("%d events after Close", n-5)
		}
	})
}

// A lock may be lost at the moment of its grant.
func TestOnEvent_LossAtTheGrant_FollowsGranted(t *testing.T) {
	t.Parallel()
	b := &engine{}
	b.acquire = func(_ context.Context, req *driver.Request) (driver.Grant, error) {
		go func() {
			time.Sleep(time.Duration(rand.IntN(20)) * time.Microsecond)
			req.Lost(holdfast.ErrBroken)
		}()
		return b.grant(), nil
	}
	log := &eventLog{t: t}
	c := b.open(t, driver.Config{}, log.note)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 150 {
				_, _ = c.TryAcquire(t.Context(), "k", holdfast.WithRetry(holdfast.Retry{Attempts: 1}))
			}
		})
	}
	wg.Wait()
	mustClose(t, c)
	var last holdfast.Event
	stories := make(map[uint64]string)
	for _, e := range log.all {
		if e.Time.Before(last.Time) || e.Seq != last.Seq+1 {
			t.Errorf("%+v follows %+v", e, last)
		}
		last = e
		stories[e.ID] += e.Kind.String() + " "
	}
	count := make(map[string]int)
	for _, story := range stories {
		count[story]++
	}
	granted := count["started granted lost "] + count["started granted released "]
	if granted == 0 || granted+count["started failed "] != 600 {
		t.Errorf("600 acquisitions came to %v", count)
	}
}
