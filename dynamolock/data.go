package dynamolock

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast/driver"
)

// change is a call of SetData that a heartbeat is to carry out.
type change struct {
	data []byte
	done chan error // receives what came of it, once that is known
	last error      // of the latest try; nil if it got no answer. Guarded by the heartbeat's mu
}

// SetData implements driver.Hold, by a heartbeat out of turn, which writes the data in the
// same request. So there is one row of writes, each with a greater guid than the one
// before: a copy that arrives late finds a greater one, and changes nothing.
func (h *hold) SetData(ctx context.Context, data []byte) error {
	c := &change{data: data, done: make(chan error, 1)}
	if err := h.request(c); err != nil {
		return err
	}
	select {
	case err := <-c.done:
		return err
	case <-ctx.Done():
	}
	h.heartbeat.mu.Lock()
	defer h.heartbeat.mu.Unlock()
	h.change = nil
	select {
	case err := <-c.done:
		return err
	default:
	}
	if c.last != nil {
		return c.last
	}
	return errNoAnswer
}

// request has the next heartbeat carry out a change, and come now.
func (h *hold) request(c *change) error {
	h.heartbeat.mu.Lock()
	defer h.heartbeat.mu.Unlock()
	switch {
	case h.lost != nil:
		return fmt.Errorf("%w: %w", driver.ErrLost, h.lost)
	case h.stopped:
		return errNoAnswer
	}
	h.change = c
	// A beat that is under way sets the next one when it is over; one whose timer has
	// fired already comes anyway.
	if h.idle == nil && h.timer.Stop() {
		h.armLocked(0)
	}
	return nil
}

// settleLocked notes what a beat has come to for the change that it was to carry out, and
// reports whether another is to come at once.
func (h *hold) settleLocked(c *change, confirmed bool, err error) (now bool) {
	if c != nil {
		switch {
		case h.lost != nil:
			c.done <- fmt.Errorf("%w: %w", driver.ErrLost, h.lost)
		case confirmed:
			c.done <- nil
		case err != nil && !transient(err):
			c.done <- err
		default:
			c.last = err
			return h.change != c && h.change != nil
		}
		if h.change == c {
			h.change = nil
		}
	}
	return h.change != nil
}

// describing is the write of a change to a lock that never expires. It takes the place of
// a read, and so returns what that would show.
func (h *hold) describing(now driver.Instant, c *change) *expression {
	x := &expression{returns: types.ReturnValueAllNew}
	guid := h.nextGUID()
	x.cond = all(h.unchanged(x), x.atMost(attrGUID, guid))
	x.set(attrGUID, guid)
	if h.opts.Mode != FailClosed {
		x.cond = all(x.live(), x.cond)
		x.set(attrTouched, millis(now.Wall))
	}
	x.describe(c.data)
	h.expire(x, now, false)
	return x
}
