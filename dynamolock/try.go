package dynamolock

import (
	"context"
	"maps"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/backoff"
)

// try takes the key if nobody has it. It writes at once, since the key may be free; but
// if the client last saw another holder, it reads first, since a write that is refused
// costs the table, and the holder's heartbeats, as much as one that succeeds. What it
// sees is remembered, so that a later try can find out that the holder is gone.
func (c *contender) try(ctx context.Context) (*hold, error) {
	defer c.lines.tried(c.req.Key)
	seen := c.lines.observed(c.req.Key)
	read := c.probablyHeld(&seen)
	cleared := false
	for {
		var got outcome
		var err error
		if read {
			got.met, err = c.look(ctx)
		} else {
			got, err = c.take(ctx, &seen)
		}
		switch {
		case err != nil:
			if err := c.again(ctx, err); err != nil {
				return nil, err
			}
			if latest := c.lines.observed(c.req.Key); !read && latest.item != nil { // meanwhile, by others
				seen, read = latest, c.probablyHeld(&latest)
			}
		case got.hold != nil:
			return got.hold, nil
		case c.owns(got.met.item), c.brokenIn(got.met.item): // by a write without an answer: another one makes sure
			read, seen = false, got.met
		case !c.ripe(&got.met):
			read, seen = false, got.met
			found, err := c.evictFormer(ctx, &seen)
			switch {
			case err != nil:
				if err := c.again(ctx, err); err != nil {
					return nil, err
				}
			case !found || cleared:
				return nil, c.inTheWay(seen.item)
			default:
				cleared = true
			}
			read = true // for whoever is in the way now
		default: // it has become free, or its lease has ended
			read, seen = false, got.met
		}
	}
}

// probablyHeld reports whether the key is probably held: somebody has it by what was seen, and
// it is not a grant of this client that is over.
func (c *contender) probablyHeld(seen *observation) bool {
	i := seen.item
	if i != nil && (c.req.Mode.Shared || i.sharing != nil) {
		return !c.enterable(seen)
	}
	return i != nil && i.held() && !c.deserted(i)
}

// Watch implements driver.Watcher. Clocks, which may be wrong, decide only whether it watches.
func (e *engine) Watch(ctx context.Context, req *driver.Request) error {
	key, err := e.opts.Keys.encode(req.Key)
	if err != nil {
		return err
	}
	c := &contender{engine: e, req: req, key: key, began: e.host.Now()}
	ripe := false
	defer func() {
		if !ripe { // what was seen is for the next try
			c.lines.tried(req.Key)
		}
	}()
	o, began, heard := c.lines.observed(req.Key), c.began, c.began
	for read := o.item == nil; ; read = true {
		if read {
			met, err := c.look(ctx)
			switch {
			case err == nil && o.item == nil:
				o, began = met, c.host.Now()
				heard = began
			case err == nil:
				heard = c.host.Now()
				o.update(met.item, heard)
			case ctx.Err() != nil && o.item != nil:
				return c.inTheWay(o.item)
			case c.host.Now().Sub(heard) >= e.opts.Lease: // the engine is away
				return err
			default:
				if err := c.again(ctx, err); err != nil {
					return err
				}
				continue
			}
		}
		doubt := c.doubtful(&o, began)
		if ripe = c.ripe(&o); ripe {
			return nil
		}
		if !c.ripe(&doubt) { // they live, or one of them has written since
			return c.inTheWay(o.item)
		}
		left, _ := c.leftFor(&o)
		if !backoff.Sleep(ctx, max(min(left, c.opts.Poll), c.times.look), nil) {
			return c.inTheWay(o.item)
		}
	}
}

// doubtful returns what would have been seen if those holders had been silent since their lease began whose last heartbeat was longer
// ago than that, by the clocks of the machines, and who were not seen to write since a moment.
func (c *contender) doubtful(o *observation, since driver.Instant) observation {
	now, doubt := c.host.Now(), *o
	silent := func(touched time.Time, lease time.Duration, written driver.Instant) bool {
		return now.Wall.After(touched.Add(lease)) && written.Sub(since) <= 0
	}
	if silent(o.item.touched, o.item.lease, o.since) {
		doubt.since = now.Add(-o.item.lease)
	}
	if o.item.intent != "" && o.intentSince.Sub(since) <= 0 { // it has no time of its own, and others renew the item's
		doubt.intentSince = o.intentSince.Add(-c.intentLeft(o, now))
	}
	if o.item.sharing != nil {
		doubt.entries = maps.Clone(o.entries)
		for _, h := range o.item.sharing.holders {
			if silent(h.touched, h.lease, o.entries[h.grant]) {
				doubt.entries[h.grant] = now.Add(-h.lease)
			}
		}
	}
	return doubt
}
