package holdfast_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

var three = []string{"a", "b", "c"}

// Err never says nil when the Err of one of the locks does not, whatever goroutine ends it.
func TestLocksErrIsNotBehind(t *testing.T) {
	l, s := openStory(t, nil)
	defer mustClose(t, l)
	for range 5 {
		locks := mustAll(t, l, three)
		var wg sync.WaitGroup
		for _, key := range three {
			for range 200 { // it takes a while to end them all
				_, cancel := locks.Lock(key).Context(t.Context())
				defer cancel()
			}
			wg.Go(func() { s.lose(key, holdfast.ErrBroken) })
			wg.Go(func() {
				<-locks.Lock(key).Done()
				if locks.Err() == nil || !closed(locks.Done()) {
					t.Error("one has ended, and all are live")
				}
			})
		}
		wg.Wait()
		_ = locks.Release(t.Context())
	}
}

// One that is not confirmed does not keep the others, and ctx bounds the wait for all.
func TestLocksRelease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l, s := openStory(t, nil)
		var releases atomic.Int64
		s.release = func(ctx context.Context) error {
			if releases.Add(1) == 2 {
				return hang(ctx)
			}
			time.Sleep(time.Second)
			return nil
		}
		locks := mustAll(t, l, three)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		err := locks.Release(ctx)
		if took := time.Since(began); took != time.Minute || !errors.Is(err, holdfast.ErrReleasePending) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after %v: %v", took, err)
		}
		if n := strings.Count(err.Error(), "holdfast: release"); n != 1 {
			t.Errorf("%d errors, want one: %v", n, err)
		}
		for _, lock := range locks.All() {
			if !errors.Is(lock.Err(), holdfast.ErrReleased) {
				t.Errorf("%q: %v", lock.Key(), lock.Err())
			}
		}
		_ = l.Close(ctx)
	})
}
