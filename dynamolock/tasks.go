package dynamolock

import (
	"context"
	"sync"
)

// tasks are what goes on between a client's calls: heartbeats, probes, and the
// undoing of what was given up.
type tasks struct {
	open context.Context // ends when the client begins to close
	shut context.CancelFunc
	ctx  context.Context // ends when it gives up on what is still under way
	stop context.CancelFunc

	mu      sync.Mutex
	running int
	idle    chan struct{} // closed once shut and none is running
}

func newTasks() *tasks {
	t := &tasks{idle: make(chan struct{})}
	t.ctx, t.stop = context.WithCancel(context.Background())
	t.open, t.shut = context.WithCancel(t.ctx)
	return t
}

// begin counts a task, or returns false if it is too late for one.
func (t *tasks) begin() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closing() {
		return false
	}
	t.running++
	return true
}

func (t *tasks) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running--
	t.settleLocked()
}

func (t *tasks) closing() bool { return t.open.Err() != nil }

func (t *tasks) settleLocked() {
	if t.running == 0 && t.closing() {
		close(t.idle)
	}
}

// close lets tasks come to an end until ctx is done, and then cuts them off. It
// returns when there are none.
func (t *tasks) close(ctx context.Context) {
	t.mu.Lock()
	t.shut()
	t.settleLocked()
	t.mu.Unlock()
	select {
	case <-t.idle:
	case <-ctx.Done():
	}
	t.stop()
	<-t.idle
}

// detach returns a context with the values of ctx that ends with the tasks, not
// with ctx.
func (t *tasks) detach(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(t.ctx, cancel)
	return ctx, func() { stop(); cancel() }
}
