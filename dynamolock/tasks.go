package dynamolock

import (
	"context"
	"sync"
)

// tasks are what goes on between a client's calls: heartbeats, probes, and the
// undoing of what was given up.
type tasks struct {
	ctx  context.Context // ends when the client gives up on them
	stop context.CancelFunc

	mu      sync.Mutex
	closing chan struct{} // closed when they should come to an end
	running int
	idle    chan struct{} // closed once closing and none is running
}

func newTasks() *tasks {
	ctx, stop := context.WithCancel(context.Background())
	return &tasks{ctx: ctx, stop: stop, closing: make(chan struct{}), idle: make(chan struct{})}
}

// begin counts a task, or returns false if it is too late for one.
func (t *tasks) begin() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.isClosing() {
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

func (t *tasks) isClosing() bool {
	select {
	case <-t.closing:
		return true
	default:
		return false
	}
}

func (t *tasks) settleLocked() {
	if t.running == 0 && t.isClosing() {
		close(t.idle)
	}
}

// close lets tasks come to an end until ctx is done, and then cuts them off. It
// returns when there are none.
func (t *tasks) close(ctx context.Context) {
	t.mu.Lock()
	close(t.closing)
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
