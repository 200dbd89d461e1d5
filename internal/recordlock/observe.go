package recordlock

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/backoff"
)

// Observe implements driver.Driver. It reads the record once per Poll. The reads are fresh: another may show a grant that is over after
// one that has shown the next.
func (e *Engine) Observe(ctx context.Context, key string, tell func(driver.Info)) error {
	var seen observation
	var newest driver.Token // of the record; it never falls, unless the store was wiped or restored
	delay := rand.N(e.opts.Poll) + 1
	for lower := false; ; {
		var sent driver.Instant
		var rec Record
		err := e.pauses.Retry(ctx, e.host, func() (err error) {
			sent = e.host.Now()
			rec, err = e.read(ctx, key, true)
			return err
		})
		switch {
		case err != nil:
			return err
		case rec.Token != 0 && rec.Token < newest && lower:
			return driver.ErrHistoryLost
		case rec.Token != 0 && rec.Token < newest:
			lower = true // a second read has to show the same
			continue
		}
		lower, newest = false, max(newest, rec.Token)
		e.saw(key, rec) // first: when it is told that the key is vacant, a try is to get it
		seen.update(rec, e.host.Now())
		tell(rec.info(key, e.live(&seen, sent)))
		if !backoff.Sleep(ctx, e.host, e.nextEnd(&seen, sent, delay), nil) {
			return driver.ContextError(ctx)
		}
		delay = e.opts.Poll
	}
}

// Watch implements driver.Watcher. Wall clocks, which may be wrong, decide only whether it watches.
func (e *Engine) Watch(ctx context.Context, req *driver.Request) error {
	c := &contender{Engine: e, req: req, seen: e.observed(req.Key)}
	began := e.host.Now()
	for heard := began; ; {
		if c.looked || !c.seen.known {
			seen, err := e.lookAt(ctx, req.Key)
			switch now := e.host.Now(); {
			case err == nil:
				if heard = now; !c.seen.known {
					began = now
				}
				c.seen.update(seen.rec, now)
			case ctx.Err() != nil && c.seen.known:
				return c.inTheWay()
			case ctx.Err() != nil, !transient(err), now.Sub(heard) >= e.opts.Lease:
				return err
			default:
				if err := req.Retry(ctx, err, nil); err != nil {
					return err
				}
				continue
			}
		}
		c.looked = true
		switch {
		case c.plan().may:
			return nil
		case !c.mayBeDead(began), !backoff.Sleep(ctx, e.host, e.nextEnd(&c.seen, e.host.Now(), e.opts.Poll), nil):
			return c.inTheWay()
		}
	}
}

// mayBeDead reports whether a live grant was not seen to be renewed since a moment, and its latest beat is longer ago than its lease by
// the wall clocks. Without holders, the same of the intent, which has no time.
func (c *contender) mayBeDead(since driver.Instant) bool {
	now := c.host.Now()
	silent := func(beat string) bool { return c.seen.since[beat].Sub(since) <= 0 }
	live := c.live(&c.seen, now)
	return len(live) == 0 && silent(c.seen.rec.Intent.Beat) || slices.ContainsFunc(live, func(h Holder) bool {
		return h.Lease != Forever && now.Wall.After(h.Touched.Add(h.Lease)) && silent(h.Beat)
	})
}

// Ask implements driver.Driver. The holder reads it in the answer to its next beat.
func (e *Engine) Ask(ctx context.Context, info driver.Info) error {
	return e.mark(ctx, info, func(rec Record, h *Holder) (Record, error) {
		if h.Asked {
			return rec, errSettled
		}
		return rec.changed(h.Grant, func(h *Holder) { h.Asked = true }), nil
	})
}

// atOnce is the key of a context whose Break frees the key at once.
type atOnce struct{}

// AtOnce returns a context whose Break frees the key at once, before the holder knows.
func AtOnce(ctx context.Context) context.Context { return context.WithValue(ctx, atOnce{}, true) }

// Break implements driver.Driver. A grant that is broken cannot be renewed, and other clients wait for the end of its lease. Its holder
// learns of it at its next beat, before that.
func (e *Engine) Break(ctx context.Context, info driver.Info) error {
	return e.mark(ctx, info, func(rec Record, h *Holder) (Record, error) {
		rec.Broken = h.Token
		switch {
		case h.Lease == Forever, ctx.Value(atOnce{}) != nil:
			return rec.without(func(o *Holder) bool { return o.Grant == h.Grant }), nil
		case h.Broken:
			return rec, errSettled
		}
		return rec.changed(h.Grant, func(h *Holder) { h.Broken = true }), nil
	})
}

// mark changes the grant that info describes. If the grant is gone after a try without an answer, that try has ended it.
func (e *Engine) mark(ctx context.Context, info driver.Info, f func(Record, *Holder) (Record, error)) error {
	if !strings.HasPrefix(info.Grant, "-") && (len(info.Grant) != GrantLen || strings.Trim(info.Grant, Letters) != "") {
		return driver.Invalid("info.Grant", "%q is not one of this engine", info.Grant)
	}
	unanswered := false
	return e.pauses.Retry(ctx, e.host, func() error {
		_, err := e.change(ctx, info.Key, nil, func(rec Record) (Record, error) {
			i := slices.IndexFunc(rec.Holders, func(h Holder) bool { return h.Grant == info.Grant && h.Token == info.Token })
			switch {
			case i < 0 && unanswered && rec.Broken == info.Token:
				return rec, errSettled
			case i < 0:
				return rec, driver.ErrChanged
			}
			return f(rec, &rec.Holders[i])
		})
		if errors.Is(err, errSettled) {
			err = nil
		}
		unanswered = unanswered || classIs(err, Unknown)
		return err
	})
}
