package holdfast

import "context"

// Context returns a context that is done when parent is, when the lock ends, or when
// the CancelFunc is called; if the lock ended first, context.Cause gives what Err
// gives. Like that of [context.WithCancel], the CancelFunc does not touch the lock, and
// is to be called when the work is done: until then, or until parent or the lock ends,
// the context is kept in memory. Its Err and Done compare the clocks, as all methods of the
// lock do, for the locks that parent follows too.
func (k *Lock) Context(parent context.Context) (context.Context, context.CancelFunc) {
	if err := k.Err(); err != nil {
		return endedContext(parent, err)
	}
	ctx, end := context.WithCancelCause(parent)
	return newLockContext(ctx, k.Err, end), k.cancelAtEnd(ctx, end)
}

// endedContext is that of a lock, or of locks, that have ended.
func endedContext(parent context.Context, why error) (context.Context, context.CancelFunc) {
	if parent == nil { // with a zero lock, no method panics
		parent = context.Background()
	}
	ctx, end := context.WithCancelCause(parent)
	end(why)
	return ctx, func() {}
}

// A lockContext sees at the first look that its lock, or one of its locks, is over, or one of those whose context it is within.
type lockContext struct {
	context.Context
	over   func() error // Err of what it follows
	end    context.CancelCauseFunc
	around *lockContext // the nearest that ctx was derived from; nil if there is none
}

// aroundKey is that of the nearest lockContext.
type aroundKey struct{}

func newLockContext(ctx context.Context, over func() error, end context.CancelCauseFunc) *lockContext {
	around, _ := ctx.Value(aroundKey{}).(*lockContext)
	return &lockContext{ctx, over, end, around}
}

func (c *lockContext) Value(key any) any {
	if key == (aroundKey{}) {
		return c
	}
	return c.Context.Value(key)
}

func (c *lockContext) Done() <-chan struct{} {
	c.look()
	return c.Context.Done()
}

func (c *lockContext) Err() error {
	c.look()
	return c.Context.Err()
}

// look ends the context if the lock has ended. Whoever ends the lock does so too, but may
// have been stopped in between.
func (c *lockContext) look() {
	if c.Context.Err() != nil {
		return
	}
	if c.around != nil {
		c.around.look() // which ends this one as well, unless something between the two keeps it from that
	}
	if err := c.over(); err != nil {
		c.end(err)
	}
}

// cancelAtEnd has the end of the lock end ctx, and returns the CancelFunc of that.
func (k *Lock) cancelAtEnd(ctx context.Context, cancel context.CancelCauseFunc) context.CancelFunc {
	forget := k.atEnd(ctx, cancel)
	return func() {
		forget()
		cancel(nil)
	}
}

// atEnd has the end of the lock call a function, before the lock is given back, unless ctx has ended or forget was called by then.
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
