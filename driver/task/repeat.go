package task

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/strict"
)

// A Repeated function, such as the heartbeat of a lock, runs again and again, one call at a time. Between two calls it is only a timer on
// the client's clock.
type Repeated struct {
	clock driver.Clock
	f     func(ctx context.Context) time.Duration
	ctx   context.Context // of all calls
	end   context.CancelFunc

	mu    strict.Mutex[strict.Tasks]
	timer driver.Timer  // of the next call; nil if none is due
	idle  chan struct{} // closed when the call in flight has returned; nil if there is none
	again bool          // the next call follows the call in flight at once
}

// Repeat calls f when first has passed, and again when the pause that f returned has passed. After a negative pause, only [Repeated.Now]
// leads to another call. The ctx of f ends with ctx, and with [Repeated.Stop].
func Repeat(ctx context.Context, clock driver.Clock, first time.Duration, f func(ctx context.Context) (pause time.Duration)) *Repeated {
	r := &Repeated{clock: clock, f: f}
	r.ctx, r.end = context.WithCancel(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.armLocked(first)
	return r
}

func (r *Repeated) armLocked(d time.Duration) {
	if r.ctx.Err() == nil && d >= 0 {
		r.timer = r.clock.AfterFunc(d, r.call)
	}
}

// call runs when the timer fires.
func (r *Repeated) call() {
	r.mu.Lock()
	if r.ctx.Err() != nil {
		r.mu.Unlock()
		return
	}
	idle := make(chan struct{})
	r.timer, r.idle, r.again = nil, idle, false
	r.mu.Unlock()
	pause := r.f(r.ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.idle = nil; r.again {
		pause = 0
	}
	r.armLocked(pause)
	close(idle)
}

// Now starts the next call at once, or as soon as the call in flight has returned.
func (r *Repeated) Now() {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.idle != nil:
		r.again = true
	case r.timer == nil || r.timer.Stop(): // else the next call is about to begin
		r.armLocked(0)
	}
}

// Stop ends the ctx of the call in flight, and waits until the call has returned. No later call begins. f must not call Stop.
func (r *Repeated) Stop() {
	r.end()
	r.mu.Lock()
	if r.timer != nil {
		r.timer.Stop()
	}
	idle := r.idle
	r.mu.Unlock()
	if idle != nil {
		<-idle
	}
}
