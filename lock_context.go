package holdfast

import "context"

// Context returns a context that ends with parent, with the lock, or when the CancelFunc is called. If the lock ended first,
// context.Cause returns what Err returns. The CancelFunc does not touch the lock; call it when the work is done, to free memory.
// Err and Done of the context compare the clocks, as all methods of the lock do.
func (k *Lock) Context(parent context.Context) (context.Context, context.CancelFunc) {
	if err := k.Err(); err != nil {
		return endedContext(parent, err)
	}
	ctx, end := context.WithCancelCause(parent)
	forget := k.atEnd(ctx, end)
	return &lockContext{ctx, parent, k.Err, end}, func() { forget(); end(nil) }
}

// endedContext returns a context that has ended.
func endedContext(parent context.Context, why error) (context.Context, context.CancelFunc) {
	if parent == nil { // no method of a zero lock panics
		parent = context.Background()
	}
	ctx, end := context.WithCancelCause(parent)
	end(why)
	return ctx, func() {}
}

// A lockContext compares the clocks of its lock, or of its Locks, at each look.
type lockContext struct {
	context.Context
	parent context.Context // may be a lockContext, too
	over   func() error    // Err of the lock
	end    context.CancelCauseFunc
}

func (c *lockContext) Done() <-chan struct{} {
	c.look()
	return c.Context.Done()
}

func (c *lockContext) Err() error {
	c.look()
	return c.Context.Err()
}

// look ends the context if the lock has ended. The goroutine that ended the lock may not have done so yet.
func (c *lockContext) look() {
	if c.Context.Err() != nil {
		return
	}
	_ = c.parent.Err()
	if err := c.over(); err != nil {
		c.end(err)
	}
}

// atEnd calls a function at the end of the lock, before the key is given back, unless ctx has ended or forget was called by then.
func (k *Lock) atEnd(ctx context.Context, end context.CancelCauseFunc) (forget func()) {
	k.mu.Lock()
	if k.err != nil {
		err := k.err
		k.mu.Unlock()
		end(err)
		return func() {}
	}
	if k.cancels == nil {
		k.cancels = make(map[*context.CancelCauseFunc]struct{})
	}
	k.cancels[&end] = struct{}{}
	k.mu.Unlock()
	remove := func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.cancels, &end)
	}
	stop := context.AfterFunc(ctx, remove)
	return func() {
		if stop() {
			remove()
		}
	}
}
