package memlock_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/memlock"
)

// waiting acquires a key on a goroutine; the result has one element when it is granted.
func waiting(t *testing.T, c *memlock.Client, opts ...holdfast.Option) chan *holdfast.Lock {
	granted := make(chan *holdfast.Lock, 1)
	go func() {
		lock, err := c.Acquire(t.Context(), "k", opts...)
		if err == nil {
			granted <- lock
		}
	}()
	synctest.Wait()
	return granted
}

func counts(t *testing.T, c *memlock.Client, holders, queue int) holdfast.Info {
	t.Helper()
	info, err := c.Inspect(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(slices.Collect(info.Each())); n != holders || len(info.Queue) != queue {
		t.Errorf("%d hold the key and %d wait, want %d and %d", n, len(info.Queue), holders, queue)
	}
	return info
}

// A session that holds a reader's place, waits as a writer and waits as a reader again loses all of them at once, and
// lets those behind it pass.
func TestSharersOfOneClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memlock.NewStore()
		a, b, c := newClient(t, s), newClient(t, s), newClient(t, s)
		shared := holdfast.WithShared()
		first, other := hold(t, a, "k", shared), hold(t, b, "k", shared)
		w := waiting(t, a)
		r := waiting(t, a, shared)
		last := waiting(t, c, shared)
		counts(t, b, 2, 3)
		s.Expire(a)
		synctest.Wait()
		if !errors.Is(first.Err(), holdfast.ErrSessionExpired) || other.Err() != nil {
			t.Error(first.Err(), other.Err())
		}
		if len(last) != 1 {
			t.Fatal("the reader behind a writer that is gone still waits")
		}
		time.Sleep(time.Second) // a stands again, behind the others: as a writer, then as a reader, or the reverse
		mustReleaseAll(t, other, <-last)
		synctest.Wait()
		for range 2 {
			select {
			case lock := <-w:
				mustReleaseAll(t, lock)
			case lock := <-r:
				mustReleaseAll(t, lock)
			}
		}
		counts(t, b, 0, 0)
	})
}

// A permit that is granted to a client which is cut off goes to the next with its lease, and the limit stays.
func TestPermitWhileCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memlock.NewStore()
		a, b, c := newClient(t, s), newClient(t, s), newClient(t, s)
		limit := holdfast.WithLimit(2)
		one, two := hold(t, a, "k", limit), hold(t, a, "k", limit)
		w := waiting(t, b, limit)
		next := waiting(t, c, limit)
		s.Cut(b)
		mustReleaseAll(t, one)
		synctest.Wait()
		if info := counts(t, a, 2, 1); info.Limit != 2 {
			t.Error(info.Limit)
		}
		time.Sleep(memlock.DefaultLease + time.Second)
		if len(next) != 1 || len(w) != 0 {
			t.Errorf("%d and %d, want the permit to go to the next", len(next), len(w))
		}
		s.Heal(b)
		mustReleaseAll(t, two, <-next)
		mustReleaseAll(t, <-w)
		counts(t, a, 0, 0)
	})
}

func mustReleaseAll(t *testing.T, locks ...*holdfast.Lock) {
	t.Helper()
	for _, lock := range locks {
		if err := lock.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
