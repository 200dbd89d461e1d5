package dynamolock

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/backoff"
)

// A look is one read of an item, for all contenders that asked for one before it was
// sent. One of them sends it.
//
// It is consistent. An eventually consistent read may still show a holder who released
// the key before the try began, and then the try has to succeed.
type look struct {
	done   chan struct{} // closed when it is over
	seen   observation
	err    error
	gaveUp bool // the ctx of the one that sent it has ended
}

// look returns what a read shows that is sent after the call began.
func (c *contender) look(ctx context.Context) (observation, error) {
	for ctx.Err() == nil {
		l, line, after := c.nextLook(ctx)
		if line != nil {
			c.carryOut(ctx, l, line, after)
		}
		select {
		case <-l.done:
			if !l.gaveUp {
				return l.seen, l.err
			}
		case <-ctx.Done():
		}
	}
	return observation{}, c.waitedFor()
}

// nextLook joins the look that was not sent yet. If there is none, it returns a new one
// that the caller has to carry out, with the line that it belongs to and the time until
// it may be sent. A caller that has no time for that gets one of its own.
func (c *contender) nextLook(ctx context.Context) (*look, *line, time.Duration) {
	now := c.host.Now()
	end, ends := ctx.Deadline()
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.lineLocked(c.req.Key, now, true)
	after := l.lookAfter.Sub(now)
	next := &look{done: make(chan struct{})}
	switch {
	case ends && after > 0 && time.Until(end) < after+c.times.look:
		return next, l, 0
	case l.look != nil:
		return l.look, nil, 0
	}
	l.look = next
	return next, l, after
}

// carryOut sends a look when it is due, unless ctx ends before.
func (c *contender) carryOut(ctx context.Context, look *look, of *line, after time.Duration) {
	defer close(look.done)
	send := backoff.Sleep(ctx, max(after, 0), nil)
	c.mu.Lock()
	if of.look == look {
		of.look = nil // who comes now needs another
	}
	if send {
		of.lookAfter = c.host.Now().Add(c.times.look)
	}
	c.mu.Unlock()
	i, err := c.get(ctx, c.key, true)
	switch {
	case err == nil:
		look.seen = c.see(c.req.Key, i)
	case ctx.Err() != nil:
		look.gaveUp = true
	default:
		look.err = err
	}
}
