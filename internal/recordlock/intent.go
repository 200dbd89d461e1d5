package recordlock

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/backoff"
)

// A client that releases a key knows at once that it is vacant, and other clients see it at their next poll. So a client that wants the
// key again and again would have it for ever. A waiter that has seen others hold the key for deniedPolls leaves an intent, and a client
// that releases the key then lets the others look first. A waiter that wants the key in another mode than its holders leaves the intent
// at once.
const (
	deniedPolls = 4
	// intentOdds spreads the intents of clients of one mode: one of so many polls writes one.
	intentOdds = 4
)

// intend leaves an intent, or renews it. The caller loses nothing if that fails.
func (c *contender) intend(ctx context.Context) {
	rec, now := &c.seen.rec, c.host.Now()
	mine := rec.Intent.Grant == c.grant
	switch {
	case len(rec.Holders) == 0, !mine && c.intentLeft(&c.seen, now) > 0, mine && now.Sub(c.intended) < c.opts.Lease/2:
		return
	case rec.Mode == c.req.Mode && !mine && (!c.denied() || rand.N(intentOdds) > 0):
		return
	}
	var waits bool
	c.withLine(c.req.Key, func(l *line, now driver.Instant) { waits = l.writes.until.Sub(now) > 0 })
	if waits {
		return
	}
	next := *rec
	c.beats++
	next.Intent = Intent{Grant: c.grant, Beat: beat(c.beats), Mode: c.req.Mode, Lease: c.opts.Lease, Poll: c.opts.Poll}
	c.intended = now
	ctx, cancel := context.WithTimeout(ctx, c.opts.Poll/2)
	defer cancel()
	if err := c.paced(ctx, c.req.Key, writePace, func() error {
		_, _, err := c.swap(ctx, c.req.Key, *rec, next)
		return err
	}); err != nil {
		c.host.Logger().Debug("intent not written", "key", c.req.Key, "error", err)
	}
}

// denied reports whether others have held the key for some polls.
func (c *contender) denied() (denied bool) {
	c.withLine(c.req.Key, func(l *line, now driver.Instant) {
		denied = !l.denied.IsZero() && now.Sub(l.denied) >= deniedPolls*c.opts.Poll
	})
	return denied
}

// yield has this client leave a key that a grant of a mode has released to others for two of their polls, if one of them has an intent.
// An intent of another mode needs that not: it keeps the mode from the key.
func (e *Engine) yield(key string, released driver.Mode, i Intent) {
	if i.Grant == "" || i.Mode != released {
		return
	}
	gap := min(2*i.Poll, e.opts.Lease)
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, yields := e.yields[key]; yields { // other permits that are released meanwhile do not prolong it
		return
	}
	e.yields[key] = e.host.Now().Add(gap)
	e.host.AfterFunc(gap, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.yields, key)
	})
}

// yieldsFor is how long this client leaves a key to others.
func (e *Engine) yieldsFor(key string) time.Duration {
	now := e.host.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	return max(e.yields[key].Sub(now), 0)
}

// mustYield reports whether others are to take the key first. A call that has no time for that takes its chance.
func (c *contender) mustYield(ctx context.Context) bool {
	left := c.yieldsFor(c.req.Key)
	end, ends := ctx.Deadline()
	return left > 0 && (!ends || time.Until(end) > left+c.opts.Timeout)
}

// giveWay waits until others have looked, and looks then. For a call that ends meanwhile the key is theirs.
func (c *contender) giveWay(ctx context.Context) error {
	c.rest(c.req.Key, c.place, true)
	waited := backoff.Sleep(ctx, c.yieldsFor(c.req.Key), nil)
	c.rest(c.req.Key, c.place, false)
	if !waited {
		return driver.Held(driver.Info{Key: c.req.Key, Held: true})
	}
	return c.look(ctx)
}

// varied is a period of polls: up to an eighth more or less, so that a waiter does not keep pace with holders that take turns.
func varied(poll time.Duration) time.Duration { return poll - poll/8 + rand.N(poll/4) }
