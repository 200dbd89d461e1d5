// Package task owns the goroutines of an engine's client, so that Close can wait for them, and repeats its heartbeats.
package task

import (
	"context"
	"sync"

	"github.com/holdfast-go/holdfast/internal/strict"
)

// A Group owns a client's goroutines.
type Group struct {
	open context.Context // ends when Close begins
	shut context.CancelFunc
	ctx  context.Context // ends when Close stops waiting
	stop context.CancelFunc

	mu      strict.Mutex[strict.Tasks]
	running int
	tasks   sync.WaitGroup
}

// NewGroup returns a group in which nothing is running.
func NewGroup() *Group {
	g := &Group{}
	g.ctx, g.stop = context.WithCancel(context.Background())
	g.open, g.shut = context.WithCancel(g.ctx)
	return g
}

// Context returns the context of all tasks. It ends when Close stops waiting for them.
func (g *Group) Context() context.Context { return g.ctx }

// Open returns a context that ends when Close begins, for tasks not worth finishing.
func (g *Group) Open() context.Context { return g.open }

// Go runs f on a goroutine. It returns false, and f does not run, if Close has begun and no task is running: a running task can always
// begin another, such as the undo of its own request.
func (g *Group) Go(f func(ctx context.Context)) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open.Err() != nil && g.running == 0 {
		return false
	}
	g.running++
	g.tasks.Go(func() {
		defer g.ended()
		f(g.ctx)
	})
	return true
}

func (g *Group) ended() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running--
}

// Close waits for the tasks until ctx is done, then ends their context. It returns when all have ended. It may be called again.
func (g *Group) Close(ctx context.Context) {
	g.mu.Lock()
	g.shut()
	g.mu.Unlock()
	keep := context.AfterFunc(ctx, g.stop)
	defer keep()
	g.tasks.Wait()
	g.stop()
}
