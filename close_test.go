package holdfast_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/clock"
)

// slowClock takes its time to tell the time, once it is asked to.
type slowClock struct {
	clock.Real
	slow atomic.Bool
}

func (c *slowClock) Now() clock.Instant {
	if c.slow.Load() {
		time.Sleep(10 * time.Millisecond)
	}
	return c.Real.Now()
}

// Close waits for the delivery of a lock whose end is under way on another
// goroutine: the backend is not used once it is closed.
func TestCloseDuringAnEnd(t *testing.T) {
	b := &backend{}
	b.stop = func(context.Context) error {
		if b.ended.Load() != 1 {
			t.Error("the backend was closed before the key had been given back")
		}
		return nil
	}
	c := &slowClock{}
	l := b.open(t, holdfast.Config{Clock: c})
	done := acquire(t, l, "k", holdfast.WithTTL(5*time.Millisecond)).Done()
	c.slow.Store(true)
	<-done
	if err := l.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
