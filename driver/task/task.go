// Package task owns the goroutines of an engine's client, so that Close can wait for them.
package task

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/strict"
)

// A Group owns a client's goroutines, and counts the calls that Close has to wait for.
type Group struct {
	open context.Context // ends when Close begins
	shut context.CancelFunc
	ctx  context.Context // ends when Close stops waiting
	stop context.CancelFunc

	mu      strict.Mutex[strict.Tasks]
	running int
	idle    chan struct{} // closed once shut and none is running
}

// NewGroup returns a group in which nothing is running.
func NewGroup() *Group {
	g := &Group{idle: make(chan struct{})}
	g.ctx, g.stop = context.WithCancel(context.Background())
	g.open, g.shut = context.WithCancel(g.ctx)
	return g
}

// Context returns the context of all tasks. It ends when Close stops waiting for them.
func (g *Group) Context() context.Context { return g.ctx }

// Open returns a context that ends when Close begins, for tasks not worth finishing.
func (g *Group) Open() context.Context { return g.open }

// Go runs f on a goroutine. It returns false, and f does not run, if Close has begun.
func (g *Group) Go(f func(ctx context.Context)) bool {
	if !g.Begin() {
		return false
	}
	go func() {
		defer g.End()
		f(g.ctx)
	}()
	return true
}

// Begin counts the caller as a task until it calls End. It returns false if Close has begun.
func (g *Group) Begin() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open.Err() != nil {
		return false
	}
	g.running++
	return true
}

// End is called once for each Begin that returned true.
func (g *Group) End() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running--
	g.settleLocked()
}

// Close waits for the tasks until ctx is done, then ends their context. It returns when all have ended. It may be called again.
func (g *Group) Close(ctx context.Context) {
	g.mu.Lock()
	g.shut()
	g.settleLocked()
	g.mu.Unlock()
	select {
	case <-g.idle:
	case <-ctx.Done():
	}
	g.stop()
	<-g.idle
}

func (g *Group) settleLocked() {
	if g.running > 0 || g.open.Err() == nil {
		return
	}
	select {
	case <-g.idle:
	default:
		close(g.idle)
	}
}
