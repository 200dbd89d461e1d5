package recordlock

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/backoff"
)

// A client that releases a key knows at once that it is vacant, and other clients see it at their next poll. So that it does not take the
// key again and again, a waiter that has seen others hold the key for deniedPolls leaves an intent, and a client that releases the key
// then lets others look first. A waiter that wants the key in another mode than its holders leaves the intent at once.
const (
	deniedPolls = 4
	// intentOdds spreads the intents of clients of one mode: one of so many polls writes one.
	intentOdds = 4
)

// intend leaves an intent, or renews it. The caller loses nothing if that fails. An intent that is carried out after its call has given up
// may keep other requests from the key for a lease. It tells the client of holders, or of a waiter before it, with another limit.
func (c *contender) intend(ctx context.Context) {
	rec, now := &c.seen.rec, c.host.Now()
	switch other := rec.Mode; {
	case len(rec.Holders) > 0 && other.Limit != c.req.Mode.Limit:
		c.req.Behind(other)
	case rec.Intent.Grant != "" && rec.Intent.Mode.Limit != c.req.Mode.Limit:
		c.req.Behind(rec.Intent.Mode)
	}
	var denied, waits bool // others have held the key for some polls; writes fail
	c.withLine(c.req.Key, func(l *line, now driver.Instant) {
		denied = !l.denied.IsZero() && now.Sub(l.denied) >= deniedPolls*c.opts.Poll
		waits = l.paces[writes].until.Sub(now) > 0
	})
	mine := rec.Intent.Grant == c.grant
	switch {
	case waits, len(rec.Holders) == 0, !mine && c.intentLeft(&c.seen, now) > 0, mine && now.Sub(c.intended) < c.opts.Lease/2:
		return
	case rec.Mode == c.req.Mode && !mine && (!denied || rand.N(intentOdds) > 0):
		return
	}
	next := *rec
	c.beats++
	next.Intent = Intent{Grant: c.grant, Beat: beat(c.beats), Mode: c.req.Mode, Lease: c.opts.Lease, Poll: c.opts.Poll}
	ctx, cancel := context.WithTimeout(ctx, c.opts.Poll/2)
	defer cancel()
	err := c.paced(ctx, c.req.Key, writes, func() error {
		_, done, err := c.swap(ctx, c.req.Key, *rec, next)
		if done || classIs(err, Unknown) {
			c.intended = now
		}
		return err
	})
	if err != nil {
		c.host.Logger().Debug("intent not written", "key", c.req.Key, "error", err)
	}
}

// yield has this client leave a key that a grant of a mode has released to others for two of their polls, if one of them has an intent.
// An intent of another mode needs that not: it keeps the mode from the key.
func (e *Engine) yield(key string, released driver.Mode, i Intent) {
	if i.Grant == "" || i.Mode != released {
		return
	}
	e.withLine(key, func(l *line, now driver.Instant) {
		if l.yields.Sub(now) <= 0 { // other permits that are released meanwhile do not prolong it
			l.yields = now.Add(min(2*i.Poll, e.opts.Lease))
		}
	})
}

// yields is how long the contender leaves the key to others. A call that has no time for that takes its chance.
func (c *contender) yields(ctx context.Context) (left time.Duration) {
	if c.place == nil {
		return 0
	}
	c.withLine(c.req.Key, func(l *line, now driver.Instant) { left = max(l.yields.Sub(now), 0) })
	if end, ends := ctx.Deadline(); ends && time.Until(end) <= left+c.opts.Timeout {
		return 0
	}
	return left
}

// giveWay waits until others have looked, and looks then. For a call that ends meanwhile the key is theirs.
func (c *contender) giveWay(ctx context.Context, left time.Duration) error {
	c.rest(c.req.Key, c.place, true)
	waited := backoff.Sleep(ctx, c.host, left, nil)
	c.rest(c.req.Key, c.place, false)
	if !waited {
		return driver.Held(driver.Info{Key: c.req.Key, Held: true})
	}
	return c.look(ctx)
}
