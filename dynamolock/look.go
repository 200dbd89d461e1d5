package dynamolock

import (
	"context"
	"math"
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
		left := time.Duration(math.MaxInt64)
		if end, ends := ctx.Deadline(); ends {
			left = time.Until(end)
		}
		l, send, after := c.lines.joinLook(c.req.Key, left)
		if send {
			c.carryOut(ctx, l, after)
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

// carryOut sends a look when it is due, unless ctx ends before.
func (c *contender) carryOut(ctx context.Context, look *look, after time.Duration) {
	defer close(look.done)
	sent := backoff.Sleep(ctx, after, nil)
	c.lines.lookGoesOut(c.req.Key, look, sent)
	i, err := c.get(ctx, c.key, true)
	switch {
	case err == nil:
		look.seen = c.lines.record(c.req.Key, i)
	case ctx.Err() != nil:
		look.gaveUp = true
	default:
		look.err = err
	}
}
